"""The noise scales of many windows at once, as `uncertainty.estimate` has each: a chart asks for hundreds."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final, NamedTuple, Self, overload

import numpy as np
from numpy.typing import NDArray

from noisescale_core.estimators.signal import normal_deviate
from noisescale_core.estimators.student_t import t_quantile
from noisescale_core.estimators.uncertainty import (
    ALONE_Z,
    CONFIRMED_Z,
    MIN_BLOCKS,
    ROUNDING,
    SKEWNESS_ALLOWANCE,
    NoiseScaleEstimate,
    Reason,
    State,
    estimate,
)
from noisescale_core.estimators.windows import RESOLVED_Z, WindowSums, updates_needed

Column = NDArray[np.float64]
Mask = NDArray[np.bool_]

FIELDS: Final = tuple(field.name for field in fields(NoiseScaleEstimate))
_FIELDS_OF = attrgetter(*FIELDS)

_REASONS: Final = np.array(
    [
        None,
        Reason.TRACE_COV_NOT_POSITIVE,
        Reason.GRAD_SQ_NORM_NOT_POSITIVE,
        Reason.TRACE_COV_OF_ROUNDING,
        Reason.INTERVAL_UNBOUNDED,
        Reason.NO_SIGNAL_YET,
    ],
    dtype=object,
)
_LAST_WITHOUT_BOUND, _NO_SIGNAL = 3, 5
_STATES: Final = np.array([State.UNRESOLVED, State.TENTATIVE, State.RESOLVED], dtype=object)


class _Terms(NamedTuple):
    """Means and the covariance of the means, a column each; see `uncertainty.MeansOfTerms`."""

    a: Column
    c: Column
    v_aa: Column
    v_ac: Column
    v_cc: Column


class Estimates(Sequence[NoiseScaleEstimate]):
    """Estimates in columns, as a chart shows them; one by itself is made where it is asked for.

    Attributes:
        columns: By the names of the fields of `NoiseScaleEstimate`.
    """

    __slots__ = ("columns",)

    def __init__(self, columns: Mapping[str, list[Any]]) -> None:
        self.columns = columns

    @classmethod
    def of(cls, estimates: Iterable[NoiseScaleEstimate]) -> Self:
        """The same in columns.

        Args:
            estimates: Each by itself.
        """
        rows = list(map(_FIELDS_OF, estimates))
        columns = zip(*rows, strict=True) if rows else [()] * len(FIELDS)
        return cls(dict(zip(FIELDS, map(list, columns), strict=True)))

    def __len__(self) -> int:
        return len(self.columns["state"])

    @overload
    def __getitem__(self, place: int) -> NoiseScaleEstimate: ...
    @overload
    def __getitem__(self, place: slice) -> list[NoiseScaleEstimate]: ...
    def __getitem__(self, place: int | slice) -> NoiseScaleEstimate | list[NoiseScaleEstimate]:
        if isinstance(place, slice):
            return list(self)[place]
        return NoiseScaleEstimate(*(column[place] for column in self.columns.values()))

    def __iter__(self) -> Iterator[NoiseScaleEstimate]:
        return map(NoiseScaleEstimate, *self.columns.values())


def estimates_of(windows: Column, before: Column, *, has_signal: bool, level: float = 0.95) -> Estimates:
    """One estimate a window: what `uncertainty.estimate` says of each, but for the last bits.

    Args:
        windows: Shape [windows, 10], the sums of each in the order of `WindowSums`.
        before: Sums over the windows before each, of the same shape.
        has_signal: Whether the run so far has shown a gradient.
        level: Confidence level, 0 < level < 1.
    """
    with np.errstate(all="ignore"):  # of windows of too few blocks nothing is kept
        columns = dict(zip(FIELDS, _columns(windows.T, before.T, has_signal, level), strict=True))
    for place in np.flatnonzero(windows[:, 0] < MIN_BLOCKS).tolist():
        m, *sums = windows[place].tolist()
        alone = estimate(WindowSums(int(m), *sums), level=level, has_signal=has_signal)
        for name, column in columns.items():
            column[place] = getattr(alone, name)
    return Estimates(columns)


def _columns(window: Column, before: Column, has_signal: bool, level: float) -> Iterator[list[Any]]:
    """In the order of the fields."""
    num_blocks, num_updates = window[0].astype(np.int64), window[1]
    terms = _terms(window)
    a, c, v_aa, _, v_cc = terms
    z = _z(c, v_cc)
    low, high = _fieller(terms, _quantiles(num_blocks, level) * (1 + SKEWNESS_ALLOWANCE / num_updates))
    has_high = ~np.isnan(high)
    reason = np.select([a <= 0, c <= 0, a < ROUNDING * c, ~has_high], [1, 2, 3, 4], 0)
    if not has_signal:
        reason[(reason == 0) & ~_are_clear(window, reason == 0)] = _NO_SIGNAL
    foreseen = _foreseen(window, before)
    is_confirmed = (z >= CONFIRMED_Z) & ~np.isnan(foreseen)
    is_doubtful = is_confirmed & (foreseen < RESOLVED_Z)
    has_value = reason == 0
    is_resolved = has_value & is_confirmed & (~is_doubtful | _are_clear(window, is_doubtful))
    is_without_bound = (reason > 0) & (reason <= _LAST_WITHOUT_BOUND) & has_high & (high != 0)
    yield _STATES[has_value.astype(int) + is_resolved].tolist()
    yield _or_none(a / c, has_value)
    yield _or_none(low, ~np.isnan(low) & ~is_without_bound)
    yield _or_none(high, has_value)
    yield [level] * len(z)
    yield _or_none(z, np.isfinite(z))
    yield _REASONS[reason].tolist()
    yield _needed(num_updates, np.where(np.isnan(foreseen), z, foreseen), ~is_resolved)
    yield np.rint(num_updates).astype(np.int64).tolist()
    yield num_blocks.tolist()
    yield from (a.tolist(), np.sqrt(v_aa).tolist(), c.tolist(), np.sqrt(v_cc).tolist())


def _needed(num_updates: Column, z: Column, asked: Mask) -> list[int | None]:
    """As `uncertainty.updates_needed` of the windows asked about; no fewer than a window has."""
    found: list[int | None] = [None] * len(z)
    for place in np.flatnonzero(asked).tolist():
        needed = updates_needed(float(num_updates[place]), float(z[place]))
        found[place] = None if needed is None else max(needed, round(float(num_updates[place])))
    return found


def _or_none(values: Column, is_known: Mask) -> list[float | None]:
    if is_known.all():
        return values.tolist()  # type: ignore[no-any-return]  # numpy says Any
    return np.where(is_known, values, None).tolist()  # type: ignore[no-any-return, call-overload]  # an object a value


def _terms(window: Column) -> _Terms:
    """As `uncertainty.means_of_terms`, operation by operation."""
    m, n, x, y, xx, yy, xy, nx, ny, nn = window
    a, c = x / n, y / n
    scale = m / ((m - 1) * n * n)
    v_aa = scale * (xx - 2 * a * nx + a * a * nn)
    v_cc = scale * (yy - 2 * c * ny + c * c * nn)
    v_ac = scale * (xy - a * ny - c * nx + a * c * nn)
    return _Terms(a, c, np.where(v_aa > 0, v_aa, 0.0), v_ac, np.where(v_cc > 0, v_cc, 0.0))


def _quantiles(num_blocks: NDArray[np.int64], level: float) -> Column:
    counts, places = np.unique(np.maximum(num_blocks, MIN_BLOCKS), return_inverse=True)
    return np.array([t_quantile(0.5 + level / 2, count - 1) for count in counts.tolist()])[places]


def _fieller(terms: _Terms, quantile: Column) -> tuple[Column, Column]:
    """As `uncertainty.fieller`; NaN where there is no end."""
    a, c, v_aa, v_ac, v_cc = terms
    q_sq = quantile * quantile
    quadratic = c * c - q_sq * v_cc
    half_linear = a * c - q_sq * v_ac
    constant = a * a - q_sq * v_aa
    discriminant = half_linear * half_linear - quadratic * constant
    far = half_linear + np.copysign(np.sqrt(discriminant), half_linear)
    near = np.where(far != 0, constant / far, 0.0)
    other = np.where(quadratic == 0, near, far / quadratic)
    first, last = np.minimum(near, other), np.maximum(near, other)
    is_bounded = (quadratic > 0) & (last > 0)
    low = np.where(is_bounded, np.where(first > 0, first, 0.0), np.where((quadratic <= 0) & (last > 0), last, np.nan))
    exists = ~(discriminant < 0)
    return np.where(exists, low, np.nan), np.where(exists & is_bounded, last, np.nan)


def _foreseen(window: Column, before: Column) -> Column:
    """As `uncertainty._foreseen`; NaN where too little lies before."""
    terms = _terms(before)
    scale = before[1] / window[1]
    found = np.minimum(_z(terms.c, terms.v_cc * scale), _z(terms.a, terms.v_aa * scale))
    return np.where((before[0] < MIN_BLOCKS) | (before[1] < window[1]), np.nan, found)


def _z(mean: Column, variance: Column) -> Column:
    return np.where(variance > 0, mean / np.sqrt(variance), np.copysign(math.inf, mean))


def _are_clear(window: Column, asked: Mask) -> Mask:
    """Which of the windows asked about show a gradient beyond doubt by themselves."""
    found = np.zeros(len(asked), bool)
    for place in np.flatnonzero(asked).tolist():
        num_blocks, total, total_sq = window[[0, 3, 5], place].tolist()
        found[place] = normal_deviate(num_blocks, total, total_sq) >= ALONE_Z
    return found
