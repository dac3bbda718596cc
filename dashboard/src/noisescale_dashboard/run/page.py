"""One run: its noise scale over training, and which batch size to use."""

from datetime import UTC, datetime
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard import baseline, comments
from noisescale_dashboard.answers.common import Run
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.figures.over_training import noise_scale_over_training
from noisescale_dashboard.run import beside as run_beside
from noisescale_dashboard.run import figures as run_figures
from noisescale_dashboard.run import head as run_overview
from noisescale_dashboard.run import in_browser as run_in_browser
from noisescale_dashboard.run import laws as run_laws
from noisescale_dashboard.run import layers as run_layers
from noisescale_dashboard.run import rate as run_rate
from noisescale_dashboard.run import reading as run_reading
from noisescale_dashboard.run import recommendation_card, report_address
from noisescale_dashboard.run import records as run_records
from noisescale_dashboard.run import remarks as run_remarks
from noisescale_dashboard.run import sharing as run_sharing
from noisescale_dashboard.run import time as run_time
from noisescale_dashboard.shell import shell, states
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import icon, link, note
from noisescale_dashboard.words import sentences
from noisescale_dashboard.words.kinds import SIMPLE

CHANGED = (
    Output("run-figures", "data"),
    Output("run-live", "data"),
    Output("run-missing", "children"),
    Output("run-body", "className"),
    Output("run-crumb", "children"),
    Output("run-head", "children"),
    Output("run-said", "data"),
    Output("run-note", "children"),
    Output("run-notices", "children"),
    Output("run-facts", "children"),
    Output("run-x", "data"),
    Output("run-kind", "data"),
    Output("run-kind-box", "hidden"),
    Output("run-w-word", "children"),
    Output("run-noise-card-title", "children"),
    Output("run-noise-card-subtitle", "children"),
    Output("run-noise-card-footer", "children"),
    Output("run-noise-sentence", "children"),
)
"""What the series callback sets; a page that shows something keeps it when the API does not answer."""


PARTS = (("figures", "Figures"), ("layers", "Layers"), ("data", "Data"), ("config", "Config"))

CHART_STEPS, LONGEST_SECONDS = 300, 60.0
"""A chart is some 800 pixels wide: redrawing it for less than three of them costs the server and shows nothing."""


def layout(run_id: str, *, narrow: bool, refresh_seconds: float) -> list[Child]:
    """The page before its first data."""
    height = noise_scale_over_training.NARROW_HEIGHT if narrow else noise_scale_over_training.HEIGHT
    main = html.Div(
        [
            run_figures.noise_card(height),
            html.Div([run_figures.terms_card(), run_figures.loss_card()], className="grid cols two"),
            html.Div([run_laws.trade_off_card(), run_laws.against_loss_card()], className="grid cols two"),
            run_rate.rate_card(),
            run_time.layout(),
            run_layers.layers_card(),
        ],
        className="grid figures",
    )
    body = html.Div(
        [
            html.Div(
                [
                    html.Div(id="run-head"),
                    html.Div(
                        [
                            *run_remarks.form(run_id),
                            *baseline.button(),
                            report_address.link("run-report"),
                            run_sharing.menu(),
                        ],
                        id="run-actions",
                        className=comments.ACTIONS,
                    ),
                ],
                className="head row apart mb16",
            ),
            run_remarks.outcome(),
            html.Div(id="run-note"),
            html.Div(id="run-notices", className="grid"),
            html.Div(id="run-facts", className="facts mb16"),
            _part_choice(),
            html.Div(
                [
                    html.Div([main, recommendation_card.layout()], className="grid cols run-columns"),
                    html.Div(id="run-records", className="grid cols two mt16"),
                    html.Div(id="run-records-note"),
                ],
                id="run-parts",
            ),
            comments.layout(),
            html.Div(id="run-moment-words", className="pinned", role="status"),
            html.Div(id="run-announcement", className="sr-only", role="status"),
        ],
        id="run-body",
        className="loading",
    )
    return shell.page(
        [link("Runs", "/runs"), icon("chevr", "xs"), html.Span(id="run-crumb", className="crumb-end")],
        [html.Div(id="run-missing"), body, *_stores(run_id, refresh_seconds)],
        live_state=html.Span(id="run-live-words", className="lab live"),
    )


def _part_choice() -> dmc.SegmentedControl:
    """What a phone shows at once; wider screens show everything."""
    return dmc.SegmentedControl(
        id="run-part",
        data=[{"value": value, "label": label} for value, label in PARTS],
        value="figures",
        size="xs",
        fullWidth=True,
        className="run-part",
        **aria({"aria-label": "Part of the page"}),
    )


