"""The planner: which batch and how many devices, at what time and cost, inside what one has."""

import asyncio
from collections.abc import Mapping
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.plans import TradeOff
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.figures.planning import plan_quantities, time_against_cost, which_limit_binds
from noisescale_dashboard.figures.planning.time_against_cost import Beside
from noisescale_dashboard.planner import beyond as planner_beyond
from noisescale_dashboard.planner import cards as planner_cards
from noisescale_dashboard.planner import panel as planner_panel
from noisescale_dashboard.planner import query as planner_query
from noisescale_dashboard.planner import refusals as planner_refusals
from noisescale_dashboard.planner import scope as planner_scope
from noisescale_dashboard.planner import words as sentences
from noisescale_dashboard.planner.query import FIELDS, FLAGS, MAIN, View
from noisescale_dashboard.planner.scope import Scope
from noisescale_dashboard.shell import shell
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import icon, link, note
from noisescale_dashboard.shell.still import Still
from noisescale_dashboard.words.number_format import unbroken

GRAPHS = ("pareto", "binds")
CHANGED = (
    Output("planner-figures", "data"),
    Output("planner-ranges", "data"),
    Output("planner-missing", "children"),
    Output("planner-body", "className"),
    Output("planner-cards", "hidden"),
    Output("planner-crumb", "children"),
    Output("planner-head", "children"),
    Output("planner-lede", "children"),
    Output("planner-note", "children"),
    Output("planner-target", "data"),
    Output("planner-target", "error"),
    Output("planner-target-box", "hidden"),
    Output("planner-limits-card-subtitle", "children"),
    Output("planner-pareto-card-title", "children"),
    Output("planner-pareto-card-subtitle", "children"),
    Output("planner-pareto-sentence", "children"),
    Output("planner-binds-card-subtitle", "children"),
    Output("planner-binds-card-footer", "children"),
    Output("planner-binds-sentence", "children"),
    Output("planner-binds", "style"),
    Output("planner-table", "children"),
    Output("planner-table-card-subtitle", "children"),
    Output("planner-table-card-footer", "children"),
    Output("planner-policies", "children"),
    Output("planner-policies-card-subtitle", "children"),
    Output("planner-policies-card-footer", "children"),
    Output("planner-y", "data"),
    Output("planner-y", "display"),
    Output("planner-pref-word", "children"),
    Output("planner-basis", "children"),
    Output("planner-what-ifs", "children"),
    Output("planner-ways", "children"),
    Output("planner-beyond", "children"),
    Output("planner-beyond-card-subtitle", "children"),
    Output("planner-beyond-card-footer", "children"),
    Output("planner-spot-words", "children"),
    Output("planner-refused", "children"),
    *(Output(f"planner-f-{name}", "error") for name in FIELDS),
    *(Output(f"planner-f-{name}", "placeholder") for name in FIELDS),
)
"""What the callback of the plan sets; what it does not name stays as it is."""


def layout(*, narrow: bool, refresh_seconds: float) -> list[Child]:
    """The page before its first data; nothing on it changes by itself."""
    del refresh_seconds
    actions = html.Div(
        [
            html.Button(
                [icon("link", "sm"), "Copy link"],
                className="btn",
                type="button",
                **aria({"data-card-action": "link"}),
            ),
            html.Button(
                [icon("print", "sm"), "Print"], className="btn", type="button", **aria({"data-planner-print": ""})
            ),
            html.Button(
                [icon("planner", "sm"), "Limits"],
                className="btn only-m",
                type="button",
                **aria({"data-planner-sheet": "open", "aria-controls": "planner-sheet"}),
            ),
        ],
        className="row planner-actions",
    )
    head = html.Div(
        [
            html.Div(
                [
                    html.H1("Planner", id="planner-head", className="h1"),
                    html.P(id="planner-lede", className="lede"),
                    html.P(
                        link("A language model's first batch, before any run", "/planner/first", class_name="inline"),
                        className="small",
                    ),
                ]
            ),
            actions,
        ],
        className="head row apart mb16",
    )
    cards = html.Div(planner_cards.layout(narrow=narrow), id="planner-cards", className="planner-cards", hidden=True)
    main = html.Div([html.Div(id="planner-missing"), cards], className="planner-main")
    body = html.Div(
        [
            head,
            html.Div(id="planner-note"),
            html.Div(
                [html.Div(planner_panel.layout(), id="planner-sheet", className="planner-sheet"), main],
                className="planner-columns",
            ),
        ],
        id="planner-body",
        className="loading",
    )
    stores: list[Child] = [
        dcc.Store(id=f"planner-{name}") for name in ("view", "wanted", "scope", "asked", "ranges", "figures", "moved")
    ]
    return shell.page(
        [link("Planner", "/planner"), icon("chevr", "xs"), html.Span(id="planner-crumb", className="crumb-end")],
        [body, *stores],
    )


