"""What a run's page reads of its series: which range and layer each figure over training shows."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from noisescale_dashboard.answers import Event, NoiseScaleSeries, Run
from noisescale_dashboard.api_client import ApiClient
from noisescale_dashboard.branch_answers import branch
from noisescale_dashboard.kinds import SIMPLE
from noisescale_dashboard.pages import run_figures
from noisescale_dashboard.pages.run_figures import Read, ReadBeside
from noisescale_dashboard.sweep_answers import Sweep

MAX_BRANCHES = 50
View = Mapping[str, Any]


def view_beside(view: View) -> View:
    """The view of the figures beside the main one."""
    return view if view["linked"] else {**view, "from": None, "to": None}


async def read(api: ApiClient, visitor: Mapping[str, str], run: Run, view: View) -> Read:
    """What the main figure and the key figures show; a layer, a kind or a range of its own costs another request."""
    whole, own, branches = await asyncio.gather(
        _whole(api, visitor, run, view_beside(view)),
        _own(api, visitor, run, view) if _is_of_part(view) or view_beside(view) != view else _none(),
        api.sweeps(visitor, {"run_id": run.id, "kind": "branch", "limit": MAX_BRANCHES}),
    )
    whole = with_branches(whole, branches.sweeps)
    return Read(whole if own is None else _of_run(whole, own, view), whole)


async def read_beside(
    api: ApiClient, visitor: Mapping[str, str], run: Run, view: View, *, has_streams: bool = True
) -> ReadBeside:
    """What the figures beside the main one show, without the streams where they are not asked for."""
    view = view_beside(view)
    whole, own, metrics, streams = await asyncio.gather(
        _whole(api, visitor, run, view),
        _own(api, visitor, run, view) if _is_of_part(view) else _none(),
        api.metrics(visitor, run.id, run_figures.metrics_query(view)),
        api.streams(visitor, run.id) if has_streams else _none(),
    )
    return ReadBeside(whole if own is None else _of_run(whole, own, view), whole, streams or (), metrics)


def _is_of_part(view: View) -> bool:
    """Whether something else than the noise scale of the whole model, kind simple, is asked for."""
    return bool(view["layer"]) or view["kind"] != SIMPLE.name


async def _whole(api: ApiClient, visitor: Mapping[str, str], run: Run, view: View) -> NoiseScaleSeries:
    asked = run_figures.series_query(view, run)
    return ending_in_latest_loss(await api.noise_scale(visitor, run.id, {**asked, "group": None, "kind": None}), run)


async def _own(api: ApiClient, visitor: Mapping[str, str], run: Run, view: View) -> NoiseScaleSeries:
    return await api.noise_scale(visitor, run.id, run_figures.series_query(view, run))


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


def with_branches(series: NoiseScaleSeries, branches: Sequence[Sweep]) -> NoiseScaleSeries:
    """The series with the steps at which branches left the run among its events."""
    steps = sorted({step for one in branches if (step := branch(one.details).step) is not None})
    events = (*series.events, *(Event(step, "branch") for step in steps))
    return replace(series, events=tuple(sorted(events, key=lambda event: event.step)))
