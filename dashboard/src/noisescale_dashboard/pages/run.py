"""One run: its noise scale over training, and which batch size to use."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import dash_mantine_components as dmc
import plotly.graph_objects as go
from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard import sentences
from noisescale_dashboard.answers import Group, NoiseScaleSeries, Run
from noisescale_dashboard.api_client import ApiClient, ApiProblem, visitor_headers
from noisescale_dashboard.figures import layers, loss_over_training, noise_scale_over_training, signal_and_noise
from noisescale_dashboard.figures.batch_bullet import batch_bullet
from noisescale_dashboard.figures.noise_scale_over_training import View
from noisescale_dashboard.number_format import count, si
from noisescale_dashboard.pages import recommendation_card, run_overview, run_records, shell, states
from noisescale_dashboard.pages.parts import Child, Children, aria, card, figure_box, icon, link, note

WINDOWS = ("auto", "0.1", "0.2", "0.5", "1", "2", "5", "10", "20")
"""Choices of the window: automatic, then percent of the run."""
X_CHOICES = (("step", "Step"), ("units", "Units"), ("time", "Time"), ("loss", "Loss"))
POINTS = 600
LAYER_POINTS = 60
MAX_LAYERS = 48


def layout(run_id: str, *, narrow: bool, refresh_seconds: float) -> list[Child]:
    """The page before its first data."""
    height = noise_scale_over_training.NARROW_HEIGHT if narrow else noise_scale_over_training.HEIGHT
    main = html.Div(
        [_noise_card(height), html.Div([_terms_card(), _loss_card()], className="grid cols two"), _layers_card()],
        className="grid figures",
    )
    body = html.Div(
        [
            html.Div(id="run-head", className="head mb16"),
            html.Div(id="run-note"),
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
    names = ("view", "series-view", "pref-view", "range-view", "pulse", "figures", "layer-figure", "bullet-figure")
    return [
        dcc.Store(id="run-id", data=run_id),
        dcc.Store(id="run-windows", data=list(WINDOWS)),
        dcc.Store(id="run-layer-names"),
        dcc.Store(id="run-live"),
        dcc.Store(id="run-received"),
        *(dcc.Store(id=f"run-{name}") for name in names),
        dcc.Interval(id="run-clock", interval=int(1000 * refresh_seconds)),
        dcc.Interval(id="run-second", interval=1000),
    ]


def _noise_card(height: int) -> html.Section:
    x_switch = dmc.SegmentedControl(
        id="run-x",
        data=[{"value": value, "label": label} for value, label in X_CHOICES],
        value="step",
        size="xs",
        **aria({"aria-label": "Measure training by"}),
    )
    slider = dmc.Slider(
        id="run-w",
        min=0,
        max=len(WINDOWS) - 1,
        step=1,
        value=0,
        marks=[{"value": i, "label": word if word == "auto" else f"{word} %"} for i, word in enumerate(WINDOWS)],
        label=None,
        size="sm",
        thumbLabel="Window, percent of the run",
        className="window-slider",
    )
    window = html.Details(
        [
            html.Summary(["Window ", html.B("auto", id="run-w-word"), icon("chev", "xs")], className="btn small"),
            html.Div(
                [html.P("Steps over which each point is estimated, as a share of the run.", className="t2"), slider],
                className="dropdown",
            ),
        ],
        className="details",
    )
    return card(
        "Noise scale B_noise over training",
        "log · band: 95 % interval",
        figure_box("run-noise", card_id="run-noise-card", height=height),
        card_id="run-noise-card",
        actions=[x_switch, window],
        footer=[],
        is_figure=True,
        class_name="noise-card",
    )


def _terms_card() -> html.Section:
    return card(
        "Signal and noise",
        "tr Σ and |G|², squared gradient, log · band: 95 %",
        figure_box("run-terms", card_id="run-terms-card", height=signal_and_noise.HEIGHT),
        card_id="run-terms-card",
        footer=[],
        is_figure=True,
    )


def _loss_card() -> html.Section:
    return card(
        "Loss",
        "training loss · faint: min–max of each point's steps",
        figure_box("run-loss", card_id="run-loss-card", height=loss_over_training.HEIGHT),
        card_id="run-loss-card",
        is_figure=True,
    )


def _layers_card() -> html.Section:
    kinds = dmc.SegmentedControl(
        id="run-layer-kind",
        data=[{"value": "map", "label": "Over training"}, {"value": "rank", "label": "Ranking"}],
        value="map",
        size="xs",
        **aria({"aria-label": "Show layers"}),
    )
    choice = dmc.Select(
        id="run-layer",
        data=[],
        placeholder="All layers",
        clearable=True,
        searchable=True,
        size="xs",
        w=170,
        **aria({"aria-label": "Layer shown in the figure above"}),
    )
    return card(
        "Noise scale by layer",
        "",
        figure_box("run-layers", card_id="run-layers-card", height=120),
        card_id="run-layers-card",
        actions=[choice, kinds],
        footer=[],
        is_figure=True,
        class_name="layers-card",
    )


def register(app: Dash, api: ApiClient) -> None:
    """Callbacks of the page: the view in the address, series, recommendation, layers."""
    _register_clientside(app)
    _register_series(app, api)
    _register_layers(app, api)
    _register_recommendation(app, api)


def _register_series(app: Dash, api: ApiClient) -> None:
    @app.callback(
        Output("run-figures", "data"),
        Output("run-live", "data"),
        Output("run-missing", "children"),
        Output("run-body", "className"),
        Output("run-crumb", "children"),
        Output("run-head", "children"),
        Output("run-note", "children"),
        Output("run-facts", "children"),
        Output("run-records", "children"),
        Output("run-x", "data"),
        Output("run-w-word", "children"),
        Output("run-noise-card-title", "children"),
        Output("run-noise-card-subtitle", "children"),
        Output("run-noise-card-footer", "children"),
        Output("run-terms-card-footer", "children"),
        Output("run-loss-card-subtitle", "children"),
        Output("run-noise-sentence", "children"),
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
            series, streams = await asyncio.gather(
                api.noise_scale(visitor, run_id, series_query(view, run)), api.streams(visitor, run_id)
            )
        except ApiProblem as problem:
            return _not_shown(problem, live)
        look = look_at(view, run, narrow=narrow)
        return (
            draw(series, look),
            live_state(run),
            None,
            "",
            run.name,
            run_overview.head(run),
            None,
            run_overview.facts(run, series, is_zoomed=look.is_zoomed),
            run_records.layout(run, streams),
            x_choices(run),
            "auto" if view["w"] == "auto" else f"{view['w']} %",
            f"Noise scale B_noise of {view['layer']}" if view["layer"] else "Noise scale B_noise over training",
            noise_subtitle(series, look),
            noise_footer(series, view),
            terms_footer(series),
            loss_subtitle(series),
            sentences.series_sentence(series, look.noun),
        )


def _not_shown(problem: ApiProblem, live: dict[str, Any] | None) -> tuple[Any, ...]:
    """What changes on the page when the API does not give the run: nothing that is already shown goes away."""
    rest = [no_update] * 10
    if problem.is_missing:
        return (no_update, {"running": False}, states.no_such_run(), "hidden", "not found", *[no_update] * 2, *rest)
    if live:
        return (*[no_update] * 6, states.paused(live.get("at")), *rest)
    return (no_update, no_update, states.not_loaded(problem), "hidden", *[no_update] * 3, *rest)


def series_query(view: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """The API's query for a view of the page; the window in steps from percent of the run."""
    window = None
    if view["w"] != "auto" and run.last_step is not None:
        window = max(1, round(float(view["w"]) / 100 * (run.last_step - (run.first_step or 0) + 1)))
    return {
        "points": POINTS, "from": view["from"], "to": view["to"], "window": window, "group": view["layer"],
    }  # fmt: skip


