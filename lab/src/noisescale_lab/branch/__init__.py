"""Short branches from a run's present state: the same examples at several batch sizes or learning rates."""

from noisescale.lazy import exports

# torch is loaded only where a model is given: any framework can branch with its own snapshot() and restore()
__getattr__, __dir__, __all__ = exports(__name__, __file__)
