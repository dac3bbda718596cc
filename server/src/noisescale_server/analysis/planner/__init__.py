"""Statistics for what a target takes at any batch size, within limits."""
