"""Sums over lists of gradients at the speed of memory: PyTorch's own operators, or Triton's kernels where they work."""

from typing import TYPE_CHECKING

from noisescale.kernels.preference import PREFERENCE
from noisescale.lazy import exports

if TYPE_CHECKING:
    from noisescale.kernels.gradient_sums import GradientSums, SignSums
    from noisescale.kernels.multi_tensor.multi_tensor import MultiTensor

# Lazily: a process without torch can still say what it prefers.
__getattr__, __dir__ = exports(
    __name__,
    {
        "GradientSums": "noisescale.kernels.gradient_sums",
        "SignSums": "noisescale.kernels.gradient_sums",
        "MultiTensor": "noisescale.kernels.multi_tensor.multi_tensor",
    },
)

__all__ = ["PREFERENCE", "GradientSums", "MultiTensor", "SignSums"]
