"""What a run's page reads of its series: which range and layer each figure over training shows."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from noisescale_dashboard.answers.common import Run
from noisescale_dashboard.answers.series import NoiseScaleSeries
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.run import figures as run_figures
from noisescale_dashboard.run.figures import Read, ReadBeside
from noisescale_dashboard.words.kinds import SIMPLE

View = Mapping[str, Any]


def view_beside(view: View) -> View:
    """The view of the figures beside the main one."""
    return view if view["linked"] else {**view, "from": None, "to": None}


async def read(api: ApiClient, visitor: Mapping[str, str], run: Run, view: View) -> Read:
    """What the main figure and the key figures show; a layer, a kind or a range of its own costs another request."""
    whole, own = await asyncio.gather(
        _whole(api, visitor, run, view_beside(view)),
        _own(api, visitor, run, view) if _is_of_part(view) or view_beside(view) != view else _none(),
    )
    return Read(whole if own is None else _of_run(whole, own, view), whole)


async def read_beside(api: ApiClient, visitor: Mapping[str, str], run: Run, view: View) -> ReadBeside:
    """What the figures beside the main one show."""
    view = view_beside(view)
    whole, own, metrics = await asyncio.gather(
        _whole(api, visitor, run, view, run_figures.POINTS_BESIDE),
        _own(api, visitor, run, view, run_figures.POINTS_BESIDE) if _is_of_part(view) else _none(),
        api.metrics(visitor, run.id, run_figures.metrics_query(view)),
    )
    return ReadBeside(whole if own is None else _of_run(whole, own, view), whole, metrics)


def _is_of_part(view: View) -> bool:
    """Whether something else than the noise scale of the whole model, kind simple, is asked for."""
    return bool(view["layer"]) or view["kind"] != SIMPLE.name


async def _whole(
    api: ApiClient, visitor: Mapping[str, str], run: Run, view: View, points: int = run_figures.POINTS
) -> NoiseScaleSeries:
    asked = run_figures.series_query(view, run, points=points)
    return ending_in_latest_loss(await api.noise_scale(visitor, run.id, {**asked, "group": None, "kind": None}), run)


async def _own(
    api: ApiClient, visitor: Mapping[str, str], run: Run, view: View, points: int = run_figures.POINTS
) -> NoiseScaleSeries:
    return await api.noise_scale(visitor, run.id, run_figures.series_query(view, run, points=points))


async def _none() -> None:
    return None


def _of_run(whole: NoiseScaleSeries, series: NoiseScaleSeries, view: View) -> NoiseScaleSeries:
    """A series of the run with its events; of another kind it has no loss of its own."""
    is_other_kind = view["kind"] != SIMPLE.name
    return run_figures.beside(whole, series) if is_other_kind else replace(series, events=whole.events)


def ending_in_latest_loss(series: NoiseScaleSeries, run: Run) -> NoiseScaleSeries:
    """The series whose last point has the run's latest loss, as the key figures do, where it is of the same step.

    Other points are means over their steps.
    """
    points = series.points
    if not points.step or points.step[-1] != run.last_step or points.loss[-1] is None:
        return series
    return replace(series, points=replace(points, loss=(*points.loss[:-1], run.loss)))
