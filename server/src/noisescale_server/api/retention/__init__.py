"""Routes about how long rows are kept."""
