"""Pure functions from answers of the API to figures, one figure a file."""
