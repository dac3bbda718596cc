"""Who computes the gradients of a normalisation layer: Triton's kernel where it works, plain PyTorch elsewhere."""

# B examples, T positions, D elements

import logging
from functools import cache

import torch
from torch import Tensor

from noisescale.kernels import layer_norm_sq_norms
from noisescale.kernels.layer_norm_sq_norms.naive import NormLayerCall, NormLayerGradients, naive_gradients
from noisescale.kernels.preference import Kernels

logger = logging.getLogger("noisescale")

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
"""That the kernel reads; fp64 goes to PyTorch, whatever is asked for."""

TOLERANCE = 1e-5

_works_on: dict[torch.device, bool] = {}
"""Results of the self-test; they belong to the process, as its devices do."""


def norm_layer_gradients(call: NormLayerCall, *, kernels: Kernels, needs_grad_input: bool = True) -> NormLayerGradients:
    """The gradients of a call, and each example's squared norms, without waiting for the device.

    Args:
        call: What was called.
        kernels: "auto": Triton's on CUDA devices, where it works; "triton": wherever it works; "torch": never.
        needs_grad_input: Whether grad_input is wanted.
    """
    if takes_triton(kernels, call.activation.device) and is_for_kernel(call.activation, call.grad_output, call.weight):
        return layer_norm_sq_norms.fused_gradients(call, needs_grad_input=needs_grad_input)
    return naive_gradients(call, needs_grad_input=needs_grad_input)


def is_for_kernel(*tensors: Tensor) -> bool:
    """Whether the kernel can read these: types that it knows, and not empty."""
    return all(tensor.dtype in DTYPES and tensor.numel() for tensor in tensors)


def takes_triton(kernels: Kernels, device: torch.device) -> bool:
    """Whether Triton's kernel is wanted on a device, and gives the right numbers there.

    The first time on a device, that compiles it, tests it, and waits.
    """
    if kernels == "torch" or (kernels == "auto" and device.type != "cuda"):
        return False
    if device not in _works_on:
        if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
            return False  # to wait for the device would break the capture
        _works_on[device] = _works(device)
    return _works_on[device]


def _works(device: torch.device) -> bool:
    try:
        for num_positions in (1, 3, 37):
            _check(num_positions, device)
    except Exception as fault:  # noqa: BLE001  # a compiler or a driver may fail in any way; PyTorch still works
        _warn_once(f"{type(fault).__name__}: {fault}".splitlines()[0], device)
        return False
    return True


def _check(num_positions: int, device: torch.device) -> None:
    """Compare on small numbers, once for each way in which the kernel adds up an example.

    Raises:
        ArithmeticError: The kernel gives something else.
    """
    angle_BTD = torch.arange(3 * num_positions * 72, device=device).view(3, num_positions, 72).float()
    call = NormLayerCall(
        activation=angle_BTD.sin() + 1,
        grad_output=(angle_BTD * 0.7).cos(),
        weight=torch.linspace(0.5, 1.5, 72, device=device),
        num_examples=3,
        eps=1e-5,
        is_centred=True,
    )
    found, expected = layer_norm_sq_norms.fused_gradients(call), naive_gradients(call)
    for name in ("grad_input", "grad_weight", "grad_bias", "weight_sq_norm_B", "bias_sq_norm_B"):
        own, right = getattr(found, name).double(), getattr(expected, name).double()
        if not (own - right).norm() <= TOLERANCE * right.norm():
            raise ArithmeticError(f"{name} of {num_positions} positions is off by {(own - right).norm().item():.1e}")


@cache
def _warn_once(reason: str, device: torch.device) -> None:
    logger.warning(
        "the Triton kernel of LayerNorm and RMSNorm does not work on %s (%s): PyTorch's own operators give per-example "
        "norms, more slowly; NOISESCALE_KERNELS=torch asks for them from the start", device, reason,
    )  # fmt: skip
