"""One sweep: what the critical batch is for a target, and how sure that is. Branches have a view of their own."""

from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.sweeps import CriticalBatch, Sweep, TargetFit
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.shell import shell, states
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import icon, link
from noisescale_dashboard.sweeps import between as sweep_between
from noisescale_dashboard.sweeps import branch as sweep_branch
from noisescale_dashboard.sweeps import cards as sweep_cards
from noisescale_dashboard.sweeps import figures as sweep_figures
from noisescale_dashboard.sweeps import followed as sweep_followed
from noisescale_dashboard.sweeps import laws as sweep_laws
from noisescale_dashboard.sweeps import rename as sweep_rename
from noisescale_dashboard.sweeps import words as sweep_sentences
from noisescale_dashboard.words.number_format import exactly

NO_RUNS = "No runs are attached to this sweep yet. They come with noisescale.sweep, or by POST …/runs."
NO_TARGET = (
    "This sweep names no target, and its runs did not improve, so there is no critical batch to measure. Let them go "
    "on, or add a target to the address: ?target=0.5"
)
REFRESH_FACTOR = 6
"""A sweep grows by whole trainings: it is asked for less often than a run."""
CHANGED = (
    Output("sweep-figures", "data"),
    Output("sweep-shown", "data"),
    Output("sweep-missing", "children"),
    Output("sweep-body", "className"),
    Output("sweep-branch", "children"),
    Output("sweep-branch-figures", "data"),
    Output("sweep-arms", "style"),
    Output("sweep-arms-card-subtitle", "children"),
    Output("sweep-branch-card-box", "hidden"),
    Output("sweep-cards", "hidden"),
    Output("sweep-crumb", "children"),
    Output("sweep-name", "placeholder"),
    Output("sweep-head", "children"),
    Output("sweep-lede", "children"),
    Output("sweep-note", "children"),
    Output("sweep-target", "data"),
    Output("sweep-choices", "hidden"),
    Output("sweep-cards", "className"),
    Output("sweep-hyperbola-card-title", "children"),
    Output("sweep-hyperbola-card-subtitle", "children"),
    Output("sweep-steps-card-title", "children"),
    Output("sweep-steps-card-subtitle", "children"),
    Output("sweep-steps-card-footer", "children"),
    Output("sweep-targets-card-subtitle", "children"),
    Output("sweep-fit", "children"),
    Output("sweep-fit-card-footer", "children"),
    Output("sweep-hyperbola-sentence", "children"),
    Output("sweep-steps-sentence", "children"),
    Output("sweep-targets-sentence", "children"),
    Output("sweep-residuals-sentence", "children"),
    Output("sweep-between", "children"),
    Output("sweep-followed", "children"),
)
"""What the callback of the sweep sets; what it does not name stays as it is."""


def layout(sweep_id: str, *, narrow: bool, refresh_seconds: float) -> list[Child]:
    """The page before its first data."""
    body = html.Div(
        [
            html.Div(
                [
                    html.Div([html.H1(id="sweep-head", className="h1"), html.P(id="sweep-lede", className="lede")]),
                    _choices(),
                ],
                className="head row apart mb16",
            ),
            html.Div(id="sweep-note"),
            html.Div(sweep_cards.layout(narrow=narrow), id="sweep-cards", className="sweep-grid"),
            html.Div(id="sweep-between"),
            html.Div(id="sweep-followed"),
            html.Div(id="sweep-branch"),
            html.Div(sweep_branch.figure_card(), id="sweep-branch-card-box", hidden=True),
        ],
        id="sweep-body",
        className="loading",
    )
    stores: list[Child] = [
        dcc.Store(id="sweep-id", data=sweep_id),
        *(
            dcc.Store(id=f"sweep-{name}")
            for name in ("view", "chosen", "shown", "figures", "next-figures", "law-figures")
        ),
        dcc.Store(id="sweep-branch-figures"),
        dcc.Store(id="sweep-pulse"),
        dcc.Store(id="sweep-live", data={"running": True}),
        dcc.Interval(id="sweep-clock", interval=int(1000 * REFRESH_FACTOR * refresh_seconds)),
    ]
    return shell.page(
        [link("Sweeps", "/sweeps"), icon("chevr", "xs"), html.Span(id="sweep-crumb", className="crumb-end")],
        [html.Div(id="sweep-missing"), body, *stores],
    )