def register(app: Dash, api: ApiClient) -> None:
    """Callbacks of the page: address and controls, the plan, sliders, colours."""
    _register_clientside(app)

    @app.callback(
        Output("planner-scope", "data"),
        Output("planner-task", "data"),
        Output("planner-run", "data"),
        Input("planner-wanted", "data"),
    )
    async def load_scope(wanted: dict[str, Any] | None) -> tuple[Any, ...]:
        if wanted is None:
            raise PreventUpdate
        try:
            scope, choices = await planner_scope.find(api, visitor_headers(ctx.headers), wanted["view"])
        except ApiProblem as problem:
            return planner_scope.unanswered(problem, wanted), no_update, no_update
        tasks, runs = planner_scope.task_choices(choices.projects), planner_scope.run_choices(choices.runs)
        return scope.as_data(wanted), tasks, runs

    @app.callback(*CHANGED, Input("planner-asked", "data"), State("planner-cards", "hidden"), State("narrow", "data"))
    async def load_plan(asked: dict[str, Any] | None, is_hidden: bool | None, narrow: bool) -> tuple[Any, ...]:
        if asked is None:
            raise PreventUpdate
        view: View = asked["view"]
        try:
            scope = planner_scope.scope_of(asked["scope"])
        except ApiProblem as problem:
            return _only(planner_refusals.not_found(problem, view, is_shown=is_hidden is False))
        if scope.kind == "nothing":
            return _only({**planner_refusals.of_scope(scope, view), **planner_refusals.nothing_yet()})
        try:
            plan, other = await _read(api, visitor_headers(ctx.headers), scope, view)
        except ApiProblem as problem:
            return _only(planner_refusals.refused(problem, scope, view, is_shown=is_hidden is False))
        return _only(_shown(plan, other, scope, view, narrow=narrow))


async def _read(
    api: ApiClient, visitor: Mapping[str, str], scope: Scope, view: View
) -> tuple[TradeOff, TradeOff | None]:
    """The plan, and the same on demand where it is on spot."""
    asked = planner_query.question(view, scope.source)
    if not view.get("spot"):
        return await api.trade_off(visitor, asked), None
    plan, other = await asyncio.gather(
        api.trade_off(visitor, asked), api.trade_off(visitor, planner_query.on_demand(asked))
    )
    return plan, other


def _shown(plan: TradeOff, other: TradeOff | None, scope: Scope, view: View, *, narrow: bool) -> dict[str, Any]:
    """Everything that a plan sets."""
    noun = sentences.noun_of(plan)
    beside, refused = planner_query.refusal(None)
    costs = planner_cards.cost_choices(plan, view["y"])
    return {
        **planner_refusals.of_scope(scope, view),
        "planner-body.className": "one-device" if plan.is_on_one_device else "",
        **_fields(beside, refused, planner_panel.placeholders(plan, is_on_spot=bool(view.get("spot")))),
        "planner-figures.data": _figures(plan, other, scope, view, narrow=narrow),
        "planner-ranges.data": planner_panel.ranges(plan),
        "planner-target.data": planner_panel.target_choices(plan, view.get("target")),
        "planner-target-box.hidden": scope.kind != "task" or len(plan.targets.values) < 2,
        "planner-missing.children": None,
        "planner-cards.hidden": False,
        "planner-head.children": sentences.headline(plan),
        "planner-lede.children": unbroken(sentences.lede(plan, _present_word(scope))),
        "planner-note.children": _relative(plan, scope),
        "planner-limits-card-subtitle.children": unbroken(f"{scope.title[:60]}, to {plan.target}"),
        "planner-pareto-card-title.children": planner_cards.pareto_title(plan, view["y"]),
        "planner-pareto-card-subtitle.children": planner_cards.pareto_subtitle(plan, view["y"]),
        "planner-pareto-sentence.children": planner_cards.pareto_sentence(plan),
        "planner-binds-card-subtitle.children": f"Batch size, {noun}, log · grey: does not bind",
        "planner-binds-card-footer.children": unbroken(sentences.binds(plan)),
        "planner-binds-sentence.children": sentences.binds(plan),
        "planner-binds.style": {"width": "100%", "minHeight": which_limit_binds.height(plan)},
        "planner-table.children": Still(planner_cards.table(plan, narrow=narrow)),
        "planner-table-card-subtitle.children": "Predicted · in small: 95 % · grey: breaks a limit",
        "planner-table-card-footer.children": planner_cards.table_footer(plan),
        "planner-policies.children": Still(planner_cards.policies(plan, narrow=narrow)),
        "planner-policies-card-subtitle.children": f"To {plan.target}, predicted · bill: against a constant batch",
        "planner-policies-card-footer.children": planner_cards.policies_footer(plan),
        "planner-y.data": costs,
        "planner-y.display": None if len(costs) > 1 else "none",
        "planner-basis.children": note(unbroken(sentences.basis(plan)), quiet=True, icon_name="info"),
        "planner-what-ifs.children": planner_cards.what_ifs(plan),
        "planner-ways.children": Still(planner_beyond.ways(plan, narrow=narrow)),
        "planner-beyond.children": planner_beyond.other_uses(plan, scope),
        "planner-beyond-card-subtitle.children": planner_beyond.subtitle(plan),
        "planner-beyond-card-footer.children": planner_beyond.footer(plan),
    }


