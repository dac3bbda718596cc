"""From a measurement to the server: never blocking, never raising."""

from noisescale.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
