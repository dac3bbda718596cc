"""Arithmetic of ranges of record numbers."""

from collections.abc import Iterable, Iterator, Sequence

from noisescale.transport.wire import LostRange


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
