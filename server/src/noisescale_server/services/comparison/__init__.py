"""Plain functions for runs and tasks side by side, and published values."""
