"""Squared norms of one small batch as a row: of each parameter, or of each column at once where a kernel adds up.

A row is put together from parts, since a backward pass hands its gradients over some at a time.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from noisescale.kernels import PREFERENCE, MultiTensor
from noisescale.kernels.choice import takes_triton
from noisescale.kernels.list_sums import DTYPES
from noisescale.kernels.memory import contiguous_addresses, sizes_and_types
from noisescale.kernels.operations import Operation
from noisescale.kernels.squared_norms import condense, sq_norms_of_condensed, squared_norms

# P parameters, N of them in a part, G groups, C columns (all parameters, then each group), K rows

MAX_LISTS = 1024
"""Lists whose layout is remembered: a backward pass hands its gradients over in several."""

MOST_SETS = 32
"""Sets of parameters that have a layout of their own; where layers are dropped or experts not reached, each backward
may bring another: it is read as the list of all parameters, of which some are missing."""


# Sums over lists of tensors whose layout is made at the first of each sort.


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


class RowsPart(NamedTuple):
    """Squared norms of some parameters' gradients, and of which."""

    indices: Sequence[int]
    sq_norms: Tensor


class RowSums(Protocol):
    """How squared norms of a list of gradients are summed up into rows.

    Attributes:
        adds_in_one_pass: `accumulate` costs no more memory traffic than the addition alone.
        reads_as_they_lie: `part` takes gradients that were not condensed, of whatever layout.
    """

    adds_in_one_pass: bool
    reads_as_they_lie: bool

    def part(self, indices: Sequence[int], condensed: Sequence[Tensor]) -> RowsPart:
        """Squared norms of some parameters' gradients; what `condense` gave is as good as the gradient."""

    def accumulate(
        self, indices: Sequence[int], sums: Sequence[Tensor], gradients: Sequence[Tensor]
    ) -> tuple[RowsPart, RowsPart | None]:
        """Add gradients to sums in 32 bit, in place: squared norms of the gradients, and of the sums where known."""

    def row(self, parts: Sequence[RowsPart]) -> Tensor:
        """One row from its parts, at least one; a parameter that appears twice counts twice."""

    def columns(self, rows: Sequence[Tensor]) -> Tensor:
        """[K, C], fp64."""


class ParameterRows:
    """A row has an entry for each parameter, [P], and columns come from one product at the end of a step.

    Args:
        num_parameters: P.
        member_PC: 1 where a parameter belongs to a column, fp64; None: nobody asks for columns.
    """

    adds_in_one_pass = False
    reads_as_they_lie = False

    def __init__(self, num_parameters: int, member_PC: Tensor | None = None) -> None:
        self._num_parameters = num_parameters
        self._member_PC = member_PC

    def part(self, indices: Sequence[int], condensed: Sequence[Tensor]) -> RowsPart:
        """See `RowSums`."""
        return RowsPart(indices, sq_norms_of_condensed(condensed))

    def accumulate(
        self, indices: Sequence[int], sums: Sequence[Tensor], gradients: Sequence[Tensor]
    ) -> tuple[RowsPart, RowsPart | None]:
        """See `RowSums`."""
        torch._foreach_add_(list(sums), list(gradients))
        return self.part(indices, [condense(gradient) for gradient in gradients]), None

    def row(self, parts: Sequence[RowsPart]) -> Tensor:
        """See `RowSums`."""
        return spread(parts, self._num_parameters)

    def columns(self, rows: Sequence[Tensor]) -> Tensor:
        """See `RowSums`."""
        assert self._member_PC is not None
        return torch.stack(list(rows)) @ self._member_PC


