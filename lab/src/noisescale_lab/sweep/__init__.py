"""Batch-size sweeps around a user's own training function."""
