"""Which kernels run: Triton's where they are wanted and work, PyTorch's own operators elsewhere."""

import logging
from functools import cache

import torch

from noisescale.kernels import multi_tensor
from noisescale.kernels.layout import Layout
from noisescale.kernels.multi_tensor.naive import NaiveReduction
from noisescale.kernels.multi_tensor.reduction import PlainReduction, check
from noisescale.kernels.operations import Operation
from noisescale.kernels.preference import Kernels

logger = logging.getLogger("noisescale")


def takes_triton(kernels: Kernels, device: torch.device, operation: Operation) -> bool:
    """Whether Triton's kernel is wanted for an operation on a device, and right there.

    The first time, that compiles the kernel, tests it, and waits for the device.

    Args:
        kernels: "auto": on CUDA devices, where it works; "triton": wherever it works; "torch": never.
        device: Of the tensors.
        operation: What is to be summed up.
    """
    if kernels == "torch" or (kernels == "auto" and device.type != "cuda"):
        return False
    if is_capturing(device) and (device, operation) not in _TESTED:
        return False  # a test waits for the device, which breaks the capture
    if (device, operation) not in _TESTED:
        _TESTED[device, operation] = _works(device, operation)
    return _TESTED[device, operation]


def is_capturing(device: torch.device) -> bool:
    """Whether calls are recorded into a CUDA graph instead of being run."""
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()


def fused(layout: Layout, device: torch.device) -> PlainReduction:
    """The reduction by Triton's kernel; loads Triton."""
    return multi_tensor.FusedReduction(layout, device)


# By device and operation: it belongs to the process, as its devices do.
_TESTED: dict[tuple[torch.device, Operation], bool] = {}


def _works(device: torch.device, operation: Operation) -> bool:
    try:
        check(operation, device, fused, NaiveReduction)
    except Exception as fault:  # noqa: BLE001  # a compiler or a driver may fail in any way, and PyTorch's operators still work
        _warn_once(f"{type(fault).__name__}: {fault}".splitlines()[0], device)
        return False
    return True


@cache
def _warn_once(reason: str, device: torch.device) -> None:
    logger.warning(
        "the Triton kernels do not work on %s (%s): PyTorch's own operators sum gradients up, more slowly; "
        "NOISESCALE_KERNELS=torch asks for them from the start", device, reason,
    )  # fmt: skip
