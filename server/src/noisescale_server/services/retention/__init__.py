"""What is kept of old and of deleted runs."""
