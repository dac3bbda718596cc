"""Whether the kernel of outer products runs: where it is wanted, works, and the numbers are of 16 bit."""

# N examples, T positions, O outputs, I inputs

import logging
from functools import cache

import torch
from torch import Tensor

from noisescale.kernels import outer_sq_norms
from noisescale.kernels.preference import Kernels

logger = logging.getLogger("noisescale")

DTYPES = (torch.bfloat16, torch.float16)
"""Whose products tensor cores make exactly and add up in fp32; they round fp32 itself to 11 bits."""

TOLERANCE = 1e-6

_works_on: dict[torch.device, bool] = {}
"""Results of the self-test; they belong to the process, as its devices do."""


def takes_triton(kernels: Kernels, grad_output_NTO: Tensor, activation_NTI: Tensor) -> bool:
    """Whether Triton's kernel is wanted for these numbers, and gives the right ones on their device.

    The first time on a device, that compiles it, tests it, and waits.

    Args:
        kernels: "auto": on CUDA devices, where it works; "triton": wherever it works; "torch": never.
        grad_output_NTO: Output gradients.
        activation_NTI: Inputs.
    """
    device = activation_NTI.device
    if grad_output_NTO.dtype != activation_NTI.dtype or activation_NTI.dtype not in DTYPES:
        return False
    if kernels == "torch" or (kernels == "auto" and device.type != "cuda"):
        return False
    if device not in _works_on:
        if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
            return False  # to wait for the device would break the capture
        _works_on[device] = _works(device)
    return _works_on[device]


def _works(device: torch.device) -> bool:
    try:
        for sizes in ((2, 65, 40, 72), (1, 128, 256, 256)):
            _check(*sizes, device)
    except Exception as fault:  # noqa: BLE001  # a compiler or a driver may fail in any way; PyTorch still works
        _warn_once(f"{type(fault).__name__}: {fault}".splitlines()[0], device)
        return False
    return True


def _check(num_examples: int, num_positions: int, num_outputs: int, num_inputs: int, device: torch.device) -> None:
    """Compare on small numbers, with edges and without.

    Raises:
        ArithmeticError: The kernel gives something else.
    """

    def numbers(size: int, period: int) -> Tensor:
        angle = torch.arange(num_examples * num_positions * size, device=device).view(num_examples, num_positions, size)
        return (angle % period - period // 3).to(torch.bfloat16)

    g, a = numbers(num_outputs, 13), numbers(num_inputs, 7)
    expected = torch.bmm(g.double().transpose(1, 2), a.double()).square().sum((1, 2))
    found = outer_sq_norms.fused_outer_sq_norms(g, a)
    if not torch.allclose(found, expected, rtol=TOLERANCE, atol=0):
        raise ArithmeticError(f"{num_positions} positions give {found.tolist()}, expected {expected.tolist()}")


@cache
def _warn_once(reason: str, device: torch.device) -> None:
    logger.warning(
        "the Triton kernel of outer products does not work on %s (%s): PyTorch's own operators give per-example "
        "norms, more slowly; NOISESCALE_KERNELS=torch asks for them from the start", device, reason,
    )  # fmt: skip