def look_at(view: Mapping[str, Any], run: Run, *, narrow: bool) -> View:
    """How the figures are drawn; a zoomed range is another revision, so that the browser takes over its ends."""
    is_zoomed = view["from"] is not None or view["to"] is not None
    return View(
        kind=view["x"],
        unit=run.unit,
        noun=sentences.noun_of(run),
        is_live=run.status == "running",
        is_zoomed=is_zoomed,
        narrow=narrow,
        revision=f"{view['x']} {view['from']} {view['to']} {view['layer']}",
    )


def draw(series: NoiseScaleSeries, look: View) -> dict[str, go.Figure]:
    """The three figures over training."""
    return {
        "noise": noise_scale_over_training.noise_scale_over_training(series, look),
        "terms": signal_and_noise.signal_and_noise(series, look),
        "loss": loss_over_training.loss_over_training(series, look),
    }


def live_state(run: Run) -> dict[str, Any]:
    """Whether news can be expected, and until when the page's data reach."""
    is_running = run.status in ("running", "silent")
    words = sentences.STATUS_WORDS.get(run.status, run.status).split(",")[0]
    return {"running": is_running, "words": words, "at": datetime.now(UTC).strftime("%H:%M:%S UTC")}


def x_choices(run: Run) -> list[dict[str, str]]:
    """Labels of the x switch, with the run's own unit."""
    unit = run.unit[:14].capitalize() or "Units"
    return [{"value": value, "label": unit if value == "units" else label} for value, label in X_CHOICES]


