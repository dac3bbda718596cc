"""The dashboard under load."""