def _choices() -> html.Div:
    target = dmc.Select(
        id="sweep-target", data=[], allowDeselect=False, size="xs", w=190, **aria({"aria-label": "Target"})
    )
    choices = html.Div(target, id="sweep-choices", hidden=True)
    return html.Div([choices, sweep_rename.form()], className="row sweep-actions")


def register(app: Dash, api: ApiClient) -> None:
    """Callbacks of the page: target in the address, the sweep, what to run next, quality, colours."""
    _register_clientside(app)
    sweep_cards.register(app, api)
    sweep_laws.register(app, api)
    sweep_rename.register(app, api)

    @app.callback(
        *CHANGED,
        Input("sweep-view", "data"),
        Input("sweep-pulse", "data"),
        State("sweep-id", "data"),
        State("sweep-shown", "data"),
        State("narrow", "data"),
    )
    async def load_sweep(
        view: dict[str, Any] | None, _pulse: float | None, sweep_id: str, shown: Any, narrow: bool
    ) -> tuple[Any, ...]:
        if view is None:
            raise PreventUpdate
        visitor = visitor_headers(ctx.headers)
        try:
            sweep = await api.sweep(visitor, sweep_id)
            if ctx.triggered_id == "sweep-pulse" and not has_news(sweep, shown):
                return _only({"sweep-note.children": None})
            wanted = float(view["target"]) if view["target"] else None
            if sweep.kind == "branch" or not sweep.num_runs:
                return _only(_without_targets(sweep, narrow=narrow))
            found = await _fits(api, visitor, sweep, wanted)
        except ApiProblem as problem:
            return _only(_not_shown(problem, is_shown=bool(shown)))
        target = sweep_sentences.chosen_target(found, wanted)
        if target is None:
            return _only(_without_targets(sweep, narrow=narrow))
        from_slopes = view["regimes"] == "slopes"
        return _only(_shown(sweep, found, target, from_slopes=from_slopes, narrow=narrow))


async def _fits(api: ApiClient, visitor: Mapping[str, str], sweep: Sweep, wanted: float | None) -> CriticalBatch:
    """The fits at the sweep's targets, or where it names none at those that its runs reached, and at the one wanted."""
    if sweep.targets:
        return await api.critical_batch(visitor, sweep.id, asked_targets(sweep.targets, wanted))
    found = await api.critical_batch(visitor, sweep.id)
    asked = asked_targets([one.target for one in found.targets], wanted)
    return await api.critical_batch(visitor, sweep.id, asked) if asked else found


def asked_targets(own: Sequence[float], wanted: float | None) -> dict[str, list[str]]:
    """The API's query: nothing for the sweep's own targets, which are fitted already, else these and the one wanted."""
    if wanted is None or wanted in own:
        return {}
    return {"target": [repr(target) for target in (*own, wanted)]}


def has_news(sweep: Sweep, shown: dict[str, Any] | None) -> bool:
    """Whether runs have come or are still under way since the page was drawn: fits are not asked for in vain."""
    is_under_way = any(run.status == "incomplete" for run in sweep.runs)
    return shown is None or is_under_way or sweep.num_runs != shown.get("num_runs")


def _shown(sweep: Sweep, found: CriticalBatch, target: TargetFit, *, from_slopes: bool, narrow: bool) -> dict[str, Any]:
    """Everything that a sweep with targets sets."""
    metric = sweep_sentences.metric_words(sweep.metric)
    first = sweep_sentences.first_target(found)
    return {
        "sweep-figures.data": sweep_figures.draw(sweep, found, target, from_slopes=from_slopes, narrow=narrow),
        "sweep-shown.data": {
            "kind": sweep.kind,
            "target": target.target,
            "first": first.target if first else None,
            "unit": sweep.unit,
            "num_targets": len(found.targets),
            "num_runs": sweep.num_runs,
        },
        "sweep-missing.children": None,
        "sweep-body.className": "",
        "sweep-branch.children": None,
        "sweep-branch-card-box.hidden": True,
        "sweep-crumb.children": sweep.name,
        "sweep-name.placeholder": sweep.name,
        "sweep-head.children": sweep_sentences.headline(target, unit=sweep.unit, metric=metric),
        "sweep-lede.children": sweep_sentences.lede(sweep, target, found.level),
        "sweep-note.children": None,
        "sweep-target.data": [
            {"value": _as_javascript(one.target), "label": f"{metric} {exactly(one.target)}"} for one in found.targets
        ],
        "sweep-choices.hidden": len(found.targets) < 2,
        "sweep-cards.hidden": False,
        "sweep-cards.className": _grid_class(found, target),
        **sweep_figures.captions(sweep, found, target, metric=metric),
        "sweep-fit.children": sweep_cards.fit_table(found, target),
        "sweep-fit-card-footer.children": sweep_cards.fit_footer(target),
        **sweep_between.changes(sweep),
        **sweep_followed.changes(sweep),
    }


