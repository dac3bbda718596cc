"""How numbers are drawn in a terminal and in a notebook, without a library of its own."""
