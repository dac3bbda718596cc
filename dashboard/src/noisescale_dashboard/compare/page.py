"""Runs, configurations and tasks set against each other; the view stands in the address."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.common import Run
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.compare import config as compare_config
from noisescale_dashboard.compare import runs as compare_runs
from noisescale_dashboard.compare import sizes as compare_sizes
from noisescale_dashboard.compare import tasks as compare_tasks
from noisescale_dashboard.compare.runs import Chosen
from noisescale_dashboard.shell import shell, states
from noisescale_dashboard.shell.explained import Child, aria

TABS = (("runs", "Runs"), ("config", "Config"), ("tasks", "Across tasks"))
NOTHING_SHOWN = "nothing-shown"
"""Class of the page that has words alone; assets/54-compare.css hides its cards."""
NUM_OFFERED, NUM_FOUND = 20, 50
"""Newest runs that are offered before anybody types, and runs of a name."""
CHANGED = (
    Output("compare-head", "children"),
    Output("compare-lede", "children"),
    Output("compare-note", "children"),
    Output("compare-missing", "children"),
    Output("compare-body", "className"),
    Output("compare-live", "data"),
    Output("compare-shown", "data"),
    Output("compare-task-figures", "data"),
    Output("compare-key", "children"),
    Output("compare-scatter-card-footer", "children"),
    Output("compare-scatter-sentence", "children"),
    Output("compare-statistics", "children"),
    Output("compare-order-card-footer", "children"),
    Output("compare-order-sentence", "children"),
    Output("compare-run-figures", "data"),
    Output("compare-runs-card-title", "children"),
    Output("compare-runs-card-subtitle", "children"),
    Output("compare-runs-card-footer", "children"),
    Output("compare-runs-sentence", "children"),
    Output("compare-ratio-card-subtitle", "children"),
    Output("compare-ratio-card-footer", "children"),
    Output("compare-ratio-sentence", "children"),
    Output("compare-base", "data"),
    Output("compare-base-box", "hidden"),
    Output("compare-runs-only", "className"),
    Output("compare-table", "children"),
    Output("compare-table-card-subtitle", "children"),
    Output("compare-config-figures", "data"),
    Output("compare-config-card-subtitle", "children"),
    Output("compare-config-card-footer", "children"),
    Output("compare-config-sentence", "children"),
    Output("compare-config-box", "className"),
    Output("compare-config-table", "children"),
    Output("compare-differences-card-subtitle", "children"),
)
"""What the callback of the page sets; what it does not name stays as it is."""


def layout(*, narrow: bool, refresh_seconds: float) -> list[Child]:
    """The page before its first data."""
    tabs = dmc.SegmentedControl(
        id="compare-tab",
        data=[{"value": value, "label": label} for value, label in TABS],
        value="tasks",
        size="xs",
        **aria({"aria-label": "What is compared"}),
    )
    body = html.Div(
        [
            html.Div(
                [
                    html.Div(
                        [
                            html.H1("Compare", id="compare-head", className="h1"),
                            html.P("", id="compare-lede", className="lede"),
                        ]
                    ),
                    tabs,
                ],
                className="head row apart mb16",
            ),
            html.Div(_pick(), id="compare-pick-box", className="mb16", hidden=True),
            html.Div(id="compare-note"),
            html.Div(id="compare-missing"),
            html.Div(_across_tasks(narrow=narrow), id="compare-tasks-box", hidden=True),
            html.Div(
                html.Div(compare_runs.cards(narrow=narrow), id="compare-runs-only", className="compare-runs"),
                id="compare-runs-box",
                hidden=True,
            ),
            html.Div(compare_config.cards(narrow=narrow), id="compare-config-box", className="grid", hidden=True),
        ],
        id="compare-body",
        className="loading",
    )
    live = html.Span(id="compare-live-words", className="lab live")
    return shell.page([html.B("Compare")], [body, *_stores(refresh_seconds)], live_state=live)


def _pick() -> dmc.MultiSelect:
    return dmc.MultiSelect(
        id="compare-pick",
        data=[],
        value=[],
        placeholder="Add a run",
        searchable=True,
        hidePickedOptions=True,
        maxValues=compare_runs.MAX_RUNS,
        limit=NUM_FOUND,
        nothingFoundMessage="No run of this name",
        size="xs",
        **aria({"aria-label": "Runs that are compared"}),
    )


def _across_tasks(*, narrow: bool) -> html.Div:
    scatter, statistics, order = compare_tasks.cards(narrow=narrow)
    side = html.Div([statistics, order, compare_sizes.size_card()], className="grid stack")
    return html.Div([scatter, side], className="grid compare-columns")


def _stores(refresh_seconds: float) -> list[Child]:
    names = ("view", "live", "received", "pulse", "shown", "searched")
    drawn = ("task-figures", "size-figures", "run-figures", "config-figures")
    return [
        *(dcc.Store(id=f"compare-{name}") for name in (*names, *drawn)),
        dcc.Interval(id="compare-clock", interval=int(1000 * refresh_seconds)),
        dcc.Interval(id="compare-second", interval=1000),
    ]


def register(app: Dash, api: ApiClient) -> None:
    """Callbacks of the page: the view in the address, what it shows, which runs can be chosen, colours."""
    _register_clientside(app)
    _register_choice(app, api)
    compare_sizes.register(app, api)

    @app.callback(
        *CHANGED,
        Input("compare-view", "data"),
        Input("compare-pulse", "data"),
        State("compare-shown", "data"),
        State("narrow", "data"),
    )
    async def load(
        view: dict[str, Any] | None, _pulse: float | None, shown: dict[str, Any] | None, narrow: bool
    ) -> tuple[Any, ...]:
        if view is None:
            raise PreventUpdate
        try:
            if view["tab"] == "tasks":
                return _only(await _tasks(api, view, narrow=narrow))
            return _only(await _runs(api, view, narrow=narrow))
        except ApiProblem as problem:
            return _only(_not_shown(problem, view, shown))


async def _tasks(api: ApiClient, view: Mapping[str, Any], *, narrow: bool) -> dict[str, Any]:
    found = await api.comparison(visitor_headers(ctx.headers), {"project": view["project"]})
    return _frame(view, live=False) | compare_tasks.changes(found, narrow=narrow)


async def _runs(api: ApiClient, view: Mapping[str, Any], *, narrow: bool) -> dict[str, Any]:
    visitor = visitor_headers(ctx.headers)
    chosen = await compare_runs.read(api, visitor, view)
    frame = _frame(view, live=any(compare_runs.is_live(run) for run in chosen.runs))
    if not chosen.runs:
        return _nothing(frame, chosen)
    frame["compare-note.children"] = compare_runs.unknown_note(chosen, len(view["runs"]))
    if view["tab"] == "config":
        return frame | compare_config.changes(chosen, with_equal=bool(view["same"]), narrow=narrow)
    asked = {"x": view["x"], "points": compare_runs.POINTS}
    found = await api.compared_runs(visitor, [run.id for run in chosen.runs], asked)
    return frame | compare_runs.changes(_still_there(chosen, found.missing), found, view, narrow=narrow)


def _still_there(chosen: Chosen, missing: tuple[str, ...]) -> Chosen:
    """Without the runs that were deleted between two questions."""
    kept = [place for place, run in enumerate(chosen.runs) if run.id not in missing]
    return Chosen(
        tuple(chosen.runs[place] for place in kept),
        tuple(chosen.names[place] for place in kept),
        tuple(chosen.slots[place] for place in kept),
        (*chosen.unknown, *missing),
        is_base_named=chosen.is_base_named,
    )


def _frame(view: Mapping[str, Any], *, live: bool) -> dict[str, Any]:
    """What every view sets: which part shows, and nothing of what was missing before."""
    now = datetime.now(UTC).strftime("%H:%M:%S UTC")
    return {
        "compare-note.children": None,
        "compare-missing.children": None,
        "compare-body.className": "",
        "compare-live.data": {"running": live, "words": "", "at": now},
        "compare-shown.data": {"tab": view["tab"], "runs": list(view["runs"]), "at": now},
    }


def _nothing(frame: dict[str, Any], chosen: Chosen) -> dict[str, Any]:
    return frame | {
        "compare-body.className": NOTHING_SHOWN,
        "compare-head.children": "Compare runs",
        "compare-lede.children": "Where runs have come equally far: whose noise scale is larger, and what differs.",
        "compare-missing.children": compare_runs.no_runs(unknown=chosen.unknown),
        "compare-shown.data": None,
    }


def _not_shown(problem: ApiProblem, view: Mapping[str, Any], shown: Mapping[str, Any] | None) -> dict[str, Any]:
    """What changes when the API does not answer: nothing that is already shown goes away."""
    if shown and shown["tab"] == view["tab"]:
        return {"compare-note.children": states.paused(shown["at"])}
    return {
        "compare-missing.children": states.not_loaded(problem),
        "compare-body.className": NOTHING_SHOWN,
        "compare-shown.data": None,
        "compare-note.children": None,
    }


def _only(changes: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(changes.get(f"{output.component_id}.{output.component_property}", no_update) for output in CHANGED)


def _register_choice(app: Dash, api: ApiClient) -> None:
    @app.callback(
        Output("compare-pick", "data"),
        Output("compare-pick-box", "hidden"),
        Input("compare-view", "data"),
        Input("compare-searched", "data"),
    )
    async def offer_runs(view: dict[str, Any] | None, text: str | None) -> tuple[Any, bool]:
        if view is None:
            raise PreventUpdate
        if view["tab"] == "tasks":
            return no_update, True
        visitor = visitor_headers(ctx.headers)
        asked = {"q": text, "project": view["project"], "limit": NUM_FOUND if text else NUM_OFFERED}
        try:
            chosen, offered, with_trials = await asyncio.gather(
                compare_runs.read(api, visitor, view),
                api.runs(visitor, {**asked, "trials": "hide"}),
                api.runs(visitor, asked),
            )
        except ApiProblem:
            # the page says that nothing was loaded
            raise PreventUpdate from None
        # before anybody types, trials are offered where there is nothing else
        trials = with_trials.runs if text or not offered.runs else ()
        return choices(chosen.runs, chosen.unknown, offered.runs, trials), False


def choices(
    chosen: Sequence[Run], unknown: Sequence[str], runs: Sequence[Run], trials: Sequence[Run]
) -> list[dict[str, Any]]:
    """Runs that can be chosen, each once, with their task; trials of sweeps stand below runs of their own.

    The control drops a value that it is not offered, and the address would forget it: what is chosen comes first.

    Args:
        chosen: Of the address.
        unknown: Ids that the address names in vain.
        runs: Offered, none of which is a trial.
        trials: Offered; those that are runs above are left out.
    """
    named = [{"value": run_id, "label": f"{run_id[:40]} · no such run"} for run_id in unknown]
    seen = {run.id for run in chosen}
    groups = []
    for title, offered in (("Runs", runs), ("Trials of sweeps", trials)):
        items = [_choice(run) for run in offered if run.id not in seen]
        seen |= {run.id for run in offered}
        groups += [{"group": title, "items": items}] if items else []
    return [*(_choice(run) for run in chosen), *named, *groups]


def _choice(run: Run) -> dict[str, str]:
    return {"value": run.id, "label": f"{run.name[:80]} · {run.task[:40]}"}


def _register_clientside(app: Dash) -> None:
    def own(function: str) -> ClientsideFunction:
        return ClientsideFunction(shell.NAMESPACE, function)

    app.clientside_callback(
        own("compareView"),
        Output("compare-view", "data"),
        Output("compare-tab", "value"),
        Output("compare-x", "value"),
        Output("compare-y", "value"),
        Output("compare-pick", "value"),
        Output("compare-of", "value"),
        Output("compare-same", "checked"),
        Output("compare-base", "value"),
        Input("address", "search"),
        Input("compare-tab", "value"),
        Input("compare-x", "value"),
        Input("compare-y", "value"),
        Input("compare-pick", "value"),
        Input("compare-of", "value"),
        Input("compare-same", "checked"),
        Input("compare-base", "value"),
        State("compare-view", "data"),
    )
    app.clientside_callback(
        own("compareSearch"),
        Output("compare-searched", "data"),
        Input("compare-pick", "searchValue"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        own("compareTab"),
        [Output(f"compare-{tab}-box", "hidden") for tab, _ in TABS],
        Input("compare-view", "data"),
    )
    app.clientside_callback(
        own("pulse"),
        Output("compare-pulse", "data"),
        Input("compare-clock", "n_intervals"),
        State("compare-live", "data"),
    )
    app.clientside_callback(own("received"), Output("compare-received", "data"), Input("compare-live", "data"))
    app.clientside_callback(
        own("liveWords"),
        Output("compare-live-words", "children"),
        Input("compare-second", "n_intervals"),
        Input("compare-received", "data"),
    )
    theme = (Input("theme", "data"), State("palettes", "data"))
    for store, graphs in (
        ("compare-task-figures", compare_tasks.GRAPHS),
        ("compare-size-figures", compare_sizes.GRAPHS),
        ("compare-run-figures", compare_runs.GRAPHS),
        ("compare-config-figures", compare_config.GRAPHS),
    ):
        app.clientside_callback(
            own("paintCompared"),
            [Output(f"compare-{graph}", "figure") for graph in graphs],
            Input(store, "data"),
            *theme,
        )
