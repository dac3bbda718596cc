"""Sums over lists of gradients at the speed of memory: PyTorch's own operators, or Triton's kernels where they work."""

from noisescale.lazy import exports

# Lazily: a process without torch can still say what it prefers.
__getattr__, __dir__, __all__ = exports(__name__, __file__)
