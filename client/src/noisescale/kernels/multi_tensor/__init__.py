"""Sums over lists of tensors in one pass: the Triton kernel, the same in plain PyTorch, and what calls either."""

from typing import TYPE_CHECKING

from noisescale.lazy import exports

if TYPE_CHECKING:
    from noisescale.kernels.multi_tensor.launch import FusedReduction

# Lazily: Triton is loaded where its kernels run, and nowhere else.
__getattr__, __dir__ = exports(__name__, {"FusedReduction": "noisescale.kernels.multi_tensor.launch"})

__all__ = ["FusedReduction"]
