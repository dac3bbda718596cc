"""The clock of calls on a device, by a device that is played: what the host takes is not in the device's time."""

import pytest
import torch
from benchmarks.kernels import timing
from benchmarks.kernels.timing import HOLD_LEAST_SECONDS, WARM_UP_CALLS, Clock

LAUNCHES = 5
HOST_SECONDS, DEVICE_SECONDS = 1e-3, 0.4e-3
"""Of one launch: the host is the slower one, as with small kernels."""


class PlayedDevice:
    """A queue that works as soon as something is in it, and a host that fills it; both have a time of their own."""

    def __init__(self):
        self.host = 0.0
        self.is_free_at = 0.0
        self.log = []

    def works(self, seconds):
        self.is_free_at = max(self.is_free_at, self.host) + seconds

    def wait(self, device=None):
        self.host = max(self.host, self.is_free_at)

    def call(self):
        self.log.append("call")
        for _ in range(LAUNCHES):
            self.host += HOST_SECONDS
            self.works(DEVICE_SECONDS)

    def event(self, *, enable_timing):
        return PlayedEvent(self)


class PlayedEvent:
    def __init__(self, device):
        self._device = device

    def record(self):
        self._device.works(0)
        self.at = self._device.is_free_at

    def elapsed_time(self, end):
        return 1e3 * (end.at - self.at)


class PlayedBuffer:
    def __init__(self, device):
        self._device = device

    def sum(self):
        self._device.log.append("flush")
        self._device.works(0.1)


@pytest.fixture
def played(monkeypatch):
    device = PlayedDevice()
    monkeypatch.setattr(torch.cuda, "Event", device.event)
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: device.works(cycles / timing.CYCLES_PER_SECOND))
    monkeypatch.setattr(torch.cuda, "synchronize", device.wait)
    monkeypatch.setattr(timing.time, "perf_counter", lambda: device.host)
    monkeypatch.setattr(timing.torch, "ones", lambda count, device: None)
    return device


@pytest.fixture
def clock(played, monkeypatch):
    clock = Clock(torch.device("cuda", 0))
    monkeypatch.setattr(clock, "_flush", PlayedBuffer(played))
    return clock


def test_the_devices_time_holds_no_gap_in_which_it_waits_for_the_host(played, clock):
    times = clock.measure({"a": played.call}, rounds=2)["a"]

    assert times.device == pytest.approx([LAUNCHES * DEVICE_SECONDS] * 4)
    assert times.work is times.device


def test_the_hosts_time_ends_when_the_call_returns_and_the_walls_when_the_result_is_there(played, clock):
    times = clock.measure({"a": played.call}, rounds=1)["a"]

    assert times.host == pytest.approx([LAUNCHES * HOST_SECONDS] * 2)
    assert times.wall == pytest.approx([LAUNCHES * HOST_SECONDS + DEVICE_SECONDS] * 2)


def test_caches_are_emptied_before_every_call_that_is_timed(played, clock):
    clock.measure({"a": played.call}, rounds=1)

    hold, *timed = played.log
    assert hold == "call"
    assert timed == ["flush", "call"] * 4  # two visits, each timed by the host and by the device


def test_a_call_that_returns_at_once_still_holds_the_device_until_all_is_in_the_queue(played, clock):
    held = []
    works = played.works
    played.works = lambda seconds: (held.append(seconds), works(seconds))[1]

    clock.measure({"a": lambda: works(DEVICE_SECONDS)}, rounds=1)

    assert max(seconds for seconds in held if seconds < 0.1) == pytest.approx(HOLD_LEAST_SECONDS)


def test_a_device_is_warmed_up_by_several_calls_and_a_cpu_by_one(played, clock):
    clock.warm_up(played.call)
    on_device = len(played.log)
    Clock(torch.device("cpu")).warm_up(played.call)

    assert (on_device, len(played.log) - on_device) == (WARM_UP_CALLS, 1)


def test_the_quickest_call_is_the_one_whose_work_takes_least_on_the_device(played, clock):
    def quick_for_the_host():
        played.works(5e-3)

    assert clock.quickest({"quick for the host": quick_for_the_host, "quick": played.call}) == "quick"
