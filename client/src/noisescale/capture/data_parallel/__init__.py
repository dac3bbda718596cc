"""Jobs whose small batches lie in several processes; the only folder that calls torch.distributed.

Loaded on first use: FSDP's code costs a second of import, and some builds of PyTorch have no torch.distributed at all.
"""

from noisescale.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