def noise_subtitle(series: NoiseScaleSeries, look: View) -> str:
    """Unit, scale, band, and over how many steps each point is estimated."""
    said = [look.noun.capitalize(), "log", "band: 95 % interval"]
    if series.window_steps:
        widened = ", widened" if series.widened else ""
        said.append(f"each point: {count(series.window_steps)} steps{widened}")
    return " · ".join(said)


def noise_footer(series: NoiseScaleSeries, view: Mapping[str, Any]) -> Children:
    """Points outside the axis, a zoomed range, a single layer: what a reader would otherwise not know."""
    said: list[Child] = []
    outside = noise_scale_over_training.num_outside(series.points)
    if outside:
        subject = "One point lies" if outside == 1 else f"{outside} points lie"
        said.append(note(f"{subject} outside the axis, marked ▴ at its edge.", icon_name="info", quiet=True))
    if view["from"] is not None or view["to"] is not None:
        ends = f"{si(view['from'] or 0)} – {si(view['to'])}" if view["to"] is not None else f"{si(view['from'])} on"
        said.append(html.Span(f"Zoomed to steps {ends}. Double click in the figure shows all."))
    if view["layer"]:
        said.append(html.Span("One layer is shown; clear the choice below to see the whole model."))
    return said


def terms_footer(series: NoiseScaleSeries) -> str | None:
    """Estimates of |G|² that a logarithmic axis cannot show are counted, not dropped."""
    hidden = signal_and_noise.num_not_positive(series)
    if not hidden:
        return None
    return (
        f"|G|² is estimated at or below zero at {hidden} of {len(series.points.step)} points; the line has gaps there."
    )


def loss_subtitle(series: NoiseScaleSeries) -> str:
    """Scale and envelope of the loss figure."""
    scale = ", log" if loss_over_training.is_log(series) else ""
    return f"training loss{scale} · faint: min–max of each point's steps"


def _register_layers(app: Dash, api: ApiClient) -> None:
    @app.callback(
        Output("run-layer-figure", "data"),
        Output("run-layer-names", "data"),
        Output("run-layer", "data"),
        Output("run-layers-card-subtitle", "children"),
        Output("run-layers-card-footer", "children"),
        Output("run-layers-sentence", "children"),
        Input("run-range-view", "data"),
        Input("run-pulse", "data"),
        Input("run-layer-kind", "value"),
        State("run-id", "data"),
        State("narrow", "data"),
    )
    async def load_layers(
        view: dict[str, Any] | None, _pulse: float | None, kind: str, run_id: str, narrow: bool
    ) -> tuple[Any, ...]:
        if view is None:
            raise PreventUpdate
        asked = {"from": view["from"], "to": view["to"], "points": LAYER_POINTS}
        try:
            visitor = visitor_headers(ctx.headers)
            run, groups = await asyncio.gather(api.run(visitor, run_id), api.groups(visitor, run_id, asked))
        except ApiProblem as problem:
            return (*[no_update] * 3, f"not loaded: {problem.title}", no_update, no_update)
        shown = groups[:MAX_LAYERS]
        names = [group.name for group in shown]
        draw_layers = layers.layer_heat_map if kind == "map" else layers.layer_ranking
        return (
            draw_layers(shown, noun=sentences.noun_of(run), narrow=narrow) if shown else no_update,
            names,
            names,
            layers_subtitle(shown, kind),
            layers_footer(groups),
            layers_sentence(groups),
        )


def layers_subtitle(groups: tuple[Group, ...], kind: str) -> str:
    """What colour or position means."""
    if not groups:
        return "no records per layer yet: they are sent every ten seconds of training"
    if kind == "rank":
        return "whole range, largest first, log · whisker: 95 % · open arrow: lower bound only"
    low, high = layers.color_range(groups)
    return f"network order · lighter to darker: {si(low)} to {si(high)} · hatched: not resolved"


