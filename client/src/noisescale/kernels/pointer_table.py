"""Tables of addresses, written by the host and read by kernels, without either waiting for the other."""

from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

NUM_SLOTS = 4
"""Tables in turn: as many calls may be under way before a further table is made."""

NUM_SPARES = 4
"""Tables made beforehand for captures: memory should not be pinned during one."""


class StreamMark(Protocol):
    """A mark in a stream of work."""

    def record(self) -> None:
        """Put it behind all work so far."""
        ...

    def query(self) -> bool:
        """Whether the device has come past it."""
        ...


class Device(Protocol):
    """What a table has to know about the device."""

    def new_event(self) -> StreamMark:
        """A mark that nothing waits for yet."""
        ...

    def is_capturing(self) -> bool:
        """Whether calls are recorded into a graph instead of being run."""
        ...

    def stream(self) -> int:
        """The stream that work goes to now."""
        ...


class CudaDevice:
    """A CUDA device, as a table sees it."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        # a private name of torch, which Triton rests on, too; it makes no object
        self._raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)

    def new_event(self) -> StreamMark:
        """See `Device`."""
        return torch.cuda.Event()

    def is_capturing(self) -> bool:
        """See `Device`."""
        return torch.cuda.is_current_stream_capturing()

    def stream(self) -> int:
        """See `Device`."""
        if self._raw_stream is not None and self._device.index is not None:
            return int(self._raw_stream(self._device.index))
        return torch.cuda.current_stream(self._device).cuda_stream


class PassedEvent:
    """A mark that the device is always past."""

    def record(self) -> None:
        """See `StreamMark`."""

    def query(self) -> bool:
        """See `StreamMark`."""
        return True


class HostDevice:
    """The host itself, where each call is over when it returns."""

    def new_event(self) -> StreamMark:
        """See `Device`."""
        return PassedEvent()

    def is_capturing(self) -> bool:
        """See `Device`."""
        return False

    def stream(self) -> int:
        """See `Device`."""
        return 0


@dataclass(slots=True)
class Slot:
    """One table: its copy on the host, from where it travels, the part of that which changes, and on the device."""

    host: Tensor
    changing: Tensor
    device: Tensor
    event: StreamMark
    stream: int = -1
    entries: tuple[int, ...] | None = None


class PointerTable:
    """Integers that the host writes and a kernel reads, for call after call.

    With one table the host would overwrite what is still being copied, or read. So each call takes the next of a ring
    that the device is done with, and a new one if there is none: it never waits. Entries that are still those of the
    last call are not sent again.

    A captured graph copies the table from the host's memory whenever it is replayed. So each call that is captured gets
    a table of its own, which is never written again.

    Args:
        num_entries: Integers that change from call to call.
        device: Where kernels read it.
        seen_as: Stands in for the device's events and streams.
        constants: Integers before them that are the same in every call.
    """

    def __init__(
        self,
        num_entries: int,
        device: torch.device,
        seen_as: Device | None = None,
        constants: Sequence[int] = (),
    ) -> None:
        self._num_entries = num_entries
        self._constants = torch.tensor(constants, dtype=torch.int64)
        self._device = device
        self._seen_as = seen_as or (CudaDevice(device) if device.type == "cuda" else HostDevice())
        self._ring = [self._new_slot() for _ in range(NUM_SLOTS)]
        self._newest = self._ring[0]
        self._spares: list[Slot] = []
        self._captured: list[Slot] = []

    @property
    def num_slots(self) -> int:
        """Tables there are, but for those that belong to graphs."""
        return len(self._ring)

    @property
    def is_in_graph(self) -> bool:
        """Whether a graph may read a table whenever it is replayed, so that all must stay."""
        return bool(self._captured)

    @contextmanager
    def holding(self, entries: Sequence[int]) -> Iterator[Tensor]:
        """The table, int64 on the device, constants first, to be read by kernels that are launched inside."""
        if self._seen_as.is_capturing():
            slot = self._spares.pop() if self._spares else self._new_slot()
            self._captured.append(slot)
            self._send(slot, tuple(entries))
            yield slot.device
            return
        while len(self._spares) < NUM_SPARES:
            self._spares.append(self._new_slot())
        slot = self._slot_with(tuple(entries))
        yield slot.device
        slot.event.record()

    def _slot_with(self, entries: tuple[int, ...]) -> Slot:
        stream = self._seen_as.stream()
        if self._newest.entries == entries and self._newest.stream == stream:
            return self._newest
        slot = next((slot for slot in self._ring if slot is not self._newest and slot.event.query()), None)
        if slot is None:
            slot = self._new_slot()
            self._ring.append(slot)
        slot.stream = stream
        self._send(slot, entries)
        self._newest = slot
        return slot

    def _send(self, slot: Slot, entries: tuple[int, ...]) -> None:
        slot.entries = entries
        slot.changing.copy_(torch.frombuffer(array("q", entries), dtype=torch.int64))  # quicker than torch.tensor
        slot.device.copy_(slot.host, non_blocking=True)

    def _new_slot(self) -> Slot:
        is_pinned = self._device.type == "cuda"
        size = len(self._constants) + self._num_entries
        host = torch.empty(size, dtype=torch.int64, pin_memory=is_pinned)
        host[: len(self._constants)].copy_(self._constants)
        on_device = torch.empty(size, dtype=torch.int64, device=self._device)
        return Slot(host, host[len(self._constants) :], on_device, self._seen_as.new_event())
