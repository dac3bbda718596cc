"""Sweeps whose examples to the target rise again at small batches."""
