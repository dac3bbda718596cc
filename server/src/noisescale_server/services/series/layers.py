"""The noise scale per layer, from group records.

Records come at most every ten seconds, so a window often holds fewer than the 8 that an interval needs. Then the second
moments over updates serve: they say the spread of single updates, as if these were independent. A layer is a number
once its own updates have shown a gradient. The range that someone chose to look at is judged by itself, as there may be
nothing before it; the points along it are judged by those before them.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from operator import add
from uuid import UUID

from cachetools import LRUCache
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.estimators import signal
from noisescale_core.estimators.signal import NO_EVIDENCE, Evidence
from noisescale_core.estimators.uncertainty import MIN_BLOCKS, NoiseScaleEstimate, estimate
from noisescale_core.estimators.windows import WindowSums
from noisescale_server.services.platform.errors import LayerNotFound, RunNotFound
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.resolution import Range, block, points_of, range_of
from noisescale_server.services.series.sliding import over_points, plus, window_sums
from noisescale_server.storage.runs import runs, streams
from noisescale_server.storage.runs.streams import SIMPLE
from noisescale_server.storage.series import group_series
from noisescale_server.storage.series.group_pyramid import LOWEST_LEVEL
from noisescale_server.storage.series.group_series import LayerPoints
from noisescale_server.storage.series.pyramid import TOP_LEVEL
from noisescale_server.storage.series.series import ONE_POINT, Sums


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer over a range.

    Attributes:
        name: As the model names it.
        whole: The estimate over the whole range.
        steps: Last step of each point.
        estimates: One a point.
    """

    name: str
    whole: NoiseScaleEstimate
    steps: Sequence[int]
    estimates: list[NoiseScaleEstimate]


@dataclass(frozen=True, slots=True)
class Layers:
    """A page of the layers over a range.

    Attributes:
        low: First step; None while the run has no steps in the range.
        high: Last step; None likewise.
        layers: In network order.
        next_name: That of the last one where there are more.
    """

    low: int | None
    high: int | None
    layers: list[Layer]
    next_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedLayers:
    """Which layers of a run, and what of each.

    Attributes:
        max_points: Of each.
        max_layers: How many of them.
        after: Those behind this layer; None: from the first on.
        low: First step; None: the first there is.
        high: Last step; None: the last there is.
    """

    max_points: int
    max_layers: int
    after: str | None = None
    low: int | None = None
    high: int | None = None


MAX_POINTS = 50_000
"""Of one answer, over all its layers."""

KEPT = 32
"""Runs and ranges of them: each holds a page of layers along their points."""

_kept: LRUCache[Hashable, Layers] = LRUCache(KEPT)


async def of_run(session: AsyncSession, run_id: UUID, asked: AskedLayers) -> Layers:
    """A page of the run's layers, in network order; windows do not reach before its first step.

    Raises:
        RunNotFound: When no run has this id.
        LayerNotFound: When no record of the range names the layer `after`.
    """
    run = await runs.get(session, run_id)
    if run is None:
        raise RunNotFound(run_id)
    live = LiveSeries.of(run_id, SIMPLE, await streams.coverage_of_run(session, run_id))
    wanted = range_of(live.intervals, asked.low, asked.high)
    if wanted is None:
        return Layers(None, None, [])
    # rows never change: how far the streams have come is the version of the data
    cursors = await streams.cursors_of_run(session, run_id)
    key = (run_id, run.created_at, cursors, live.covered, wanted, asked)
    found = _kept.get(key) or await _read(session, live, wanted, asked)
    _kept[key] = found
    return found


