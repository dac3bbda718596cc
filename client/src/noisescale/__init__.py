"""Gradient noise scale inside your training job.

    import noisescale

    noisescale.watch(model, optimizer)
    noisescale.log_gradients(loss=loss)   # before clipping and optimizer.step()

Names load on first use: importing this package loads neither torch nor httpx.
"""

from noisescale.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
