"""Hours in milliseconds: threads that sleep take turns, and the clock jumps to whoever wakes next.

One thread runs at a time, until it waits: for a moment, an event, a condition or another thread. So the transport runs
as it is, with its own threads, and the same seed makes the same story.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import ModuleType, SimpleNamespace
from unittest import mock

from noisescale import outbox
from noisescale.commands import sync
from noisescale.transport.spool import disk_spool, segment, segments, stream_folder
from noisescale.transport.upload import late_delivery, pace, uploader

PATCHED: Mapping[ModuleType, tuple[str, ...]] = {
    disk_spool: ("time", "threading"),
    late_delivery: ("time",),
    outbox: ("time", "threading"),
    pace: ("time",),
    segment: ("time",),
    segments: ("time",),
    stream_folder: ("time",),
    sync: ("time",),
    uploader: ("time", "threading"),
}
"""The modules that wait, and what they wait with."""

NEVER = float("inf")


class _Facade:
    """A module of which some functions are others."""

    def __init__(self, module: ModuleType, others: SimpleNamespace) -> None:
        self._module, self._others = module, others

    def __getattr__(self, name: str) -> object:
        return getattr(self._others, name, None) or getattr(self._module, name)


class Ended(BaseException):
    """The process of this thread was killed."""


class Turn:
    """A thread that waits for its turn."""

    def __init__(self, wakes_at: float, number: int, awaited: object, thread: "SimulatedThread | None") -> None:
        self.wakes_at = wakes_at
        self.number = number
        self.awaited = awaited
        self.thread = thread
        self.is_killed = False
        self.baton = threading.Semaphore(0)


class SimulatedTime:
    """A clock and what stands in for the modules `time` and `threading`."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._started_at = time.time()
        self._numbers = itertools.count()
        self._turns: list[Turn] = []
        self._own = threading.local()
        self.time = SimpleNamespace(
            monotonic=lambda: self.now,
            perf_counter=lambda: self.now,
            time=lambda: self._started_at + self.now - 1000.0,
            sleep=self.sleep,
        )
        self.threading = SimpleNamespace(
            Thread=lambda **settings: SimulatedThread(self, **settings),
            Condition=lambda: SimulatedCondition(self),
            Event=lambda: SimulatedEvent(self),
            Lock=threading.Lock,
            RLock=threading.RLock,
            current_thread=lambda: self.current_thread,
        )

    @contextmanager
    def patched(self) -> Iterator[None]:
        """The transport waits by this clock."""
        with ExitStack() as stack:
            for module, names in PATCHED.items():
                own = {name: _Facade(getattr(module, name), getattr(self, name)) for name in names}
                stack.enter_context(mock.patch.multiple(module, **own))
            stack.callback(self.kill_others)
            yield

    @property
    def current_thread(self) -> "SimulatedThread | None":
        """The one that runs; None: the one that has made this clock."""
        return getattr(self._own, "thread", None)

    def sleep(self, seconds: float) -> None:
        """Let the others run for so long."""
        self.wait(None, seconds)

    def wait(self, awaited: object, seconds: float | None) -> None:
        """Let the others run until somebody notifies, or for so long."""
        wakes_at = NEVER if seconds is None else self.now + max(1e-6, seconds)
        own = Turn(wakes_at, next(self._numbers), awaited, self.current_thread)
        self._turns.append(own)
        self._next(own)
        if own.is_killed:
            raise Ended

    def notify(self, awaited: object) -> None:
        """Whoever waits for this has a turn soon."""
        for turn in self._turns:
            if turn.awaited is awaited:
                turn.wakes_at = self.now

    def begin(self, thread: "SimulatedThread") -> Turn:
        """The first turn of a thread."""
        turn = Turn(self.now, next(self._numbers), None, thread)
        self._turns.append(turn)
        return turn

    def adopt(self, thread: "SimulatedThread") -> None:
        """This real thread is that simulated one."""
        self._own.thread = thread

    def end(self) -> None:
        """The running thread is over."""
        self._next(None)

    def _next(self, own: Turn | None) -> None:
        turn = min(self._turns, key=lambda one: (one.wakes_at, one.number))
        assert turn.wakes_at < NEVER, "everybody waits for somebody"
        self._turns.remove(turn)
        self.now = max(self.now, turn.wakes_at)
        if turn is own:
            return
        turn.baton.release()
        if own is not None:
            own.baton.acquire()

    def kill_others(self) -> None:
        """End every other thread where it waits, as SIGKILL does: nothing of theirs runs any more but `finally`."""
        while others := [turn for turn in self._turns if turn.thread is not None]:
            turn = others[0]
            self._turns.remove(turn)
            turn.is_killed = True
            assert turn.thread is not None
            turn.thread.is_killed = True
            turn.baton.release()
            turn.thread.real.join()


class SimulatedThread:
    """Stands in for `threading.Thread`."""

    def __init__(
        self,
        clock: SimulatedTime,
        target: Callable[..., None],
        args: tuple[object, ...] = (),
        name: str = "",
        daemon: bool = True,
    ) -> None:
        self._clock, self._target, self._args = clock, target, args
        self._is_alive = False
        self.is_killed = False
        self.real = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._is_alive = True
        self._turn = self._clock.begin(self)
        self.real.start()

    def _run(self) -> None:
        self._turn.baton.acquire()
        self._clock.adopt(self)
        try:
            if not self.is_killed:
                self._target(*self._args)
        except Ended:
            pass
        finally:
            self._is_alive = False
            self._clock.notify(self)
            if not self.is_killed:
                self._clock.end()

    def join(self, timeout: float | None = None) -> None:
        if self._is_alive:
            self._clock.wait(self, timeout)

    def is_alive(self) -> bool:
        return self._is_alive


class SimulatedCondition:
    """Stands in for `threading.Condition`."""

    def __init__(self, clock: SimulatedTime) -> None:
        self._clock = clock
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exception: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> None:
        self._lock.release()
        try:
            self._clock.wait(self, timeout)
        finally:
            self._lock.acquire()

    def notify_all(self) -> None:
        self._clock.notify(self)


class SimulatedEvent:
    """Stands in for `threading.Event`."""

    def __init__(self, clock: SimulatedTime) -> None:
        self._clock = clock
        self._is_set = False

    def set(self) -> None:
        self._is_set = True
        self._clock.notify(self)

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_set:
            self._clock.wait(self, timeout)
        return self._is_set
