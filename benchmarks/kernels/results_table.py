"""Rows of results with what they were measured on: device and versions of what drives it."""

import os
import platform
import re

import torch
import triton

Row = dict[str, str | int | float]

MEASURED = "measured"


def not_measured(reason: str) -> str:
    """What the column `status` says of a row without numbers."""
    return f"not measured: {reason}"


def device_name(device: torch.device) -> str:
    """What the device is sold as, or how many cores share the work."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU ({torch.get_num_threads()} of {os.cpu_count()} cores, {platform.machine()})"


def results_name(what: str, device: torch.device) -> str:
    """`kernels-cpu`, `kernels-nvidia-h200`: a device's results never replace another's."""
    name = "cpu" if device.type == "cpu" else device_name(device)
    return f"{what}-{re.sub('[^a-z0-9]+', '-', name.lower()).strip('-')}"


def versions(device: torch.device) -> dict[str, object]:
    """What the rows were measured on, beside the machine."""
    return {
        "device": device_name(device),
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "none",
        "triton": triton.__version__,
    }
