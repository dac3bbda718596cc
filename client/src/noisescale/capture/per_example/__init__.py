"""Squared norms of each example's own gradient, from activations and output gradients; `norms.py` is the way in."""