async def _read(session: AsyncSession, live: LiveSeries, wanted: Range, asked: AskedLayers) -> Layers:
    finest = live.finest_level_of_groups(0, wanted.high)
    low, max_points = wanted.low, asked.max_points
    if finest:
        # buckets that are folded are not cut
        low -= low % block(finest)
        max_points = min(max_points, max(1, wanted.num_steps // block(finest)))
    level = max(finest, bucket_level(-(-wanted.num_steps // max_points)))
    steps_per_point = max(block(finest), points_of(wanted, max_points=max_points, steps_per_block=block(level)))
    at_most = max(1, min(asked.max_layers, MAX_POINTS // asked.max_points))
    num_before = int(asked.after is not None)
    found = await group_series.points(
        session,
        live.run_id,
        live.group_pieces(low, wanted.high, level),
        steps_per_point=steps_per_point,
        since=asked.after,
        at_most=num_before + at_most + 1,
    )
    if asked.after is not None and not found:
        raise LayerNotFound(live.run_id, asked.after)
    page = found[num_before : num_before + at_most]
    before = await _evidence_before(session, live, low, [one.name for one in page])
    layers = [_layer(one, before.get(one.name, NO_EVIDENCE)) for one in page]
    has_more = len(found) > num_before + at_most
    return Layers(wanted.low, wanted.high, layers, page[-1].name if has_more else None)


def bucket_level(steps_per_point: int) -> int:
    """The highest level of the pyramid of group records whose buckets fit into a point; 0 (rows) if none does."""
    fitting = [level for level in range(LOWEST_LEVEL, TOP_LEVEL + 1) if block(level) <= steps_per_point]
    return max(fitting, default=0)


async def _evidence_before(
    session: AsyncSession, live: LiveSeries, low: int, names: Sequence[str]
) -> dict[str, Evidence]:
    """What each of these layers had shown of a gradient before the range begins."""
    if low <= live.first_step:
        return {}
    chosen = live.group_pieces(live.first_step, low - 1, TOP_LEVEL)
    found = await group_series.points(session, live.run_id, chosen, steps_per_point=ONE_POINT, names=names)
    return {layer.name: evidence_of(layer) for layer in found}


def evidence_of(layer: LayerPoints) -> Evidence:
    """The sums over all updates of a layer's points that say whether it has a gradient."""
    points = layer.points
    return Evidence(sum(points.num_updates), sum(points.grad_sq_norm), sum(yy for _, yy, _ in layer.moments))


def _layer(layer: LayerPoints, before: Evidence) -> Layer:
    evidence = before.plus(evidence_of(layer))
    has_signal = signal.has_signal([evidence])
    estimates = estimates_of(layer, num_window_points=1, has_signal=has_signal)
    whole = _estimate(reduce(plus, layer.points.block_sums()), reduce(_plus, _moments(layer)), has_signal=has_signal)
    return Layer(layer.name, whole, layer.points.step_last, estimates)


def estimates_of(layer: LayerPoints, *, num_window_points: int, has_signal: bool) -> list[NoiseScaleEstimate]:
    """One estimate a point, over the last points up to it; more of them while they hold fewer than 8 records."""
    numbered = zip(layer.points.point, layer.points.block_sums(), strict=True)
    windows = over_points((), numbered, num_window_points=num_window_points)
    # A window of fewer than 8 records holds all records so far, and so do the moments.
    so_far = accumulate(_moments(layer), _plus)
    return [
        _estimate(one.sums, moments, has_signal=has_signal, before=one.before)
        for one, moments in zip(windows, so_far, strict=True)
    ]


def _moments(layer: LayerPoints) -> Iterator[Sums]:
    """For each point n, ΣX, ΣY over its updates, and their second moments."""
    points = layer.points
    first = zip(points.num_updates, points.trace_cov, points.grad_sq_norm, strict=True)
    return (a + b for a, b in zip(first, layer.moments, strict=True))


def _plus(a: Sums, b: Sums) -> Sums:
    return tuple(map(add, a, b))


def _estimate(sums: Sums, moments: Sums, *, has_signal: bool, before: WindowSums | None = None) -> NoiseScaleEstimate:
    if sums[0] >= MIN_BLOCKS:
        return estimate(window_sums(sums), has_signal=has_signal, before=before)
    n, x, y, xx, yy, xy = moments
    window = WindowSums.from_moments(
        num_updates=int(n), trace_cov=x, grad_sq_norm=y, trace_cov_sq=xx, grad_sq_norm_sq=yy, cross=xy
    )
    return estimate(window, has_signal=has_signal, before=before)
