"""What a run's page reads of its series: which range and layer each figure over training shows."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from noisescale_dashboard.answers import Event, NoiseScaleSeries, Run, Stream
from noisescale_dashboard.api_client import ApiClient
from noisescale_dashboard.branch_answers import branch
from noisescale_dashboard.pages import run_figures
from noisescale_dashboard.pages.run_figures import Read
from noisescale_dashboard.sweep_answers import Sweep

MAX_BRANCHES = 50
View = Mapping[str, Any]


def view_beside(view: View) -> View:
    """The view of the figures beside the main one."""
    return view if view["linked"] else {**view, "from": None, "to": None}


async def read(api: ApiClient, visitor: Mapping[str, str], run: Run, view: View, *, has_streams: bool = True) -> Read:
    """Everything at once, without the streams where they are not asked for.

    A layer, a kind or a range of its own costs another request each.
    """
    linked = view_beside(view)
    asked = run_figures.series_query(linked, run)
    whole, streams, metrics, branches = await asyncio.gather(
        api.noise_scale(visitor, run.id, {**asked, "group": None, "kind": None}),
        api.streams(visitor, run.id) if has_streams else _none(),
        api.metrics(visitor, run.id, run_figures.metrics_query(linked)),
        api.sweeps(visitor, {"run_id": run.id, "kind": "branch", "limit": MAX_BRANCHES}),
    )
    whole = ending_in_latest_loss(with_branches(whole, branches.sweeps), run)
    beside = whole
    if view["layer"] or asked["kind"]:
        beside = _of_run(whole, await api.noise_scale(visitor, run.id, asked), asked)
    series = beside
    if linked != view:
        asked = run_figures.series_query(view, run)
        series = _of_run(whole, await api.noise_scale(visitor, run.id, asked), asked)
    return Read(series, beside, whole, streams, metrics)


async def _none() -> tuple[Stream, ...]:
    return ()


def _of_run(whole: NoiseScaleSeries, series: NoiseScaleSeries, asked: Mapping[str, Any]) -> NoiseScaleSeries:
    """A series of the run with its events; of another kind it has no loss of its own."""
    return run_figures.beside(whole, series) if asked["kind"] else replace(series, events=whole.events)


def ending_in_latest_loss(series: NoiseScaleSeries, run: Run) -> NoiseScaleSeries:
    """The series whose last point has the run's latest loss, as the key figures do, where it is of the same step.

    Other points are means over their steps.
    """
    points = series.points
    if not points.step or points.step[-1] != run.last_step or points.loss[-1] is None:
        return series
    return replace(series, points=replace(points, loss=(*points.loss[:-1], run.loss)))


def with_branches(series: NoiseScaleSeries, branches: Sequence[Sweep]) -> NoiseScaleSeries:
    """The series with the steps at which branches left the run among its events."""
    steps = sorted({step for one in branches if (step := branch(one.details).step) is not None})
    events = (*series.events, *(Event(step, "branch") for step in steps))
    return replace(series, events=tuple(sorted(events, key=lambda event: event.step)))
