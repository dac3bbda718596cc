"""One run: its noise scale over training, and which batch size to use."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dash import Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard import sentences
from noisescale_dashboard.answers import Metric, NoiseScaleSeries, Run, Stream
from noisescale_dashboard.api_client import ApiClient, ApiProblem, visitor_headers
from noisescale_dashboard.figures import noise_scale_over_training
from noisescale_dashboard.kinds import SIMPLE
from noisescale_dashboard.pages import (
    recommendation_card,
    run_figures,
    run_in_browser,
    run_laws,
    run_layers,
    run_overview,
    run_records,
    shell,
    states,
)
from noisescale_dashboard.pages.parts import Child, icon, link, note

CHANGED = (
    Output("run-figures", "data"),
    Output("run-live", "data"),
    Output("run-missing", "children"),
    Output("run-body", "className"),
    Output("run-crumb", "children"),
    Output("run-head", "children"),
    Output("run-note", "children"),
    Output("run-notices", "children"),
    Output("run-facts", "children"),
    Output("run-records", "children"),
    Output("run-x", "data"),
    Output("run-kind", "data"),
    Output("run-kind-box", "hidden"),
    Output("run-w-word", "children"),
    Output("run-noise-card-title", "children"),
    Output("run-noise-card-subtitle", "children"),
    Output("run-noise-card-footer", "children"),
    Output("run-terms-card-subtitle", "children"),
    Output("run-terms-card-footer", "children"),
    Output("run-loss-card-subtitle", "children"),
    Output("run-noise-sentence", "children"),
    Output("run-loss-sentence", "children"),
)
"""What the series callback sets; a page that shows something keeps it when the API does not answer."""


def layout(run_id: str, *, narrow: bool, refresh_seconds: float) -> list[Child]:
    """The page before its first data."""
    height = noise_scale_over_training.NARROW_HEIGHT if narrow else noise_scale_over_training.HEIGHT
    main = html.Div(
        [
            run_figures.noise_card(height),
            html.Div([run_figures.terms_card(), run_figures.loss_card()], className="grid cols two"),
            html.Div([run_laws.trade_off_card(), run_laws.against_loss_card()], className="grid cols two"),
            run_layers.layers_card(),
        ],
        className="grid figures",
    )
    body = html.Div(
        [
            html.Div([html.Div(id="run-head"), html.P(id="run-answer", className="lede")], className="head mb16"),
            html.Div(id="run-note"),
            html.Div(id="run-notices", className="grid"),
            html.Div(id="run-facts", className="facts mb16"),
            html.Div([main, recommendation_card.layout()], className="grid cols run-columns"),
            html.Div(id="run-records", className="grid cols two mt16"),
        ],
        id="run-body",
        className="loading",
    )
    return shell.page(
        [link("Runs", "/runs"), icon("chevr", "xs"), html.Span(id="run-crumb", className="crumb-end")],
        [html.Div(id="run-missing"), body, *_stores(run_id, refresh_seconds)],
        live_state=html.Span(id="run-live-words", className="lab live"),
    )


def _stores(run_id: str, refresh_seconds: float) -> list[Child]:
    names = ("view", "series-view", "pref-view", "range-view", "pulse", "slow-pulse", "figures")
    drawn = ("layer-figure", "bullet-figure", "tradeoff-figure", "law-figures", "flags")
    return [
        dcc.Store(id="run-id", data=run_id),
        dcc.Store(id="run-windows", data=list(run_figures.WINDOWS)),
        dcc.Store(id="run-layer-names"),
        dcc.Store(id="run-live"),
        dcc.Store(id="run-received"),
        *(dcc.Store(id=f"run-{name}") for name in (*names, *drawn)),
        dcc.Interval(id="run-clock", interval=int(1000 * refresh_seconds)),
        dcc.Interval(id="run-second", interval=1000),
    ]


def register(app: Dash, api: ApiClient) -> None:
    """Callbacks of the page: the view in the address, series, recommendation, layers."""
    run_in_browser.register(app)
    recommendation_card.register(app, api)
    run_layers.register(app, api)
    run_laws.register(app, api)

    @app.callback(
        *CHANGED,
        Input("run-series-view", "data"),
        Input("run-pulse", "data"),
        State("run-id", "data"),
        State("run-live", "data"),
        State("narrow", "data"),
    )
    async def load_series(
        view: dict[str, Any] | None, _pulse: float | None, run_id: str, live: dict[str, Any] | None, narrow: bool
    ) -> tuple[Any, ...]:
        if view is None:
            raise PreventUpdate
        visitor = visitor_headers(ctx.headers)
        try:
            run = await api.run(visitor, run_id)
        except ApiProblem as problem:
            return _missing() if problem.is_missing else _not_shown(problem, live)
        try:
            read = await _read(api, visitor, run, view)
        except ApiProblem as problem:
            return _not_shown(problem, live)
        look = run_figures.look_at(view, run, narrow=narrow)
        series = read.series
        return (
            run_figures.draw(series, look, read.whole, read.metrics),
            live_state(run),
            None,
            "",
            run.name,
            run_overview.head(run),
            None,
            [note(notice.text) for notice in run.notices],
            run_overview.facts(run, read.whole, is_zoomed=look.is_zoomed),
            run_records.layout(run, read.streams, read.metrics),
            run_figures.x_choices(run),
            run_figures.kind_choices((*run.kinds, view["kind"])),
            view["kind"] == SIMPLE.name and set(run.kinds) <= {SIMPLE.name},
            "auto" if view["w"] == "auto" else f"{view['w']} %",
            run_figures.noise_title(view),
            run_figures.noise_subtitle(series, look),
            run_figures.noise_footer(series, view),
            run_figures.terms_subtitle(look),
            run_figures.terms_footer(series, look),
            run_figures.loss_subtitle(read.whole, read.metrics),
            sentences.series_sentence(series, look.noun),
            sentences.loss_sentence(read.whole, read.metrics),
        )


@dataclass(frozen=True, slots=True)
class Read:
    """What the page shows of a run: `series` of the chosen layer or kind, else of the `whole` model, kind simple."""

    series: NoiseScaleSeries
    whole: NoiseScaleSeries
    streams: tuple[Stream, ...]
    metrics: tuple[Metric, ...]


async def _read(api: ApiClient, visitor: Mapping[str, str], run: Run, view: Mapping[str, Any]) -> Read:
    asked = run_figures.series_query(view, run)
    whole, streams, metrics = await asyncio.gather(
        api.noise_scale(visitor, run.id, {**asked, "group": None, "kind": None}),
        api.streams(visitor, run.id),
        api.metrics(visitor, run.id, run_figures.metrics_query(view)),
    )
    series = whole
    if view["layer"] or asked["kind"]:
        series = await api.noise_scale(visitor, run.id, asked)
    if asked["kind"]:
        series = run_figures.beside(whole, series)
    return Read(series, whole, streams, metrics)


def _missing() -> tuple[Any, ...]:
    return _only(
        {
            "run-live": {"running": False},
            "run-missing": states.no_such_run(),
            "run-body": "hidden",
            "run-crumb": "not found",
        }
    )


def _not_shown(problem: ApiProblem, live: dict[str, Any] | None) -> tuple[Any, ...]:
    """What changes on the page when the API does not give the series: nothing that is already shown goes away."""
    if live:
        return _only({"run-note": states.paused(live.get("at"))})
    return _only({"run-missing": states.not_loaded(problem), "run-body": "hidden"})


def _only(changes: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(changes.get(str(output.component_id), no_update) for output in CHANGED)


def live_state(run: Run) -> dict[str, Any]:
    """Whether news can be expected, and until when the page's data reach."""
    is_running = run.status in ("running", "silent")
    words = sentences.STATUS_WORDS.get(run.status, run.status).split(",")[0]
    return {"running": is_running, "words": words, "at": datetime.now(UTC).strftime("%H:%M:%S UTC")}
