"""The first page: which runs should change their batch size, and what has happened."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.common import Run
from noisescale_dashboard.answers.series import ShortSeries
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.figures.comparison import misfit, small_multiples
from noisescale_dashboard.overview import cards as overview_cards
from noisescale_dashboard.overview import events as overview_events
from noisescale_dashboard.overview import facts as overview_facts
from noisescale_dashboard.overview import judged as overview_judged
from noisescale_dashboard.overview.judged import Judged, Totals, totals
from noisescale_dashboard.shell import shell, states
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.shell.parts import link
from noisescale_dashboard.words import sentences

REFRESH_FACTOR = 6
"""What is recommended changes slower than a series grows: the page asks a sixth as often as a run's page."""
MAX_JUDGED, MAX_NARROW_ROWS, MAX_PANELS = 8, 6, 6
PANEL_POINTS = 56
EVENT_PIXELS = 62
DAYS = {"7d": 7, "30d": 30}
LEDE = "Each batch in use against the best one for its noise scale."
CHANGED = (
    Output("overview-figures", "data"),
    Output("overview-shown", "data"),
    Output("overview-head", "children"),
    Output("overview-lede", "children"),
    Output("overview-note", "children"),
    Output("overview-missing", "children"),
    Output("overview-body", "className"),
    Output("overview-facts", "children"),
    Output("overview-misfit-card-subtitle", "children"),
    Output("overview-misfit-card-footer", "children"),
    Output("overview-misfit-sentence", "children"),
    Output("overview-misfit", "style"),
)
WITH_SERIES = (
    Output("overview-panels", "data"),
    Output("overview-events", "children"),
    Output("overview-events-card-footer", "children"),
    Output("overview-small-sentence", "children"),
    Output("overview-small", "style"),
    Output("overview-small-card-subtitle", "children"),
)
"""What takes the series of the runs: it comes a moment later than the answer of the page."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the page answers from: runs with their advice, how many there are in the scope, and whether these run."""

    judged: tuple[Judged, ...]
    total: int
    totals: Totals | None = None
    is_running: bool = True


def layout(*, narrow: bool, refresh_seconds: float) -> list[Child]:
    """The page before its first data."""
    body = [
        html.Div(
            [
                html.Div(
                    [
                        html.H1("Which runs should change?", className="h1", id="overview-head"),
                        html.P(LEDE, className="lede", id="overview-lede"),
                    ]
                ),
                html.Div(overview_cards.choices(), className="row wrap overview-choices"),
            ],
            className="head row apart mb16",
        ),
        html.Div(id="overview-note"),
        html.Div(id="overview-missing"),
        html.Div(
            [
                html.Div(id="overview-facts", className="facts mb16"),
                html.Div(
                    [overview_cards.misfit_card(narrow), overview_cards.events_card()],
                    className="grid overview-columns mb16",
                ),
                overview_cards.small_card(narrow),
            ],
            id="overview-body",
            className="loading",
        ),
        dcc.Store(id="overview-view"),
        dcc.Store(id="overview-figures"),
        dcc.Store(id="overview-panels"),
        dcc.Store(id="overview-shown"),
        dcc.Store(id="overview-pulse"),
        dcc.Store(id="overview-opened"),
        dcc.Store(id="overview-live", data={"running": True}),
        dcc.Interval(id="overview-clock", interval=int(1000 * REFRESH_FACTOR * refresh_seconds)),
    ]
    return shell.page([html.B("Overview")], body)


def register(app: Dash, api: ApiClient) -> None:
    """Callbacks of the page: address and controls, everything it shows, colours, clicks."""
    _register_clientside(app)
    _register_load(app, api)
    _register_series(app, api)


def _register_load(app: Dash, api: ApiClient) -> None:
    @app.callback(
        *CHANGED,
        Input("overview-view", "data"),
        Input("overview-pulse", "data"),
        State("overview-shown", "data"),
        State("narrow", "data"),
    )
    async def load_overview(
        view: dict[str, Any] | None, _pulse: float | None, shown: Any, narrow: bool
    ) -> tuple[Any, ...]:
        if view is None:
            raise PreventUpdate
        visitor = visitor_headers(ctx.headers)
        now = datetime.now(UTC)
        try:
            asked = query(view, now)
            page = await api.runs(visitor, asked)
            stamps = {run.id: run.updated_at for run in page.runs}
            is_known = bool(shown) and list(shown["stamps"].items()) == list(stamps.items())
            if is_known and ctx.triggered_id == "overview-pulse":
                return _only({"overview-note.children": None})
            if not page.runs and view["scope"] == "running":
                # the newest runs say more than that nothing runs; trials, where there is nothing else
                for trials in ("hide", None):
                    asked = newest(view, trials=trials)
                    page = await api.runs(visitor, asked)
                    if page.runs:
                        break
                stamps = {run.id: run.updated_at for run in page.runs}
            if not page.runs:
                there_is_one = (await api.runs(visitor, {"limit": 1})).total > 0
                return _only(_nothing(view, there_are_runs=there_is_one))
            found = await find(api, visitor, page.runs, asked, total=page.total, preference=float(view["pref"]))
        except ApiProblem as problem:
            return _only(_not_shown(problem, is_shown=bool(shown)))
        # panels and events know no preference: the same runs in the same order have the same
        changed = {} if is_known else {"overview-shown.data": {"stamps": stamps}}
        return _only({**_shown(found, view, narrow=narrow), **changed})


