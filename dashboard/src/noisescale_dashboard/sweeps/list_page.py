"""The list of sweeps and branches, and the sweeps that others have published."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.branches import branch
from noisescale_dashboard.answers.sweeps import Sweep, TargetFit
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.shell import shell, states
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import card, link
from noisescale_dashboard.sweeps import published as published_sweeps
from noisescale_dashboard.sweeps import words as sweep_sentences
from noisescale_dashboard.words.number_format import NOTHING, count, exactly, si

PAGE_SIZE = 50
TABS = (("own", "Yours"), ("published", "Published"))
NAME_LIMIT = 120
WAITING = "…"
CHANGED = (
    Output("sweeps-rows", "data"),
    Output("sweeps-empty", "children"),
    Output("sweeps-own", "hidden"),
    Output("sweeps-published", "hidden"),
    Output("sweeps-sentence", "children"),
    Output("sweeps-count", "children"),
    Output("sweeps-table", "children"),
)
Found = Mapping[str, TargetFit | None]


def layout(*, narrow: bool, refresh_seconds: float) -> list[Child]:
    """The page before its first data; nothing on it changes by itself."""
    del refresh_seconds
    tabs = dmc.SegmentedControl(
        id="sweeps-tab",
        data=[{"value": value, "label": label} for value, label in TABS],
        value="own",
        size="xs",
        **aria({"aria-label": "Whose sweeps"}),
    )
    table = card(
        "Sweeps and branches",
        "Newest first · B_crit of the hardest target, with its 95 % interval",
        html.Div(id="sweeps-table", className="scrollx-in", tabIndex="0"),
        card_id="sweeps-card",
        has_table=True,
    )
    body = [
        html.Div(
            [
                html.H1("Sweeps", className="h1"),
                html.Span(id="sweeps-count", className="dim"),
                html.Span(className="sp"),
                tabs,
            ],
            className="row",
        ),
        html.P("Critical batch sizes, measured by training.", id="sweeps-sentence", className="lede"),
        html.P(link("How often were we right here?", "/record", class_name="inline"), className="small mb12"),
        html.Div(id="sweeps-empty"),
        html.Div(table, id="sweeps-own"),
        html.Div(published_sweeps.layout(narrow=narrow), id="sweeps-published", hidden=True),
        dcc.Store(id="sweeps-view"),
        dcc.Store(id="sweeps-rows"),
    ]
    return shell.page([html.B("Sweeps")], body)


def register(app: Dash, api: ApiClient) -> None:
    """Callbacks of the page: address and tab, the list, what each sweep found, published sweeps."""
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "sweepsView"),
        Output("sweeps-view", "data"),
        Output("sweeps-tab", "value"),
        Input("address", "search"),
        Input("sweeps-tab", "value"),
        State("sweeps-view", "data"),
    )
    _register_rows(app, api)
    _register_findings(app, api)
    published_sweeps.register(app, api)


def _register_rows(app: Dash, api: ApiClient) -> None:
    @app.callback(*CHANGED, Input("sweeps-view", "data"), State("narrow", "data"))
    async def load_rows(view: dict[str, Any] | None, narrow: bool) -> tuple[Any, ...]:
        if view is None:
            raise PreventUpdate
        if view["tab"] == "published":
            return (None, None, True, False, published_sweeps.LEDE, "", no_update)
        try:
            asked = {"limit": PAGE_SIZE, "project": view.get("project")}
            page = await api.sweeps(visitor_headers(ctx.headers), asked)
        except ApiProblem as problem:
            return (None, states.not_loaded(problem), True, True, no_update, "", no_update)
        if not page.sweeps:
            return (None, states.no_sweeps(), True, True, no_update, count(0), no_update)
        fitted = [sweep.id for sweep in page.sweeps if sweep.kind == "sweep" and sweep.num_runs]
        return (
            {"fitted": fitted, "project": view.get("project")},
            None,
            False,
            True,
            sweep_sentences.sweeps_sentence(page.sweeps, page.total),
            count(page.total),
            table(page.sweeps, {}, narrow=narrow),
        )


def _register_findings(app: Dash, api: ApiClient) -> None:
    @app.callback(
        Output("sweeps-table", "children", allow_duplicate=True),
        Input("sweeps-rows", "data"),
        State("narrow", "data"),
        prevent_initial_call=True,
    )
    async def load_findings(rows: dict[str, Any] | None, narrow: bool) -> html.Table:
        if not rows:
            raise PreventUpdate
        visitor = visitor_headers(ctx.headers)
        try:
            page, found = await asyncio.gather(
                api.sweeps(visitor, {"limit": PAGE_SIZE, "project": rows.get("project")}),
                api.critical_batches(visitor, rows["fitted"]),
            )
        except ApiProblem:
            # the rows stay as they are, without what was found
            raise PreventUpdate from None
        return table(page.sweeps, found, narrow=narrow)


COLUMNS = ("Name", "Kind", "Batch sizes", "Runs", "Hardest target", "B_crit", "95 %", "Started")
NARROW_COLUMNS = ("Name", "B_crit, 95 %")


def table(sweeps: Sequence[Sweep], found: Found, *, narrow: bool) -> html.Table:
    """A row a sweep; what is not known yet is left open. On a phone each row has two lines."""
    words, row = (NARROW_COLUMNS, _narrow_row) if narrow else (COLUMNS, _row)
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in words]))
    rows = [row(sweep, _said(sweep, found)) for sweep in sweeps]
    return html.Table([head, html.Tbody(rows)], className="tb list short" if narrow else "tb list sweep-rows")


@dataclass(frozen=True, slots=True)
class Said:
    """What a row says of a sweep's findings, in words."""

    sizes: str = NOTHING
    target: float | None = None
    known: str = NOTHING
    between: str = NOTHING
    doubt: str = ""
    has_fit: bool = False


