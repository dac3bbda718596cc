"""Asking for a recommendation from Python: from the server, or from the job's own measurements; loaded on first use."""

from noisescale.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
