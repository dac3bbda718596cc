"""The learning rate that reaches a target in the fewest steps, at one batch size.

A grid of factor 2 around a start, extended while its best is at an edge, refined by √2, and once more at the lowest
point of the parabola through the best three: the optimum is a cliff, where one step higher often never arrives.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Score = tuple[float, float]
"""Steps to the target, infinite where it was not reached; then how far off the end was, infinite after divergence."""

MAX_EXTENSIONS = 12
OCTAVE = 2
"""Places of the grid are half octaves: log2(lr / start) = place / 2."""

LEAST_SHIFT = 0.15
"""In half octaves: nearer to the best rate than 5 % a parabola's lowest point is not worth a run."""


@dataclass(frozen=True, slots=True)
class BestRate:
    """The best of the rates that were tried.

    Attributes:
        lr: The rate.
        score: What it reached.
        is_at_edge: It is the smallest or the largest that was tried, so a better one may lie beyond.
    """

    lr: float
    score: Score
    is_at_edge: bool


def search(score: Callable[[float], Score], start: float) -> BestRate:
    """The best learning rate near a start.

    Args:
        score: Trains at a rate; smaller is better.
        start: The first rate tried; at most a factor 4096 from the best.
    """
    tried: dict[int, Score] = {}

    def at(place: int) -> Score:
        if place not in tried:
            tried[place] = score(start * 2 ** (place / OCTAVE))
        return tried[place]

    for place in (0, OCTAVE, -OCTAVE):
        at(place)
    for _ in range(MAX_EXTENSIONS):
        best = _best(tried)
        if min(tried) < best < max(tried):
            break
        at(best + OCTAVE if best == max(tried) else best - OCTAVE)
    best = _best(tried)
    if math.isinf(tried[best][0]):  # refining what never arrives finds nothing
        return BestRate(start * 2 ** (best / OCTAVE), tried[best], is_at_edge=best in (min(tried), max(tried)))
    for place in (best - 1, best + 1):
        at(place)
    best = _best(tried)
    found = BestRate(start * 2 ** (best / OCTAVE), tried[best], is_at_edge=best in (min(tried), max(tried)))
    shift = _vertex(tried.get(best - 1), tried[best], tried.get(best + 1))
    if abs(shift) < LEAST_SHIFT:
        return found
    lr = start * 2 ** ((best + shift) / OCTAVE)
    at_vertex = score(lr)
    return BestRate(lr, at_vertex, found.is_at_edge) if at_vertex < found.score else found


def best_of(score: Callable[[float], Score], rates: Sequence[float]) -> BestRate:
    """The best of given rates; a single one is taken as chosen and at no edge."""
    scores = {lr: score(lr) for lr in sorted(rates)}
    lr = min(scores, key=lambda rate: scores[rate])
    return BestRate(lr, scores[lr], is_at_edge=len(scores) > 1 and lr in (min(scores), max(scores)))


def _best(tried: dict[int, Score]) -> int:
    return min(tried, key=lambda place: tried[place])


def _vertex(before: Score | None, at: Score, after: Score | None) -> float:
    """Where the parabola through three log steps is lowest, in places from the middle one; 0 if one is unknown."""
    if before is None or after is None or math.isinf(before[0] + after[0]):
        return 0.0
    left, middle, right = (math.log(score[0]) for score in (before, at, after))
    curve = left - 2 * middle + right
    return 0.0 if curve <= 0 else (left - right) / (2 * curve)
