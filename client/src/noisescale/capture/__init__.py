"""From a model's backward pass to squared gradient norms; the only folder that imports torch, and only on first use."""

from noisescale.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
