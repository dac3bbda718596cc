"""Launches the kernels: who reads which addresses, in what type, and in which variant."""

import contextlib
import struct
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import or_
from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from noisescale.kernels.layout import CHUNK, Launch, Layout
from noisescale.kernels.memory import MemoryRuns
from noisescale.kernels.multi_tensor import tuned
from noisescale.kernels.multi_tensor.kernel import reduce_chunks, sum_segments
from noisescale.kernels.operations import Lists, Numbers, Operation, PlainLists
from noisescale.kernels.pointer_table import PointerTable

# P tensors, C chunks, S sums: each tensor, then each group, then the total; N kinds of sums of an operation

_COMPILED: dict[tuple[Any, Hashable], Any] = {}
"""By kernel and sort: it belongs to the process, as its devices do."""

TYPES = {
    torch.float32: tl.float32,
    torch.bfloat16: tl.bfloat16,
    torch.float16: tl.float16,
    torch.float64: tl.float64,
}

VECTOR_BYTES = 16

FUSION: Mapping[str, Any] = {"enable_fp_fusion": True}
"""Fusion of multiplication and addition is said aloud: its default differs between versions, and so do last digits."""

SEGMENT_BLOCK = 1024
SEGMENT_OPTIONS: Mapping[str, Any] = {"num_warps": 8, **FUSION}


# Starts a compiled Triton kernel once more, without asking again what it was compiled for.
#
# Triton's own call looks at the type and the alignment of each argument, at every call, to find the compiled kernel:
# that takes longer than a small kernel runs. Here the caller says of which sort a call is.


def start_again(
    kernel: Any,
    grid: tuple[int, ...],
    arguments: Sequence[Any],
    constants: Mapping[str, Any],
    options: Mapping[str, Any],
    *,
    sort: Hashable,
) -> None:
    """Run a kernel on the current device and stream.

    Args:
        kernel: By `triton.jit`.
        grid: Programs along each axis.
        arguments: Its arguments before the constants, in order.
        constants: Its constants by name, in order, all of them at its end.
        options: Of compiling.
        sort: What the compiled kernel depends on beside constants and options: device, types, and whether addresses are
            multiples of 16 bytes. Calls that agree in all of these run the kernel of the first.
    """
    key = kernel, (sort, tuple(constants.values()), tuple(options.values()))
    compiled = _COMPILED.get(key)
    if compiled is None:
        _COMPILED[key] = kernel[grid](*arguments, **constants, **options)  # None where Triton interprets
        return
    compiled[(*grid, 1, 1)[:3]](*arguments, *constants.values())


@dataclass(frozen=True, slots=True)
class Variant:
    """One of the compiled forms of `reduce_chunks`.

    Attributes:
        constants: Its constants by name.
        options: Of compiling.
    """

    constants: Mapping[str, Any]
    options: Mapping[str, Any]


@lru_cache
def variant_of(
    capability: tuned.Capability | None,
    operation: Operation,
    first: torch.dtype,
    other: torch.dtype,
    *,
    has_scale: bool,
    is_aligned: bool,
) -> Variant:
    """The variant of `reduce_chunks` for a device and a kind of call.

    Args:
        capability: Of the device; see `setting_of`.
        operation: What to sum up.
        first: Type of x.
        other: Type of y.
        has_scale: Whether there is an inverse scale.
        is_aligned: Whether all addresses are multiples of 16 bytes.
    """
    is_double = torch.float64 in (first, other)
    setting = tuned.setting_of(capability, operation, first.itemsize)
    constants = {
        "OPERATION": int(operation),
        "FIRST": TYPES[first],
        "OTHER": TYPES[other],
        "ACCUMULATOR": tl.float64 if is_double else tl.float32,
        "HAS_SCALE": has_scale,
        "ALIGNMENT": VECTOR_BYTES if is_aligned else 1,
        "CHUNK": CHUNK,
        "BLOCK": setting.block,
    }
    return Variant(constants, {"num_warps": setting.num_warps, **FUSION})


_IN_GRAPHS: list["FusedReduction"] = []
"""Those whose tables a captured graph reads: nothing tells when the graph is gone, so they stay."""