class ColumnRows:
    """A row has an entry for each group and then one for all, [G + 1], as one kernel gives them.

    Args:
        parameters: In the order of their indices.
        group_of_parameter: Index of each parameter's group; -1 for none.
        num_groups: G.
    """

    adds_in_one_pass = True

    def __init__(self, parameters: Sequence[Tensor], group_of_parameter: Sequence[int], num_groups: int) -> None:
        # Of a sparse gradient there are fewer values than that, each time another number.
        self._numels = [p.numel() * (2 if p.is_complex() else 1) for p in parameters]
        self.reads_as_they_lie = not any(p.is_complex() for p in parameters)
        self._dtypes = tuple([p.dtype.to_real() for p in parameters])
        self._device = parameters[0].device
        self._groups = group_of_parameter
        self._num_groups = num_groups
        self._lists: dict[tuple[tuple[int, ...], tuple[torch.dtype, ...]], tuple[tuple[int, ...], MultiTensor]] = {}

    @staticmethod
    def suits(parameters: Sequence[Tensor], *, in_fp32: bool) -> bool:
        """Whether all gradients lie on one device where a kernel of ours adds up, in types that it reads.

        Args:
            parameters: Theirs.
            in_fp32: Gradients are to be added to sums, too.
        """
        dtypes = {p.dtype.to_real() for p in parameters}
        device = parameters[0].device
        return (
            all(dtype in DTYPES for dtype in dtypes)
            and all(p.device == device for p in parameters)
            and takes_triton(PREFERENCE.kernels, device, Operation.SQ_NORMS)
            and (not in_fp32 or takes_triton(PREFERENCE.kernels, device, Operation.ACCUMULATE))
        )

    def _list(self, indices: Sequence[int], dtypes: tuple[torch.dtype, ...]) -> tuple[tuple[int, ...], MultiTensor]:
        """Elements of each, and what sums up lists of these parameters' gradients."""
        asked = tuple(indices), dtypes
        known = self._lists.get(asked)
        if known is None:
            numels = tuple([self._numels[index] for index in indices])
            groups = tuple([self._groups[index] for index in indices])
            known = self._lists[asked] = numels, known_list(numels, dtypes, self._device, groups, self._num_groups)
        return known

    def part(self, indices: Sequence[int], condensed: Sequence[Tensor]) -> RowsPart:
        """See `RowSums`."""
        found, dtypes = sizes_and_types(condensed)
        if len(self._lists) >= MOST_SETS and (tuple(indices), dtypes) not in self._lists:
            return self._part_of_all(indices, condensed, dtypes)
        numels, sums = self._list(indices, dtypes)
        addresses = contiguous_addresses(condensed) if found == numels else None
        at_once = None if addresses is None else sums.sq_norms_at(addresses)
        sq_norm = (sums.sq_norms(condensed) if at_once is None else at_once).sq_norm
        return RowsPart(indices, sq_norm[len(indices) :])

    def _part_of_all(
        self, indices: Sequence[int], condensed: Sequence[Tensor], dtypes: Sequence[torch.dtype]
    ) -> RowsPart:
        """The same of a list of all parameters, which knows what is missing."""
        values: list[Tensor | None] = [None] * len(self._numels)
        types = list(self._dtypes)
        for index, value, dtype in zip(indices, condensed, dtypes, strict=True):
            values[index], types[index] = value, dtype
        _, sums = self._list(range(len(values)), tuple(types))
        return RowsPart(indices, sums.sq_norms(values).sq_norm[len(values) :])

    def accumulate(
        self, indices: Sequence[int], sums: Sequence[Tensor], gradients: Sequence[Tensor]
    ) -> tuple[RowsPart, RowsPart | None]:
        """See `RowSums`."""
        _, added = self._list(indices, tuple([gradient.dtype for gradient in gradients]))
        found = added.accumulate(sums, gradients)
        assert found.other_sq_norm is not None
        torch.autograd.graph.increment_version(sums)  # the kernel writes where torch cannot count
        first = len(indices)
        return RowsPart(indices, found.sq_norm[first:]), RowsPart(indices, found.other_sq_norm[first:])

    def row(self, parts: Sequence[RowsPart]) -> Tensor:
        """See `RowSums`."""
        if len(parts) == 1:
            return parts[0].sq_norms
        return torch.stack([part.sq_norms for part in parts]).sum(dim=0)

    def columns(self, rows: Sequence[Tensor]) -> Tensor:
        """See `RowSums`."""
        return torch.stack(list(rows)).roll(1, dims=1)


def membership(group_of_parameter: Sequence[int], num_groups: int, device: torch.device) -> Tensor:
    """[P, C] fp64: 1 in the first column for every parameter, and in the column of its group."""
    member_PC = torch.zeros(len(group_of_parameter), 1 + num_groups, dtype=torch.float64)
    member_PC[:, 0] = 1
    for index, group in enumerate(group_of_parameter):
        if group >= 0:
            member_PC[index, 1 + group] = 1
    return member_PC.to(device)


def spread(parts: Sequence[RowsPart | tuple[Sequence[int], Tensor]], num_parameters: int) -> Tensor:
    """Squared norms [P] from those of some parameters, 0 for the others; sums where a parameter appears twice.

    Built from views, not by index: an index list would have to travel to the device, and wait.
    """
    indices, sq_norm_N = parts[0]
    if len(parts) == 1 and len(indices) == num_parameters:
        return sq_norm_N
    entries: list[Tensor] = [torch.zeros((), dtype=sq_norm_N.dtype, device=sq_norm_N.device)] * num_parameters
    has_entry = [False] * num_parameters
    for indices, sq_norm_N in parts:
        for index, sq_norm in zip(indices, sq_norm_N.unbind(), strict=True):
            entries[index] = entries[index] + sq_norm if has_entry[index] else sq_norm
            has_entry[index] = True
    return torch.stack(entries)


def column_sums(gradients: Sequence[Tensor | None], shares: Sequence[float], member_PC: Tensor) -> Tensor:
    """Σ share · |g|² of each column, [C] fp64.

    Args:
        gradients: One for each parameter.
        shares: By what each counts.
        member_PC: 1 where a parameter belongs to a column.
    """
    indices = [index for index, gradient in enumerate(gradients) if gradient is not None]
    if not indices:
        return member_PC.new_zeros(member_PC.shape[1])
    sq_norms = squared_norms([gradient for gradient in gradients if gradient is not None])
    if any(share != 1.0 for share in shares):
        # Python numbers, not a tensor of shares: that one would have to travel to the device, and wait.
        shared = torch._foreach_mul(list(sq_norms.unbind()), [shares[index] for index in indices])
        sq_norms = torch.stack(shared)
    return spread([(indices, sq_norms)], len(gradients)) @ member_PC
