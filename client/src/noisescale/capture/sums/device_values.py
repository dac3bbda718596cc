"""Numbers that a device computed, read without ever waiting for it."""

import time
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor

# K rows of all steps that are held, C columns

HELD_SECONDS = 0.1
"""How late the norms of a step may be; steps that come less often than this are not held."""

Tag = TypeVar("Tag")


# Squared norms that wait to be computed together with those of the next steps.
#
# Code that runs once a step is slow: the training has pushed it out of the processor's caches. Eight steps at once cost
# little more than one.


class HeldNorms:
    """Σ g² of neighbouring rows that will be reduced together with those of other steps.

    Stands in for a vector on its way, and for the event that says that it has arrived.

    Args:
        rows: Where the rows lie.
        num_rows: How many.
        num_columns: C.
    """

    __slots__ = ("_first", "_rows", "shape")

    def __init__(self, rows: "HeldRows", num_rows: int, num_columns: int) -> None:
        self._rows = rows
        self._first = rows.num_rows
        self.shape = num_rows, num_columns

    def query(self) -> bool:
        """Whether the rows have been reduced; those that are due are reduced now."""
        return self._rows.is_reduced or (self._rows.is_due() and self._rows.reduce())

    def synchronize(self) -> None:
        """Reduce the rows now."""
        if not self._rows.is_reduced:
            self._rows.reduce()

    def tensor(self) -> Tensor:
        """[K, C] fp64; reduces the rows now."""
        self.synchronize()
        return self._rows.sq_norm_KC[self._first : self._first + self.shape[0]]

    def tolist(self) -> list[float]:
        """Row by row."""
        self.synchronize()
        num_rows, num_columns = self.shape
        return self._rows.values[self._first * num_columns : (self._first + num_rows) * num_columns]


class HeldRows:
    """Rows that are reduced together.

    Args:
        reduce: From the number of rows to Σ g² of each, [K, C] fp64.
        capacity: Rows that there is room for.
        deadline: When they are to be reduced at the latest, by `time.perf_counter()`.

    Attributes:
        num_rows: K of all steps so far.
        sq_norm_KC: Σ g², fp64, once they are reduced.
        values: The same row by row.
    """

    def __init__(self, reduce: Callable[[int], Tensor], capacity: int, deadline: float) -> None:
        self.num_rows = 0
        self.is_reduced = False
        self._reduce = reduce
        self._capacity = capacity
        self._deadline = deadline
        self._num_newest = 0

    def add(self, num_rows: int) -> None:
        """Count the rows of a step."""
        self._num_newest = num_rows
        self.num_rows += num_rows

    def has_room(self, num_rows: int) -> bool:
        """Whether the rows of another step may be held as well."""
        return not self.is_reduced and self.num_rows + num_rows <= self._capacity

    def is_due(self) -> bool:
        """Whether there is no room for another step like the newest, or its time has come."""
        return not self.has_room(self._num_newest) or time.perf_counter() >= self._deadline

    def reduce(self) -> bool:
        """Add the squares up; True."""
        self.sq_norm_KC = self._reduce(self.num_rows)
        self.values: list[float] = self.sq_norm_KC.flatten().tolist()
        self.is_reduced = True
        return True


class DeviceEvent(Protocol):
    """What this file needs of `torch.cuda.Event`."""

    def record(self) -> None:
        """Mark this point of the device's queue."""

    def query(self) -> bool:
        """Whether the device has passed the mark."""

    def synchronize(self) -> None:
        """Wait until it has."""


class DeviceValues(Generic[Tag]):
    """A queue of fp64 vectors on their way to the host, each with a tag.

    CPU values are there at once, unless they are held to be computed together with later ones. From CUDA a vector
    travels through a pinned buffer behind an event and is read when a later call finds the event passed, normally one
    step late.
    """

    def __init__(self, make_event: Callable[[], DeviceEvent] | None = None) -> None:
        self._make_event = make_event
        self._on_their_way: deque[tuple[Tag, Tensor | HeldNorms, DeviceEvent | HeldNorms | None]] = deque()

    def __len__(self) -> int:
        """Vectors on their way."""
        return len(self._on_their_way)

    @property
    def is_held(self) -> bool:
        """Whether the newest vector is held, and nothing but time will make it arrive."""
        return bool(self._on_their_way) and isinstance(self._on_their_way[-1][1], HeldNorms)

    def is_late(self) -> bool:
        """Whether the oldest vector, which was held, has arrived by now."""
        return bool(self._on_their_way) and _is_there(self._on_their_way[0][2])

    def hurry(self) -> None:
        """Let those arrive that are held."""
        for _, values, _ in self._on_their_way:
            if isinstance(values, HeldNorms):
                values.synchronize()

    def send(self, tag: Tag, values: Tensor | HeldNorms) -> None:
        """Start the journey of a vector; returns at once."""
        if isinstance(values, HeldNorms) and self._make_event is None:
            self._on_their_way.append((tag, values, values))
            return
        values = values.tensor().reshape(-1) if isinstance(values, HeldNorms) else values
        make_event = self._make_event or (torch.cuda.Event if values.is_cuda else None)
        if make_event is None:
            self._on_their_way.append((tag, values, None))
            return
        # The caching host allocator hands a pinned block out again only when the copy into it is over.
        buffer = torch.empty(values.shape, dtype=values.dtype, pin_memory=values.is_cuda)
        buffer.copy_(values, non_blocking=True)
        event = make_event()
        event.record()
        self._on_their_way.append((tag, buffer, event))

    def arrived(self) -> list[tuple[Tag, list[float]]]:
        """The vectors that have arrived, in the order sent; never waits."""
        arrivals = []
        while self._on_their_way and _is_there(self._on_their_way[0][2]):
            tag, values, _ = self._on_their_way.popleft()
            arrivals.append((tag, values.tolist()))
        return arrivals

    def drain(self) -> list[tuple[Tag, list[float]]]:
        """All vectors; waits for the device, so for the end of a run only."""
        for _, _, event in self._on_their_way:
            if event is not None:
                event.synchronize()
        return self.arrived()


def _is_there(event: DeviceEvent | HeldNorms | None) -> bool:
    return event is None or event.query()


def device_name(device: torch.device) -> str:
    """What people call a device: "NVIDIA H200", or its type."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