def _register_series(app: Dash, api: ApiClient) -> None:
    @app.callback(
        *WITH_SERIES, Input("overview-shown", "data"), State("narrow", "data"), State("overview-panels", "data")
    )
    async def load_series(shown: Mapping[str, Any] | None, narrow: bool, panels: Any) -> tuple[Any, ...]:
        if not shown:
            raise PreventUpdate
        try:
            runs, series = await find_series(api, visitor_headers(ctx.headers), list(shown["stamps"]))
        except ApiProblem as problem:
            if panels:
                # what is shown stays; the banner says until when it was true
                raise PreventUpdate from None
            said = f"not loaded: {problem.title}"
            return no_update, html.P(said, className="t2"), None, said, no_update, said
        return _with_series(runs, series, narrow=narrow, now=datetime.now(UTC))


def query(view: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """The API's query for the runs of the scope, the furthest off first."""
    days = DAYS.get(view["scope"])
    return {
        "project": view["project"],
        # nobody changes a trial of a sweep: it was meant to be off
        "trials": "hide",
        "status": None if days else ["running", "silent"],
        "updated_after": (now - timedelta(days=days)).isoformat() if days else None,
        "sort": "-misfit",
        "limit": MAX_JUDGED,
    }


def newest(view: Mapping[str, Any], *, trials: str | None = "hide") -> dict[str, Any]:
    """The API's query for the newest runs, whatever their state."""
    return {"project": view["project"], "trials": trials, "sort": "-updated_at", "limit": MAX_JUDGED}


async def find(
    api: ApiClient,
    visitor: Mapping[str, str],
    runs: Sequence[Run],
    asked: Mapping[str, Any],
    *,
    total: int,
    preference: float,
) -> Found:
    """The runs with their recommendations, and the counts of all that the query matches."""
    advice, counts = await asyncio.gather(
        api.recommendations(visitor, [run.id for run in runs], preference),
        totals(api, visitor, asked, runs=total, preference=preference),
    )
    judged = tuple(Judged(run, advice.get(run.id)) for run in runs)
    # a list is counted to 10,000; groups count all of theirs
    total = total if counts is None else max(total, counts.runs)
    return Found(judged, total, counts, is_running=bool(asked.get("status")))


async def find_series(
    api: ApiClient, visitor: Mapping[str, str], run_ids: Sequence[str]
) -> tuple[list[Run], Mapping[str, ShortSeries]]:
    """The runs in this order, those that are gone left out, and the series of those that get a panel.

    Raises:
        ApiProblem: When the API does not give the runs.
    """
    page = await api.runs(visitor, {"ids": ",".join(run_ids), "limit": MAX_JUDGED})
    known = {run.id: run for run in page.runs}
    runs = [known[run_id] for run_id in run_ids if run_id in known]
    return runs, await api.several_series(visitor, [run.id for run in with_panels(runs)], points=PANEL_POINTS)


def with_panels(runs: Sequence[Run]) -> list[Run]:
    """Running ones first, each group in its own order."""
    return sorted(runs, key=lambda run: run.status != "running")[:MAX_PANELS]


def _with_series(
    runs: Sequence[Run], series: Mapping[str, ShortSeries], *, narrow: bool, now: datetime
) -> tuple[Any, ...]:
    """Panels and events."""
    panels = [
        small_multiples.Panel(run.id, run.name, sentences.short_noun_of(run), series[run.id], run.noise_scale)
        for run in with_panels(runs)
        if run.id in series
    ]
    events = [event for run in runs for event in overview_events.happenings(run, series.get(run.id))]
    num_events = _events_beside(min(len(runs), MAX_NARROW_ROWS) if narrow else len(runs))
    return (
        {"small": small_multiples.small_multiples(panels, narrow=narrow)},
        overview_events.listed(events, now=now.timestamp(), at_most=num_events),
        overview_events.earlier(events, now=now.timestamp(), after=num_events),
        small_sentence(panels),
        _style(small_multiples.height_of(len(panels), narrow=narrow)),
        overview_cards.SMALL_SUBTITLE,
    )


def _shown(found: Found, view: Mapping[str, Any], *, narrow: bool) -> dict[str, Any]:
    """What the page sets at once when there are runs."""
    judged = found.judged
    scope = view["scope"] if found.is_running or view["scope"] != "running" else "any"
    no_job = "Nothing is running; these are the newest runs. " if scope == "any" else ""
    rows = [row for one in judged if (row := overview_judged.misfit_row(one)) is not None]
    drawn = _furthest(rows)[:MAX_NARROW_ROWS] if narrow else rows
    return {
        "overview-figures.data": {"misfit": misfit.misfit(drawn, narrow=narrow)},
        "overview-head.children": overview_judged.headline(judged, found.total, scope=scope, totals=found.totals),
        "overview-lede.children": f"{no_job}{overview_judged.lede(judged, found.totals) or LEDE}",
        "overview-note.children": None,
        "overview-missing.children": None,
        "overview-body.className": "",
        "overview-facts.children": overview_facts.facts(judged, found.total, scope=scope, totals=found.totals),
        "overview-misfit-card-subtitle.children": overview_cards.misfit_subtitle(narrow=narrow),
        "overview-misfit-card-footer.children": _misfit_footer(view, found, num_drawn=len(drawn)),
        "overview-misfit-sentence.children": misfit_sentence(drawn),
        "overview-misfit.style": _style(misfit.height_of(len(drawn), narrow=narrow)),
    }


def _events_beside(num_rows: int) -> int:
    """As many events as fit beside so many rows: the two cards share their height."""
    return min(max(round(misfit.height_of(num_rows, narrow=False) / EVENT_PIXELS), 4), 9)


def _furthest(rows: Sequence[misfit.MisfitRow]) -> list[misfit.MisfitRow]:
    return sorted(rows, key=lambda row: (row.best is None, -abs(math.log(row.ratio))))


def _style(height: int) -> dict[str, Any]:
    return {"width": "100%", "height": height}


def _misfit_footer(view: Mapping[str, Any], found: Found, *, num_drawn: int) -> list[Child]:
    address = "/runs?status=running" if view["scope"] == "running" else f"/runs?since={view['scope']}"
    left_out = found.total - num_drawn
    key = [
        html.Span([html.Span(className="sw square"), " batch now"], className="nb"),
        html.Span([html.Span(className="sw open"), " not resolved: at most"], className="nb"),
        html.Span([html.Span(className="sw zone"), " within 2 ×: costs at most 12.5 %"], className="nb"),
    ]
    words = f"{left_out} more in Runs" if left_out > 0 else "All in Runs"
    return [*key, html.Span(className="sp"), link(words, address, class_name="inline")]


def misfit_sentence(rows: Sequence[misfit.MisfitRow]) -> str:
    """The figure for those who do not see it."""
    said = [f"{row.name[:60]}: {misfit.result_words(row).replace('<b>', '').replace('</b>', '')}" for row in rows]
    return "Batch in use and recommended batch. " + "; ".join(said) + "."


def small_sentence(panels: Sequence[small_multiples.Panel]) -> str:
    """Likewise."""
    return " ".join(f"{panel.name[:60]}: {sentences.series_sentence(panel.series, panel.noun)}" for panel in panels)


def _nothing(view: Mapping[str, Any], *, there_are_runs: bool) -> dict[str, Any]:
    """No run in the scope: how to make one, or where others are."""
    hidden = {
        "overview-body.className": "hidden",
        "overview-note.children": None,
        "overview-shown.data": None,
        "overview-lede.children": LEDE,
    }
    if not there_are_runs:
        return {
            **hidden,
            "overview-head.children": "Which runs should change?",
            "overview-missing.children": states.no_runs(is_filtered=False),
        }
    what = {"7d": "No run in the last 7 days", "30d": "No run in the last 30 days"}.get(
        view["scope"], "Nothing is running"
    )
    where = f" in project {view['project'][:80]}" if view["project"] else ""
    return {
        **hidden,
        "overview-head.children": f"{what}{where}",
        "overview-missing.children": html.Section(
            [
                html.P("A run is judged here as soon as it sends measurements.", className="t2"),
                html.P(
                    [
                        link("Last 30 days", "/?scope=30d", class_name="btn"),
                        " ",
                        link("All runs", "/runs", class_name="btn"),
                    ]
                ),
            ],
            className="card empty",
        ),
    }


def _not_shown(problem: ApiProblem, *, is_shown: bool) -> dict[str, Any]:
    if is_shown:
        return {"overview-note.children": states.paused(None)}
    return {"overview-missing.children": states.not_loaded(problem), "overview-body.className": "hidden"}


def _only(changes: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(changes.get(f"{output.component_id}.{output.component_property}", no_update) for output in CHANGED)


def _register_clientside(app: Dash) -> None:
    def own(function: str) -> ClientsideFunction:
        return ClientsideFunction(shell.NAMESPACE, function)

    app.clientside_callback(
        own("overviewView"),
        Output("overview-view", "data"),
        Output("overview-scope", "value"),
        Output("overview-pref", "value"),
        Input("address", "search"),
        Input("overview-scope", "value"),
        Input("overview-pref", "value"),
        State("overview-view", "data"),
    )
    app.clientside_callback(
        own("pulse"),
        Output("overview-pulse", "data"),
        Input("overview-clock", "n_intervals"),
        State("overview-live", "data"),
    )
    app.clientside_callback(
        own("openClicked"),
        Output("overview-opened", "data"),
        Input("overview-misfit", "clickData"),
        Input("overview-small", "clickData"),
    )
    for figures, graph in (("overview-figures", "overview-misfit"), ("overview-panels", "overview-small")):
        app.clientside_callback(
            own("paintAll"),
            [Output(graph, "figure")],
            Input(figures, "data"),
            Input("theme", "data"),
            State("palettes", "data"),
        )