def _present_word(scope: Scope) -> str:
    return "in use" if scope.kind == "run" else "used so far"


def _figures(plan: TradeOff, other: TradeOff | None, scope: Scope, view: View, *, narrow: bool) -> dict[str, Any]:
    noun = sentences.noun_of(plan)
    x, y = plan_quantities.across(plan), plan_quantities.upwards(plan, view["y"], noun)
    look = time_against_cost.PlaneView(
        cost=view["y"],
        noun=noun,
        deadline=plan.asked_of(x.name),
        budget=plan.asked_of(y.name),
        narrow=narrow,
        present_word="now" if scope.kind == "run" else "so far",
    )
    beside = None if other is None else Beside(other, "on demand", is_dotted=False)
    return {
        "pareto": time_against_cost.time_against_cost(plan, look, beside),
        "binds": which_limit_binds.which_limit_binds(plan, noun=noun),
    }


def _relative(plan: TradeOff, scope: Scope) -> Child | None:
    """What is missing for hours and USD, and how to say it."""
    if not plan.has_plan:
        text = "The number of steps to the target is unknown, so everything is relative to the fewest possible."
        if scope.kind == "run":
            text = "This run has no steps left, so everything is relative: plan the next run of its task instead."
        return note([text, " Steps and their batch can be typed under “Numbers of your own”."], icon_name="info")
    if plan.step is None:
        return note("The time of a step is unknown: enter it under Limits.", icon_name="info", quiet=True)
    if not plan.has_hours and plan.assumes:
        # two times of a step make the others known
        return note([plan.assumes, " Type what a step takes under Limits."], icon_name="info", quiet=True)
    if plan.has_hours and all(row.usd.value is None for row in plan.rows):
        missing = "A price of a device-hour is" if plan.step.num_devices else "Devices and their price are"
        return note(f"{missing} not known: type it under Limits.", icon_name="info", quiet=True)
    return None


def _fields(beside: Mapping[str, str], refused: str | None, placeholders: Mapping[str, str]) -> dict[str, Any]:
    return {
        "planner-refused.children": refused,
        **planner_refusals.field_errors(beside),
        **{f"planner-f-{name}.placeholder": placeholders.get(name, "") for name in FIELDS},
    }


def _only(changes: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(changes.get(f"{output.component_id}.{output.component_property}", no_update) for output in CHANGED)


def _register_clientside(app: Dash) -> None:
    def own(function: str) -> ClientsideFunction:
        return ClientsideFunction(shell.NAMESPACE, function)

    values = [(f"planner-f-{name}", "value") for name in FIELDS] + [(f"planner-{name}", "checked") for name in FLAGS]
    values += [("planner-pref", "value"), ("planner-y", "value")]
    app.clientside_callback(
        own("plannerView"),
        Output("planner-view", "data"),
        *(Output(*one) for one in values),
        Input("address", "search"),
        *(Input(*one) for one in values),
        *(Input(f"planner-s-{name}", "value") for name in MAIN),
        Input("planner-task", "value"),
        Input("planner-run", "value"),
        Input("planner-target", "value"),
        Input("planner-unit", "value"),
        Input("planner-clear", "n_clicks"),
        State("planner-view", "data"),
        State("planner-scope", "data"),
        State("planner-ranges", "data"),
    )
    app.clientside_callback(
        own("plannerAsked"),
        Output("planner-asked", "data"),
        Input("planner-view", "data"),
        Input("planner-scope", "data"),
        State("planner-wanted", "data"),
    )
    app.clientside_callback(
        own("plannerSliders"),
        Output("planner-moved", "data"),
        *(Output(f"planner-s-{name}", "disabled") for name in MAIN),
        Output("planner-spot-fields", "hidden"),
        Output("planner-worth-fold-count", "children"),
        Output("planner-more-fold-count", "children"),
        Output("planner-known-fold-count", "children"),
        Output("planner-pref", "disabled"),
        Input("planner-ranges", "data"),
        Input("planner-view", "data"),
        Input("planner-scope", "data"),
        State("planner-target", "data"),
    )
    app.clientside_callback(
        own("paintAll"),
        [Output(f"planner-{graph}", "figure") for graph in GRAPHS],
        Input("planner-figures", "data"),
        Input("theme", "data"),
        State("palettes", "data"),
    )
