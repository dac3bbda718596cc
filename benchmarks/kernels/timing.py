"""Times of calls on a device: in the order A-B-B-A, with cold caches, the device's time apart from the host's."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

WARM_UP_CALLS = 4
"""On a GPU: the first compiles or tunes, the others fill the allocator and the pinned tables. A CPU has neither."""

FLUSH_BYTES = 2**28
"""Five times the 50 MB of an H200's L2, and more than the last cache of a CPU."""

HOLD_MARGIN = 2.0
HOLD_LEAST_SECONDS = 20e-6
CYCLES_PER_SECOND = 2e9
"""Of the fastest clock of a GPU in use: a slower one holds longer, which is no harm."""

Call = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of one contender's calls, in the order of the visits: two a round.

    Attributes:
        wall: From the call until its result is there, the queue empty before.
        host: Until the call returned, without waiting for the device.
        device: Between two events around the work, which was all in the queue when it began; empty on a CPU.
    """

    wall: list[float] = field(default_factory=list)
    host: list[float] = field(default_factory=list)
    device: list[float] = field(default_factory=list)

    @property
    def work(self) -> list[float]:
        """Seconds in which bytes are moved: the device's own where it has a clock."""
        return self.device or self.wall


@dataclass(frozen=True, slots=True)
class Launches:
    """What one call puts into the device's queue.

    Attributes:
        kernels: Started.
        copies: Copies and fills of memory.
    """

    kernels: int
    copies: int


def palindrome(names: Sequence[str]) -> list[str]:
    """A-B-B-A for two, and so on for more: a machine that drifts favours nobody."""
    return [*names, *reversed(names)]


class Clock:
    """Times calls on one device.

    Args:
        device: On which the calls work.
        flush_bytes: Read before each call, so that caches hold nothing of the tensors.
    """

    def __init__(self, device: torch.device, flush_bytes: int = FLUSH_BYTES) -> None:
        self._device = device
        self._flush = torch.ones(flush_bytes // 4, device=device)

    def measure(self, calls: Mapping[str, Call], rounds: int) -> dict[str, Times]:
        """Times of all calls, in so many rounds of A-B-B-A.

        Args:
            calls: By name, warmed up.
            rounds: Each visits every call twice.
        """
        times = {name: Times() for name in calls}
        holds = {name: self._hold_seconds(call) for name, call in calls.items()}
        for _ in range(rounds):
            for name in palindrome(list(calls)):
                self._visit(calls[name], holds[name], times[name])
        return times

    def quickest(self, calls: Mapping[str, Call], rounds: int = 3) -> str:
        """The name of the call with the smallest median."""
        for call in calls.values():
            self.warm_up(call)
        times = self.measure(calls, rounds)
        return min(times, key=lambda name: statistics.median(times[name].work))

    def warm_up(self, call: Call) -> None:
        """Call until nothing is compiled, tuned or allocated any more."""
        for _ in range(WARM_UP_CALLS if self._device.type == "cuda" else 1):
            call()
        self.wait()

    def wait(self) -> None:
        """Until the device has nothing to do."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def _visit(self, call: Call, hold_seconds: float, times: Times) -> None:
        self._cool()
        start = time.perf_counter()
        call()
        times.host.append(time.perf_counter() - start)
        self.wait()
        times.wall.append(time.perf_counter() - start)
        if self._device.type == "cuda":
            times.device.append(self._device_seconds(call, hold_seconds))

    def _device_seconds(self, call: Call, hold_seconds: float) -> float:
        """The device spins while the host fills the queue, so that the host's gaps are not between the events.

        A call of more than the thousand launches that a queue holds is timed with such gaps.
        """
        self._cool()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(int(hold_seconds * CYCLES_PER_SECOND))
        start.record()
        call()
        end.record()
        self.wait()
        return start.elapsed_time(end) / 1e3

    def _cool(self) -> None:
        """Fill the caches by reading: written lines would still have to leave while the next call is timed."""
        self._flush.sum()
        self.wait()

    def _hold_seconds(self, call: Call) -> float:
        if self._device.type != "cuda":
            return 0.0
        self.wait()
        start = time.perf_counter()
        call()
        seconds = time.perf_counter() - start
        self.wait()
        return max(HOLD_LEAST_SECONDS, HOLD_MARGIN * seconds)


def launches_of(call: Call, device: torch.device) -> Launches | None:
    """What the profiler sees on the device during one call; None where there is no such device."""
    if device.type != "cuda":
        return None
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        call()
        torch.cuda.synchronize(device)
    names = [event.name for event in profiler.events() if event.device_type == DeviceType.CUDA]
    copies = sum(name.startswith(("Memcpy", "Memset")) for name in names)
    return Launches(len(names) - copies, copies)
