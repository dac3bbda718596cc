"""The latest window, the run so far, and what they say of the noise scale."""
