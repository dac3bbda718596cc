"""Which records of a stream will never come, and which of that is on disk for whoever finds the folder."""

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from noisescale.transport.wire import LostRange

# Arithmetic of ranges of record numbers.


def merged(ranges: Iterable[LostRange]) -> list[LostRange]:
    """Disjoint ranges in order; neighbours with the same reason are one."""
    found: list[LostRange] = []
    for one in sorted(ranges, key=lambda one: one.first):
        if found and found[-1].last + 1 == one.first and found[-1].reason == one.reason:
            found[-1] = LostRange(found[-1].first, one.last, one.reason)
        else:
            found.append(one)
    return found


def clipped(ranges: Iterable[LostRange], first: int, last: int) -> list[LostRange]:
    """What of the ranges lies between two numbers, both included."""
    return [
        LostRange(max(one.first, first), min(one.last, last), one.reason)
        for one in ranges
        if one.first <= last and one.last >= first
    ]


def without(first: int, last: int, others: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The parts of a range that are in no other range."""
    for other_first, other_last in sorted(others):
        if other_last < first:
            continue
        if other_first > last:
            break
        if other_first > first:
            yield first, other_first - 1
        first = other_last + 1
    if first <= last:
        yield first, last


def is_in(ranges: Sequence[LostRange], seq: int) -> bool:
    """Whether a number is in one of the ranges."""
    return any(one.first <= seq <= one.last for one in ranges)


class LossBook:
    """Losses between the threads that give records up, the one that writes, and the one that declares.

    Attributes:
        unsaid: What the stream was not told yet.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: list[LostRange] = []
        self._unwritten: deque[LostRange] = deque()
        self.unsaid: deque[LostRange] = deque()

    @property
    def has_unwritten(self) -> bool:
        """Whether there is something to write."""
        return bool(self._unwritten)

    def give_up(self, lost: LostRange) -> None:
        """The spool itself gives records up: to be written, and to be told to the stream."""
        self.unsaid.append(lost)
        self.remember(lost)

    def remember(self, lost: LostRange) -> bool:
        """Have a loss written; False where nothing about it is new."""
        with self._lock:
            known = [(one.first, one.last) for one in self._known]
            parts = [LostRange(first, last, lost.reason) for first, last in without(lost.first, lost.last, known)]
            self._known = merged([*self._known, *parts])
            for part in parts:
                self._to_be_written(part)
        return bool(parts)

    def _to_be_written(self, lost: LostRange) -> None:
        """One range where many records are given up one after another."""
        last = self._unwritten[-1] if self._unwritten else None
        if last is not None and last.last + 1 == lost.first and last.reason == lost.reason:
            self._unwritten[-1] = LostRange(last.first, lost.last, lost.reason)
        else:
            self._unwritten.append(lost)

    def take_unsaid(self) -> Sequence[LostRange]:
        """What the stream was not told yet."""
        if not self.unsaid:
            return ()
        losses = []
        while self.unsaid:
            losses.append(self.unsaid.popleft())
        return losses

    def take_unwritten(self) -> LostRange | None:
        """The next one to write."""
        with self._lock:
            return self._unwritten.popleft() if self._unwritten else None

    def give_back(self, lost: LostRange) -> None:
        """It could not be written."""
        self._unwritten.appendleft(lost)

    def write_all_again(self) -> None:
        """A file is gone, and what it knew about losses with it."""
        with self._lock:
            self._unwritten = deque(self._known)

    def known(self) -> Sequence[LostRange]:
        """All that the server has no account of, the newest first."""
        with self._lock:
            return sorted(self._known, key=lambda one: -one.first)

    def acknowledge(self, seq: int) -> None:
        """The server has an account of everything up to here."""
        with self._lock:
            self._known = [lost for lost in self._known if lost.last > seq]
