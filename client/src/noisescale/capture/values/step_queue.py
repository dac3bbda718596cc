"""Logged steps on their way: from the device, and through the sums over ranks of a data-parallel job."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from torch import Tensor

from noisescale.capture.kinds.kind import Kind
from noisescale.capture.sums.device_values import DeviceValues
from noisescale.capture.sums.held_rows import HeldNorms
from noisescale.capture.sums.step_norms import StepNorms
from noisescale.capture.values.arrived_step import read_step
from noisescale.capture.values.sent_step import SentStep

if TYPE_CHECKING:
    from noisescale.capture.hooks.exchange import RankExchange

Tag = TypeVar("Tag")


class StepQueue(Generic[Tag]):
    """Steps in the order in which they were logged; nobody waits for them before the end."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds = kinds
        self._values: DeviceValues[SentStep[Tag]] = DeviceValues()
        self._waiting: deque[tuple[SentStep[Tag], Sequence[float]]] = deque()
        self.exchange: RankExchange | None = None

    def __len__(self) -> int:
        """Steps on their way."""
        return len(self._values) + len(self._waiting)

    @property
    def may_wait(self) -> bool:
        """Whether nothing is on its way, or only what is held until somebody asks or time has passed."""
        return not len(self) or (self.exchange is None and self._values.is_held)

    def is_late(self) -> bool:
        """Whether a step that was held has arrived by now."""
        return self._values.is_late()

    def hurry(self) -> None:
        """Let those steps arrive that are held."""
        self._values.hurry()

    def send(self, sent: SentStep[Tag], values: Tensor | HeldNorms) -> None:
        """Start the journey of a step's vector; returns at once."""
        self._values.send(sent, values)

    def arrived(self) -> list[tuple[Tag, StepNorms]]:
        """Steps whose numbers are all on the host, oldest first; never waits."""
        return self._read(self._values.arrived())

    def drain(self) -> list[tuple[Tag, StepNorms]]:
        """All steps; waits for the device, and for other ranks for a few seconds at most."""
        if self.exchange is not None:
            self.exchange.drain()
        return self._read(self._values.drain())

    def _read(self, arrivals: Sequence[tuple[SentStep[Tag], Sequence[float]]]) -> list[tuple[Tag, StepNorms]]:
        if self.exchange is None:
            return [read_step(sent, values, self._kinds) for sent, values in arrivals]
        self.exchange.advance()
        self._waiting.extend(arrivals)
        steps = []
        while self._waiting and self._waiting[0][0].is_there:
            steps.append(read_step(*self._waiting.popleft(), self._kinds))
        return steps
