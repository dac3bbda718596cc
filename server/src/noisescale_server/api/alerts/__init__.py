"""Routes about alerts."""
