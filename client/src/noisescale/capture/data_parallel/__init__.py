"""Jobs whose small batches lie in several processes; the only folder that calls torch.distributed.

Loaded on first use: FSDP's code costs a second of import, and some builds of PyTorch have no torch.distributed at all.
"""

from typing import TYPE_CHECKING

from noisescale.lazy import exports

if TYPE_CHECKING:
    from noisescale.capture.data_parallel.ddp import DdpJob
    from noisescale.capture.data_parallel.fsdp import FsdpJob

_MODULES = {
    "DdpJob": "noisescale.capture.data_parallel.ddp",
    "FsdpJob": "noisescale.capture.data_parallel.fsdp",
}

__getattr__, __dir__ = exports(__name__, _MODULES)

__all__ = ["DdpJob", "FsdpJob"]
