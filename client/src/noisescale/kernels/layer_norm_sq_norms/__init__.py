"""Gradients of a normalisation layer, and for nothing extra the squared norm of each example's own."""

from typing import TYPE_CHECKING

from noisescale.lazy import exports

if TYPE_CHECKING:
    from noisescale.kernels.layer_norm_sq_norms.launch import fused_gradients

# Lazily: Triton is loaded when a kernel is wanted.
__getattr__, __dir__ = exports(__name__, {"fused_gradients": "noisescale.kernels.layer_norm_sq_norms.launch"})

__all__ = ["fused_gradients"]