class FusedReduction:
    """Sums over lists of tensors of one layout: one launch for each type, and one that finishes.

    Args:
        layout: Of the lists.
        device: On which they are; the host where Triton interprets.
    """

    def __init__(self, layout: Layout, device: torch.device) -> None:
        self._layout = layout
        self._device = device
        self._capability = tuned.capability_of(device)
        self._chunk_tensor = _sent(layout.chunk_tensor, device)
        self._chunk_slot = _sent(layout.chunk_slot, device)
        self._chunk_offset = _sent(layout.chunk_offset, device)
        self._segment_low = _sent(layout.segment_low, device)
        self._segment_high = _sent(layout.segment_high, device)
        self._num_tensors = len(layout.numels)
        # all at once: memory should not be pinned while a graph is captured
        self._table = PointerTable(6 * self._num_tensors, device)
        self._plain_table = PointerTable(self._num_tensors, device, constants=layout.numels)
        self._plain_lists = PointerTable(5 * self._num_tensors, device, constants=layout.numels)
        self._last_plain: tuple[tuple[int, ...], bool] = (), True
        self._runs = MemoryRuns()

    @property
    def num_copies(self) -> int:
        """See `Reduction`."""
        return self._runs.num_copies

    def sums(self, operation: Operation, lists: Lists) -> Tensor:
        """See `Reduction`."""
        first, other = self._runs.of(lists.first, lists.other)
        other_types = [self._align_types(launch, first, other) for launch in self._layout.launches]
        partial_NC = torch.empty(operation.num_sums, self._layout.num_chunks, dtype=torch.float64, device=self._device)
        entries = self._entries(first, other, lists.numbers, lists.third)
        with _on(self._device), self._table.holding(entries) as table:
            for launch, other_type in zip(self._layout.launches, other_types, strict=True):
                if launch.num_chunks:
                    self._start(
                        operation, launch, other_type, table, lists.numbers, lists.inverse_scale, partial_NC,
                        is_aligned=self._is_aligned(entries, launch),
                    )  # fmt: skip
            sum_NS = self._finished(operation, partial_NC)
            self._keep_for_graphs(self._table)
        return sum_NS

    def sums_at(self, operation: Operation, lists: PlainLists) -> Tensor:
        """See `PlainReduction`."""
        addresses = lists.first + lists.other + lists.third
        if addresses != self._last_plain[0]:
            self._last_plain = addresses, not reduce(or_, addresses) % VECTOR_BYTES
        partial_NC = torch.empty(operation.num_sums, self._layout.num_chunks, dtype=torch.float64, device=self._device)
        pointers, entries = self._plain_table, addresses
        if operation.has_other:
            numbers, third = tuple(self._number_entries(lists.numbers)), lists.third or (0,) * self._num_tensors
            pointers, entries = self._plain_lists, (*lists.first, *lists.other, *numbers, *third)
        with _on(self._device), pointers.holding(entries) as table:
            for launch in self._layout.launches:
                if launch.num_chunks:
                    other = lists.other_dtypes[launch.indices[0]] if lists.other_dtypes else launch.dtype
                    self._start(
                        operation, launch, other, table, lists.numbers, lists.inverse_scale, partial_NC,
                        is_aligned=self._last_plain[1],
                    )  # fmt: skip
            sum_NS = self._finished(operation, partial_NC)
            self._keep_for_graphs(pointers)
        return sum_NS

    def _start(
        self,
        operation: Operation,
        launch: Launch,
        other_type: torch.dtype,
        table: Tensor,
        numbers: tuple[Numbers, Numbers] | None,
        scale: Tensor | None,
        partial_NC: Tensor,
        *,
        is_aligned: bool,
    ) -> None:
        """Launch the sums of the chunks of one type."""
        first, second = numbers or ((), ())
        has_table = table.numel() > 2 * self._num_tensors  # else the operation has no numbers: any address will do
        variant = variant_of(
            self._capability,
            operation,
            launch.dtype,
            other_type,
            has_scale=scale is not None,
            is_aligned=is_aligned,
        )
        start_again(
            reduce_chunks,
            (launch.num_chunks,),
            (
                table,
                self._on_device(first, table, 3) if has_table else table,
                self._on_device(second, table, 4) if has_table else table,
                self._chunk_tensor,
                self._chunk_slot,
                self._chunk_offset,
                table if scale is None else scale,
                partial_NC,
                self._num_tensors,
                self._layout.num_chunks,
                launch.first_chunk,
            ),
            variant.constants,
            variant.options,
            sort=(
                self._device,
                operation,
                launch.dtype,
                other_type,
                has_table,
                is_aligned,
                scale is None or scale.dtype,
            ),
        )

    def _finished(self, operation: Operation, partial_NC: Tensor) -> Tensor:
        """Sums [N, S] of the sums of chunks."""
        sum_NS = torch.empty(operation.num_sums, self._layout.num_segments, dtype=torch.float64, device=self._device)
        start_again(
            sum_segments,
            (self._layout.num_segments, operation.num_sums),
            (
                partial_NC,
                self._segment_low,
                self._segment_high,
                sum_NS,
                self._layout.num_chunks,
                self._layout.num_segments,
            ),
            {"BLOCK": SEGMENT_BLOCK},
            SEGMENT_OPTIONS,
            sort=(self._device,),
        )
        return sum_NS

    def _keep_for_graphs(self, table: PointerTable) -> None:
        if table.is_in_graph and self not in _IN_GRAPHS:
            _IN_GRAPHS.append(self)

    def _entries(
        self, first: Sequence[Tensor | None], other: Sequence[Tensor | None], numbers: Any, third: Sequence[Any]
    ) -> list[int]:
        """The table: elements, addresses of x and y, both numbers where the host knows them, and addresses of z."""
        nothing = [0] * self._num_tensors
        numels = _numels(first)
        if other and None in first:
            numels = [max(pair) for pair in zip(numels, _numels(other), strict=True)]
        entries = numels + _addresses(first) + (_addresses(other) if other else nothing)
        return entries + self._number_entries(numbers) + (_addresses(third) if third else nothing)

    def _number_entries(self, numbers: tuple[Numbers, Numbers] | None) -> list[int]:
        """Both numbers of each tensor as bits; zeros where the host does not know them."""
        nothing = [0] * self._num_tensors
        return [
            entry
            for column in numbers or ((), ())
            for entry in (nothing if isinstance(column, Tensor) or not column else _bits(column))
        ]

    def _is_aligned(self, entries: Sequence[int], launch: Launch) -> bool:
        num = self._num_tensors
        rows = num, 2 * num, 5 * num  # of addresses
        return not any(entries[row + index] % VECTOR_BYTES for row in rows for index in launch.indices)

    def _on_device(self, numbers: Numbers, table: Tensor, row: int) -> Tensor:
        if isinstance(numbers, Tensor):
            return numbers.contiguous()
        return table[row * self._num_tensors : (row + 1) * self._num_tensors].view(torch.float64)

    def _align_types(self, launch: Launch, first: Sequence[Tensor | None], other: list[Tensor | None]) -> torch.dtype:
        """The one type of y in a launch; where there were several, copies make them one."""
        if not other:
            return launch.dtype
        types = {tensor.dtype for index in launch.indices if (tensor := other[index]) is not None}
        if len(types) <= 1:
            return types.pop() if types else launch.dtype
        common = torch.float64 if torch.float64 in types else torch.float32
        for index in launch.indices:
            tensor = other[index]
            other[index] = None if tensor is None else self._runs.as_type(tensor, common)
        return common


def _numels(tensors: Sequence[Tensor | None]) -> list[int]:
    return [0 if tensor is None else tensor.numel() for tensor in tensors]


def _addresses(tensors: Sequence[Tensor | None]) -> list[int]:
    return [0 if tensor is None else tensor.data_ptr() for tensor in tensors]


def _bits(numbers: Sequence[float]) -> list[int]:
    """The bits of fp64 numbers, as integers for the table."""
    return list(struct.unpack(f"{len(numbers)}q", struct.pack(f"{len(numbers)}d", *numbers)))


def _sent(values: Tensor, device: torch.device) -> Tensor:
    """On the device, without waiting for it; PyTorch keeps the pinned memory until it has been read."""
    return values.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else values


def _on(device: torch.device) -> contextlib.AbstractContextManager[Any]:
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return contextlib.nullcontext()
    return torch.cuda.device(device)
