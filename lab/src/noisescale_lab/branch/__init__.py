"""Short branches from a run's present state: the same examples at several batch sizes or learning rates."""

from typing import TYPE_CHECKING

from noisescale.lazy import exports

if TYPE_CHECKING:
    from noisescale_lab.branch.torch_snapshot import TorchSnapshot

# torch is loaded only where a model is given: any framework can branch with its own snapshot() and restore()
_MODULES = {"TorchSnapshot": "noisescale_lab.branch.torch_snapshot"}

__getattr__, __dir__ = exports(__name__, _MODULES)

__all__ = ["TorchSnapshot"]