def _said(sweep: Sweep, found: Found) -> Said:
    if sweep.kind == "branch":
        return _said_of_branch(sweep)
    if sweep.id not in found:
        return Said(WAITING, sweep.hardest_target, WAITING, WAITING) if sweep.hardest_target is not None else Said()
    one = found[sweep.id]
    if one is None:
        return Said(target=sweep.hardest_target, known="not loaded")
    sizes = sizes_words([point.batch_size for point in one.points])
    doubt = sweep_sentences.doubt_words(one)
    known, between = sweep_sentences.found_words(one), sweep_sentences.between_words(one)
    return Said(sizes, one.target, known, between, doubt, has_fit=one.fit is not None)


def _said_of_branch(sweep: Sweep) -> Said:
    """Between which arms larger batches begin to lose: that comes with the list."""
    local = branch(sweep.details).local_critical_batch
    sizes = sizes_words(sorted({arm.batch_size for arm in branch(sweep.details).arms}))
    if local.low is not None and local.high is not None:
        return Said(sizes, known=f"{count(local.low)} – {count(local.high)}", between="local")
    if local.low is None and local.high is None:
        return Said(sizes)
    bound = f"> {count(local.low)}" if local.low is not None else f"< {count(local.high)}"
    return Said(sizes, known=bound, between="local")


def _name(sweep: Sweep) -> html.A:
    name = sweep.name if len(sweep.name) <= NAME_LIMIT else sweep.name[: NAME_LIMIT - 1] + "…"
    return link(name, f"/sweeps/{sweep.id}")


def _target(sweep: Sweep, target: float | None) -> str:
    return NOTHING if target is None else f"{sweep_sentences.metric_words(sweep.metric)[:24]} {exactly(target)}"


def _row(sweep: Sweep, said: Said) -> html.Tr:
    unit = [html.Small(f" {sweep.unit[:14]}", className="dim")] if said.has_fit else []
    cells = [
        html.Td([_name(sweep), html.Span(f"{sweep.project} · {sweep.task}", className="below")], className="name"),
        html.Td(sweep.kind),
        *(html.Td(word) for word in (said.sizes, si(sweep.num_runs), _target(sweep, said.target))),
        html.Td([said.known, *unit], className="s" if said.has_fit else "dim"),
        html.Td([said.between, *_below(said.doubt)], className="" if said.has_fit else "dim"),
        html.Td(sweep.created_at[:10]),
    ]
    return html.Tr(cells)


def _below(words: str) -> list[html.Span]:
    return [html.Span(words, className="below")] if words else []


def _narrow_row(sweep: Sweep, said: Said) -> html.Tr:
    below = f"{sweep.task} · {sweep.kind if sweep.kind != 'sweep' else _target(sweep, said.target)}"
    unit = f" {sweep.unit[:14]}" if said.has_fit else ""
    return html.Tr(
        [
            html.Td([_name(sweep), html.Span(below, className="below")]),
            html.Td(
                [
                    html.Span(said.known + unit, className="" if said.has_fit else "dim"),
                    *_below(said.between),
                    *_below(said.doubt),
                ]
            ),
        ]
    )


def sizes_words(sizes: Sequence[float]) -> str:
    """In short: "16 – 32,768, 12 sizes"."""
    if not sizes:
        return "–"
    return f"{count(min(sizes))} – {count(max(sizes))}, {len(sizes)} sizes" if len(sizes) > 1 else count(sizes[0])
