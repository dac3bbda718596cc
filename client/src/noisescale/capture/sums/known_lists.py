"""Sums over lists of tensors whose layout is made at the first of each sort."""

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from noisescale.kernels import MultiTensor

MAX_LISTS = 1024
"""Lists whose layout is remembered: a backward pass hands its gradients over in several."""


@lru_cache(maxsize=MAX_LISTS)
def known_list(
    numels: tuple[int, ...],
    dtypes: tuple[torch.dtype, ...],
    device: torch.device,
    groups: tuple[int, ...] | None = None,
    num_groups: int = 0,
) -> MultiTensor:
    """What sums up lists of these sizes; see `MultiTensor`.

    Args:
        numels: Elements of each tensor.
        dtypes: Type of each.
        device: Of all.
        groups: Index of each tensor's group.
        num_groups: How many groups.
    """
    return MultiTensor(numels, dtypes, device, groups, num_groups)


def list_like(tensors: Sequence[Tensor]) -> MultiTensor:
    """What sums up lists of the sizes and types of these tensors, which are real and on one device."""
    numels = tuple([tensor.numel() for tensor in tensors])
    return known_list(numels, tuple([tensor.dtype for tensor in tensors]), tensors[0].device)
