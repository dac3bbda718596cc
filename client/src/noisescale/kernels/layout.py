"""How a list of tensors is cut into chunks: it depends on their sizes alone, so it is made once."""

# P tensors, C chunks, S segments: each tensor, then each group, then the total

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

CHUNK = 1 << 16
"""Elements of a chunk. Part of how sums are rounded: another size gives other last digits."""


@dataclass(frozen=True, slots=True)
class Launch:
    """The chunks of one type, which one launch reads.

    Attributes:
        dtype: Of their elements.
        indices: Of the tensors that have them.
        first_chunk: The first of them.
        num_chunks: How many.
    """

    dtype: torch.dtype
    indices: tuple[int, ...]
    first_chunk: int
    num_chunks: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Chunks of all tensors, in the order in which they are launched: by type, then group, then tensor.

    A chunk writes its sums to a slot; slots are ordered by group and tensor alone, so that every tensor, every group
    and the total are each one run of slots, whatever the types.

    Attributes:
        numels: Elements of each tensor.
        group_of_tensor: Index of each tensor's group; -1 for none.
        num_groups: How many groups.
        launches: One for each type.
        chunk_tensor: Tensor of each chunk, int32 [C].
        chunk_slot: Where it writes its sums, int32 [C].
        chunk_offset: Its first element within the tensor, int64 [C].
        segment_low: First slot of each segment, int32 [S].
        segment_high: One past its last slot, int32 [S].
    """

    numels: tuple[int, ...]
    group_of_tensor: tuple[int, ...]
    num_groups: int
    launches: tuple[Launch, ...]
    chunk_tensor: Tensor
    chunk_slot: Tensor
    chunk_offset: Tensor
    segment_low: Tensor
    segment_high: Tensor

    @property
    def num_chunks(self) -> int:
        """C."""
        return self.chunk_tensor.numel()

    @property
    def num_segments(self) -> int:
        """S."""
        return len(self.numels) + self.num_groups + 1


def layout_of(
    numels: Sequence[int],
    dtypes: Sequence[torch.dtype],
    group_of_tensor: Sequence[int] | None = None,
    num_groups: int = 0,
) -> Layout:
    """The layout of tensors of these sizes, on the host.

    Args:
        numels: Elements of each tensor; at least one tensor.
        dtypes: Type of each.
        group_of_tensor: Index of each tensor's group; -1 for none. None: no tensor has one.
        num_groups: How many groups.

    Raises:
        ValueError: Unless there are as many types and groups as sizes, and each group is one of them.
    """
    groups = tuple(group_of_tensor) if group_of_tensor is not None else (-1,) * len(numels)
    _check(numels, dtypes, groups, num_groups)
    chunks_P = torch.tensor([-(-numel // CHUNK) for numel in numels])
    by_group = sorted(range(len(numels)), key=lambda index: groups[index] if groups[index] >= 0 else num_groups)
    first_slot_P = _first_slots(chunks_P, by_group)
    launches, launch_order = _launches(chunks_P, dtypes, by_group)
    order = torch.tensor(launch_order)
    chunk_tensor = order.repeat_interleave(chunks_P[order])
    before_P = torch.zeros(len(numels), dtype=torch.int64)
    before_P[order] = chunks_P[order].cumsum(0) - chunks_P[order]
    chunk_in_tensor = torch.arange(chunk_tensor.numel()) - before_P[chunk_tensor]
    low, high = _segments(first_slot_P, first_slot_P + chunks_P, groups, num_groups)
    return Layout(
        numels=tuple(numels),
        group_of_tensor=groups,
        num_groups=num_groups,
        launches=launches,
        chunk_tensor=chunk_tensor.int(),
        chunk_slot=(first_slot_P[chunk_tensor] + chunk_in_tensor).int(),
        chunk_offset=chunk_in_tensor * CHUNK,
        segment_low=low.int(),
        segment_high=high.int(),
    )


def _check(numels: Sequence[int], dtypes: Sequence[torch.dtype], groups: Sequence[int], num_groups: int) -> None:
    if not numels:
        raise ValueError("numels must name at least one tensor, got none")
    if not len(numels) == len(dtypes) == len(groups):
        lengths = f"{len(numels)}, {len(dtypes)} and {len(groups)}"
        raise ValueError(f"numels, dtypes and group_of_tensor must be equally long, got {lengths}")
    if any(not -1 <= group < num_groups for group in groups):
        wrong = next(group for group in groups if not -1 <= group < num_groups)
        raise ValueError(f"group_of_tensor must lie between -1 and {num_groups - 1}, got {wrong}: raise num_groups")


def _first_slots(chunks_P: Tensor, by_group: Sequence[int]) -> Tensor:
    order = torch.tensor(by_group)
    first_slot_P = torch.zeros_like(chunks_P)
    first_slot_P[order] = chunks_P[order].cumsum(0) - chunks_P[order]
    return first_slot_P


def _launches(
    chunks_P: Tensor, dtypes: Sequence[torch.dtype], by_group: Sequence[int]
) -> tuple[tuple[Launch, ...], list[int]]:
    """The launches and the order of the tensors in them."""
    counts = chunks_P.tolist()
    launches: list[Launch] = []
    order: list[int] = []
    first_chunk = 0
    for dtype in dict.fromkeys(dtypes):
        indices = [index for index in by_group if dtypes[index] == dtype]
        num_chunks = sum(counts[index] for index in indices)
        launches.append(Launch(dtype, tuple(indices), first_chunk, num_chunks))
        order += indices
        first_chunk += num_chunks
    return tuple(launches), order


def _segments(low_P: Tensor, high_P: Tensor, groups: Sequence[int], num_groups: int) -> tuple[Tensor, Tensor]:
    """First and last slots [S]; a group without tensors is empty."""
    group_P = torch.tensor(groups)
    low, high = [low_P], [high_P]
    for group in range(num_groups):
        members = (group_P == group).nonzero()[:, 0]
        nobody = torch.zeros(1, dtype=low_P.dtype)
        low.append(low_P[members].min()[None] if len(members) else nobody)
        high.append(high_P[members].max()[None] if len(members) else nobody)
    return torch.cat([*low, torch.zeros_like(high_P[:1])]), torch.cat([*high, high_P.max()[None]])
