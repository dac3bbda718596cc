"""What a row holds besides its own terms: the sums of each layer, and what it says of the path of the parameters."""

import sys
from array import array
from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple

from noisescale_core.estimators.path import Promised

TOP_BYTE = 7 if sys.byteorder == "little" else 0

BELOW = 2.0**177
BYTES_BELOW = bytes(range(0x4B))
"""The top bytes of all numbers from 0 to there."""

MAX_WAITING = 16
"""Steps that are added up together."""

TermsOf = Callable[[float, float, float, float], tuple[float, float]]
"""tr Σ and |G|² from two squared norms and two sizes, by arithmetic alone: it also takes arrays."""

Sums = list[list[float]]
"""Of each layer Σ tr Σ, Σ |G|², Σ (tr Σ)², Σ |G|⁴ and Σ tr Σ |G|², a list each."""


class LayerNorms(NamedTuple):
    """The layers of one step in columns, not yet turned into terms.

    Attributes:
        terms_of: Gives the terms of one layer.
        first: Its first argument for each layer.
        second: Its second.
        sizes: The others, the same for all layers.
        packed: Both columns as `packed_columns` gives them; None where nobody has asked.
    """

    terms_of: TermsOf
    first: Sequence[float]
    second: Sequence[float]
    sizes: tuple[float, float]
    packed: bytes | None = None


def packed_columns(first: Sequence[float], second: Sequence[float]) -> bytes:
    """Both columns as fp64, one after the other."""
    # a column at a time and by a known form: two thirds of the time
    return _packing(len(first))(*first) + _packing(len(second))(*second)


@lru_cache(maxsize=8)
def _packing(num_numbers: int) -> Callable[..., bytes]:
    return Struct(f"{num_numbers}d").pack


def are_all_below(packed: bytes) -> bool:
    """Whether all packed numbers are at least 0 and below `BELOW`, which NaN is not.

    The byte with the sign and the upper seven bits of the exponent tells, so hundreds take a fraction of a µs.
    """
    return not packed[TOP_BYTE::8].translate(None, BYTES_BELOW)


class LayerSums:
    """The layers of some steps.

    Args:
        num_layers: At least one.

    Attributes:
        num_updates: Steps so far.
    """

    def __init__(self, num_layers: int) -> None:
        self.num_updates = 0
        self._num_layers = num_layers
        self._sums: Sums = [[0.0] * num_layers for _ in range(5)]
        self._terms_of: TermsOf | None = None
        self._waiting: list[tuple[bytes, tuple[float, float]]] = []

    def add(self, layers: LayerNorms) -> None:
        """Add one step; one with another number of layers is of another model, and left out."""
        if len(layers.first) != self._num_layers:
            return
        packed = layers.packed or packed_columns(layers.first, layers.second)
        if layers.terms_of is not self._terms_of or len(self._waiting) >= MAX_WAITING:
            self._add_up()
            self._terms_of = layers.terms_of
        self._waiting.append((packed, layers.sizes))
        self.num_updates += 1

    def moments(self) -> Sums:
        """The sums over all steps."""
        self._add_up()
        return self._sums

    def _add_up(self) -> None:
        waiting, self._waiting = self._waiting, []
        if not waiting or self._terms_of is None:
            return
        numpy = sys.modules.get("numpy")  # never loaded by us: that would take the training 0.1 s
        if numpy is None:
            self._sums = added_in_python(self._sums, self._terms_of, waiting)
        else:
            self._sums = added_with_numpy(numpy, self._sums, self._terms_of, waiting)


def added_in_python(sums: Sums, terms_of: TermsOf, steps: Sequence[tuple[bytes, tuple[float, float]]]) -> Sums:
    """The sums with some packed steps added."""
    for packed, sizes in steps:
        columns = array("d", packed)
        num_layers = len(columns) // 2
        terms = [terms_of(*norms, *sizes) for norms in zip(columns[:num_layers], columns[num_layers:], strict=True)]
        moments = ((trace, signal, trace * trace, signal * signal, trace * signal) for trace, signal in terms)
        columns_of_moments = zip(*moments, strict=True)
        sums = [
            [so_far + moment for so_far, moment in zip(column, added, strict=True)]
            for column, added in zip(sums, columns_of_moments, strict=True)
        ]
    return sums


def added_with_numpy(
    numpy: Any, sums: Sums, terms_of: TermsOf, steps: Sequence[tuple[bytes, tuple[float, float]]]
) -> Sums:
    """The same as `added_in_python`, in one go."""
    columns = numpy.frombuffer(b"".join(packed for packed, _ in steps)).reshape(len(steps), 2, -1)
    sizes = numpy.array([sizes for _, sizes in steps], dtype=float)
    with numpy.errstate(all="ignore"):  # the program may have asked numpy to raise
        trace, signal = terms_of(columns[:, 0], columns[:, 1], sizes[:, :1], sizes[:, 1:])
        moments = numpy.stack([trace, signal, trace * trace, signal * signal, trace * signal], axis=1)
        total = numpy.array(sums)
        for moment in moments:  # and not `sum`, which adds in another order
            total += moment
    found: Sums = total.tolist()
    return found


# What a row says of the path of the parameters.


class PathPart(NamedTuple):
    """What is new of the path since the last row, in the order of the wire format.

    Attributes:
        num_updates: Updates that the sums of the path are of; 0 where nothing but a promise is new.
        sum_sq_norm: Σ |u|² over them; None of none, as the four that follow.
        variance: Of that sum.
        sq_distance: |θ - θ_0|² after the last of them; None where it is not known.
        start: Number of the step whose update was the first since θ_0.
        momentum: Of the optimizer.
        num_promised: Updates that the sum of promises is of.
        promised: -Σ u · G over them; None of none, as its variance.
        promised_variance: Of that sum.
    """

    num_updates: int
    sum_sq_norm: float | None
    variance: float | None
    sq_distance: float | None
    start: int | None
    momentum: float | None
    num_promised: int = 0
    promised: float | None = None
    promised_variance: float | None = None

    @classmethod
    def of_promise(cls, promised: Promised) -> "PathPart":
        """Nothing but a promise."""
        return cls(0, None, None, None, None, None, int(promised.num_updates), promised.total, promised.variance)

    def then(self, later: "PathPart") -> "PathPart":
        """Both as one; of another path the later one alone.

        Args:
            later: What came after it.
        """
        if self.num_updates and later.num_updates and later.start != self.start:
            return later
        newest = later if later.num_updates else self
        return PathPart(
            self.num_updates + later.num_updates,
            _both(self.sum_sq_norm, later.sum_sq_norm),
            _both(self.variance, later.variance),
            self.sq_distance if later.sq_distance is None else later.sq_distance,
            newest.start,
            newest.momentum,
            self.num_promised + later.num_promised,
            _both(self.promised, later.promised),
            _both(self.promised_variance, later.promised_variance),
        )


def _both(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other
