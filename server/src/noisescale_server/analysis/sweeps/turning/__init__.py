"""Sweeps that turn: more examples are needed at small batches, too."""
