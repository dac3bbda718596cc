"""Plain functions for what reproductions of published claims found."""