def _stores(run_id: str, refresh_seconds: float) -> list[Child]:
    names = (
        "view",
        "series-view",
        "pref-view",
        "layers-view",
        "pulse",
        "news",
        "beside-asked",
        "layers-asked",
        "records-asked",
        "slow-pulse",
    )
    drawn = (
        "figures",
        "beside-figures",
        "layer-figure",
        "bullet-figure",
        "tradeoff-figure",
        "law-figures",
        "rate-figure",
        "flags",
        "waste",
    )
    return [
        dcc.Store(id="run-id", data=run_id),
        dcc.Store(id="run-windows", data=list(run_figures.WINDOWS)),
        dcc.Store(id="run-layer-names"),
        dcc.Store(id="run-live"),
        dcc.Store(id="run-hovered"),
        dcc.Store(id="run-announced"),
        dcc.Store(id="run-moment"),
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
    run_rate.register(app, api)
    run_time.register(app, api)
    run_remarks.register(app, api)
    run_sharing.register(app, api)
    comments.register(app, api)

    @app.callback(
        *CHANGED,
        Input("run-series-view", "data"),
        Input("run-pulse", "data"),
        Input("run-change", "data"),
        State("run-id", "data"),
        State("run-live", "data"),
        State("narrow", "data"),
    )
    async def load_series(
        view: dict[str, Any] | None, _pulse: Any, _change: Any, run_id: str, live: dict[str, Any] | None, narrow: bool
    ) -> tuple[Any, ...]:
        if view is None:
            raise PreventUpdate
        visitor = visitor_headers(ctx.headers)
        try:
            run = await api.run(visitor, run_id)
        except ApiProblem as problem:
            return _missing() if problem.is_missing else _not_shown(problem, live)
        by = set(ctx.triggered_prop_ids.values())
        if live and by == {"run-pulse"} and _is_as_shown(run, live):
            return _only({"run-live": {**live, **live_state(run)}, "run-note": None})
        # another range or look of what is shown leaves alone what is said of the run itself
        is_another_look = bool(live) and by == {"run-series-view"}
        try:
            read = await run_reading.read(api, visitor, run, view)
        except ApiProblem as problem:
            return _not_shown(problem, live)
        drawn = _drawn(run, read, view, narrow=narrow)
        return _only(drawn if is_another_look else {**_said(run, read, view), **drawn})

    # the browser asks in this order
    run_beside.register(app, api)
    run_records.register(app, api)


def _drawn(run: Run, read: run_figures.Read, view: dict[str, Any], *, narrow: bool) -> dict[str, Any]:
    """What a range or a look changes, by component: the main figure and what is said of it."""
    look = run_figures.look_at(view, run, narrow=narrow)
    return {
        "run-figures": {"noise": noise_scale_over_training.noise_scale_over_training(read.series, look)},
        "run-live": {**live_state(run), "range": [view["from"], view["to"]]},
        "run-note": None,
        "run-w-word": "auto" if view["w"] == "auto" else f"{view['w']} %",
        "run-noise-card-title": run_figures.noise_title(view),
        "run-noise-card-subtitle": run_figures.noise_subtitle(read.series, look),
        "run-noise-card-footer": run_figures.noise_footer(read.series, view),
        "run-noise-sentence": sentences.series_sentence(read.series, look.noun),
    }


def _said(run: Run, read: run_figures.Read, view: dict[str, Any]) -> dict[str, Any]:
    """What news of the run change, by component; a reader who looks elsewhere in it finds it unchanged."""
    is_part = view["linked"] and (view["from"] is not None or view["to"] is not None)
    return {
        "run-missing": None,
        "run-body": "",
        "run-facts": run_overview.facts(run, read.whole, is_zoomed=is_part),
        "run-kind": run_figures.kind_choices((*run.kinds, view["kind"])),
        "run-kind-box": view["kind"] == SIMPLE.name and set(run.kinds) <= {SIMPLE.name},
        "run-crumb": run.name,
        "run-head": run_overview.head(run),
        "run-said": run_remarks.said_of(run),
        "run-notices": [note(notice.text) for notice in run.notices],
        "run-x": run_figures.x_choices(run),
    }


def _is_as_shown(run: Run, live: dict[str, Any]) -> bool:
    """Whether nothing has come since: jobs send every ten seconds, and pages ask more often."""
    state = live_state(run)
    return all(state[name] == live.get(name) for name in ("stamp", "words"))


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
        # the next answer draws everything, also where nothing has come: the view may be another one
        return _only({"run-note": states.paused(live.get("at")), "run-live": {**live, "stamp": None}})
    return _only({"run-missing": states.not_loaded(problem), "run-body": "hidden"})


def _only(changes: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(changes.get(str(output.component_id), no_update) for output in CHANGED)


def live_state(run: Run) -> dict[str, Any]:
    """Whether news can be expected and how often to ask for them, until when the page's data reach, what is counted."""
    is_running = run.status in ("running", "silent")
    words = sentences.STATUS_WORDS.get(sentences.state_of(run), run.status).split(",")[0]
    at = datetime.now(UTC).strftime("%H:%M:%S UTC")
    return {
        "running": is_running,
        "words": words,
        "at": at,
        "stamp": run.updated_at,
        "every": seconds_between_news(run),
        "noun": sentences.noun_of(run),
    }


def seconds_between_news(run: Run) -> float:
    """So long a run takes until its charts move by some three pixels; a minute at most."""
    age = datetime.fromisoformat(run.updated_at) - datetime.fromisoformat(run.created_at)
    return min(age.total_seconds() / CHART_STEPS, LONGEST_SECONDS)
