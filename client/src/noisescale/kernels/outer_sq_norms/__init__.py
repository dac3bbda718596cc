"""Squared norms of sums of outer products, example by example: of the weight of a Linear, in 16 bit, on a GPU."""

from noisescale.lazy import exports

# Lazily: Triton is loaded where its kernels run, and nowhere else.
__getattr__, __dir__, __all__ = exports(__name__, __file__)
