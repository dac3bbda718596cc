"""How many elements are read at a time, and by how many threads: for each architecture what is quickest there.

`python benchmarks/gpu/tuning.py` measures every setting on a device and prints the entries that belong here. Another
setting than the usual one is taken only where its interval of 95 % lies wholly below that of the usual one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import torch

from noisescale.kernels.operations import Operation

Capability = tuple[int, int]
"""Of a device of Nvidia's, such as (9, 0) for a Hopper."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How the sums of a chunk are cut.

    Attributes:
        block: Elements read at a time, a power of two that divides a chunk.
        num_warps: Of 32 threads that share them.
    """

    block: int
    num_warps: int


ONE_LIST = Setting(4096, 8)
TWO_LISTS = Setting(2048, 8)
"""Two lists need twice the registers. Three are cut in the same way: they are read at looks alone."""

TUNED: Mapping[Capability, Mapping[tuple[Operation, int], Setting]] = MappingProxyType(
    {
        # an H200: benchmarks/results/gpu_tuning-nvidia-h200.csv, 1.24e9 elements
        (9, 0): MappingProxyType(
            {
                (Operation.SQ_NORMS, 2): Setting(4096, 16),  # 0.5375 ms for 0.5406: 0.6 % less
                (Operation.DOTS, 4): Setting(4096, 16),  # 2.1128 ms for 2.1151: 0.1 % less
            }
        ),
    }
)
"""By architecture, operation and bytes of an element of x: what is quicker than the usual setting."""


def usual(operation: Operation) -> Setting:
    """The setting of an architecture or a type that nobody has measured.

    Args:
        operation: What to sum up.
    """
    return TWO_LISTS if operation.has_other else ONE_LIST


def setting_of(capability: Capability | None, operation: Operation, element_size: int) -> Setting:
    """The setting of a device.

    Args:
        capability: Of the device; None where it is none of Nvidia's.
        operation: What to sum up.
        element_size: Bytes of an element of x.
    """
    known = TUNED.get(capability, {}) if capability is not None else {}
    return known.get((operation, element_size), usual(operation))


@lru_cache
def capability_of(device: torch.device) -> Capability | None:
    """The architecture of a device; None where it is none of Nvidia's.

    Args:
        device: On which sums are made.
    """
    if device.type != "cuda" or torch.version.hip:  # AMD counts its own: there (9, 0) is another device
        return None
    return torch.cuda.get_device_capability(device)