def layers_footer(groups: tuple[Group, ...]) -> str | None:
    """How many layers there is no room for."""
    return f"The first {MAX_LAYERS} of {len(groups)} layers are drawn." if len(groups) > MAX_LAYERS else None


def layers_sentence(groups: tuple[Group, ...]) -> str:
    """The layer figure in words."""
    known = [group for group in groups if group.estimate.value is not None]
    if not known:
        return "No layer has a resolved noise scale."
    largest = max(known, key=lambda group: group.estimate.value or 0)
    smallest = min(known, key=lambda group: group.estimate.value or 0)
    return (
        f"Largest noise scale in {largest.name}, {si(largest.estimate.value)}; "
        f"smallest in {smallest.name}, {si(smallest.estimate.value)}."
    )


def _register_recommendation(app: Dash, api: ApiClient) -> None:
    @app.callback(
        Output("run-bullet-figure", "data"),
        Output("run-advice-top", "children"),
        Output("run-advice-bottom", "children"),
        Output("run-advice-bullet", "hidden"),
        Output("run-advice-chip", "children"),
        Output("run-advice-subtitle", "children"),
        Output("run-pref-word", "children"),
        Output("run-pref-left", "children"),
        Output("run-bullet-sentence", "children"),
        Input("run-pref-view", "data"),
        Input("run-pulse", "data"),
        State("run-id", "data"),
    )
    async def load_recommendation(preference: float | None, _pulse: float | None, run_id: str) -> tuple[Any, ...]:
        if preference is None:
            raise PreventUpdate
        visitor = visitor_headers(ctx.headers)
        try:
            run, advice = await asyncio.gather(
                api.run(visitor, run_id), api.recommendation(visitor, run_id, preference)
            )
        except ApiProblem as problem:
            top = html.P(f"Not loaded: {problem.title}.", className="why")
            return (no_update, top, None, True, None, None, no_update, no_update, no_update)
        has_batch = advice.recommended_batch_size is not None
        return (
            batch_bullet(advice) if has_batch else no_update,
            recommendation_card.top(advice),
            recommendation_card.bottom(advice, run),
            not has_batch,
            recommendation_card.chip(advice),
            f"at step {si(advice.step)}" if advice.step is not None else "",
            recommendation_card.preference_word(preference),
            f"fewest {sentences.noun_of(run)}",
            recommendation_card.sentence(advice),
        )


def _register_clientside(app: Dash) -> None:
    def own(function: str) -> ClientsideFunction:
        return ClientsideFunction(shell.NAMESPACE, function)

    app.clientside_callback(
        own("runView"),
        Output("run-view", "data"),
        Output("run-series-view", "data"),
        Output("run-pref-view", "data"),
        Output("run-range-view", "data"),
        Output("run-x", "value"),
        Output("run-w", "value"),
        Output("run-pref", "value"),
        Output("run-layer", "value"),
        Input("address", "search"),
        Input("run-x", "value"),
        Input("run-w", "value"),
        Input("run-pref", "value"),
        Input("run-layer", "value"),
        Input("run-noise", "relayoutData"),
        Input("run-terms", "relayoutData"),
        Input("run-loss", "relayoutData"),
        State("run-view", "data"),
        State("run-figures", "data"),
        State("run-windows", "data"),
    )
    app.clientside_callback(
        own("layerClicked"),
        Output("run-layer", "value", allow_duplicate=True),
        Input("run-layers", "clickData"),
        State("run-layer-names", "data"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        own("pulse"), Output("run-pulse", "data"), Input("run-clock", "n_intervals"), State("run-received", "data")
    )
    app.clientside_callback(own("received"), Output("run-received", "data"), Input("run-live", "data"))
    app.clientside_callback(
        own("liveWords"),
        Output("run-live-words", "children"),
        Input("run-second", "n_intervals"),
        Input("run-received", "data"),
    )
    theme = (Input("theme", "data"), State("palettes", "data"))
    app.clientside_callback(
        own("paintRun"),
        *(Output(f"run-{name}", "figure") for name in ("noise", "terms", "loss")),
        Input("run-figures", "data"),
        *theme,
    )
    for name in ("layer", "bullet"):
        graph = "run-layers" if name == "layer" else "run-bullet"
        app.clientside_callback(own("paintOne"), Output(graph, "figure"), Input(f"run-{name}-figure", "data"), *theme)
