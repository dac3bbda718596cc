"""Steps against batch size, and what is fitted to them."""