def _as_javascript(number: float) -> str:
    """As the browser's String() writes it, so that choice and address compare."""
    return f"{number:.0f}" if float(number).is_integer() and abs(number) < 1e15 else repr(number)


def _grid_class(found: CriticalBatch, target: TargetFit) -> str:
    """Cards that would be empty go away: critical batch against a single target, residuals of no fit."""
    names = ["sweep-grid"]
    names += ["one-target"] if len(found.targets) < 2 else []
    names += ["no-fit"] if target.fit is None else []
    return " ".join(names)


def _without_targets(sweep: Sweep, *, narrow: bool) -> dict[str, Any]:
    """A branch, or a sweep that has no runs, or no target that they reached."""
    changes: dict[str, Any] = {
        "sweep-shown.data": None,
        "sweep-missing.children": None,
        "sweep-body.className": "",
        "sweep-cards.hidden": True,
        "sweep-branch-card-box.hidden": sweep.kind != "branch",
        "sweep-crumb.children": sweep.name,
        "sweep-name.placeholder": sweep.name,
        "sweep-choices.hidden": True,
        "sweep-note.children": None,
        **sweep_between.changes(sweep),
        **sweep_followed.changes(sweep),
    }
    if sweep.kind == "branch":
        return {**changes, **sweep_branch.changes(sweep, narrow=narrow)}
    words = NO_TARGET if sweep.num_runs else NO_RUNS
    return {**changes, "sweep-head.children": sweep.name, "sweep-lede.children": words, "sweep-branch.children": None}


def _not_shown(problem: ApiProblem, *, is_shown: bool) -> dict[str, Any]:
    """What changes when the API does not give the sweep: nothing that is already shown goes away."""
    if problem.is_missing:
        return {
            "sweep-missing.children": states.no_such_sweep(),
            "sweep-body.className": "hidden",
            "sweep-crumb.children": "not found",
        }
    if is_shown:
        return {"sweep-note.children": states.paused(None)}
    return {"sweep-missing.children": states.not_loaded(problem), "sweep-body.className": "hidden"}


def _only(changes: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(changes.get(f"{output.component_id}.{output.component_property}", no_update) for output in CHANGED)


def _register_clientside(app: Dash) -> None:
    def own(function: str) -> ClientsideFunction:
        return ClientsideFunction(shell.NAMESPACE, function)

    app.clientside_callback(
        own("sweepView"),
        Output("sweep-view", "data"),
        Output("sweep-target", "value"),
        Output("sweep-regimes", "value"),
        Input("address", "search"),
        Input("sweep-target", "value"),
        Input("sweep-regimes", "value"),
        State("sweep-shown", "data"),
        State("sweep-view", "data"),
    )
    app.clientside_callback(own("showTarget"), Output("sweep-chosen", "data"), Input("sweep-shown", "data"))
    app.clientside_callback(
        own("pulse"), Output("sweep-pulse", "data"), Input("sweep-clock", "n_intervals"), State("sweep-live", "data")
    )
    theme = (Input("theme", "data"), State("palettes", "data"))
    for store, graphs in (
        ("sweep-figures", sweep_figures.GRAPHS),
        ("sweep-next-figures", ("quality",)),
        ("sweep-law-figures", sweep_laws.GRAPHS),
        ("sweep-branch-figures", ("arms",)),
    ):
        app.clientside_callback(
            own("paintAll"), [Output(f"sweep-{graph}", "figure") for graph in graphs], Input(store, "data"), *theme
        )
