"""Numbers that a device computed, read without ever waiting for it."""

from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor

from noisescale.capture.sums.held_rows import HeldNorms

Tag = TypeVar("Tag")


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
