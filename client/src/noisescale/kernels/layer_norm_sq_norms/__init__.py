"""Gradients of a normalisation layer, and for nothing extra the squared norm of each example's own."""

from noisescale.lazy import exports

# Lazily: Triton is loaded when a kernel is wanted.
__getattr__, __dir__, __all__ = exports(__name__, __file__)
