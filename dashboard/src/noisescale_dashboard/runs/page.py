"""The list of runs: what there is, and which are off."""

from typing import Any

import dash_ag_grid as dag
from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.runs import columns as runs_columns
from noisescale_dashboard.runs import export as runs_export
from noisescale_dashboard.runs import filters as runs_filters
from noisescale_dashboard.runs import groups as runs_groups
from noisescale_dashboard.runs import listing as runs_listing
from noisescale_dashboard.runs import saved_views, to_change
from noisescale_dashboard.runs import selection as runs_selection
from noisescale_dashboard.runs import table as runs_table
from noisescale_dashboard.runs import view as runs_view
from noisescale_dashboard.runs.listing import Listing
from noisescale_dashboard.shell import shell, states
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import HOW_ACTION, LINK_ACTION, explanation, icon, menu_button, note
from noisescale_dashboard.words import sentences
from noisescale_dashboard.words.number_format import count

MAX_SPARKLINES = 50
REFUSED = 422
CONTROLS = (
    "q", "task", "group", "status", "decision", "tag", "since", "shelf", "trials", "where", "cols", "order",
    *runs_view.RANGES,
)  # fmt: skip
"""What a reader sets, in the order of CONTROLS in assets/modules/runs/view.js."""
CHANGED = (
    Output("runs-rows", "data"),
    Output("runs-cursors", "data"),
    Output("runs-note", "children"),
    Output("runs-empty", "children"),
    Output("runs-card", "hidden"),
    Output("runs-sentence", "children"),
    Output("runs-count", "children"),
    Output("runs-range", "children"),
    Output("runs-previous", "disabled"),
    Output("runs-next", "disabled"),
    Output("runs-grid", "columnDefs"),
    Output("runs-grid", "style"),
    Output("runs-export-words", "children"),
    Output("runs-cols", "data"),
    Output("runs-group", "data"),
    Output("runs-more-words", "children"),
    Output("runs-where-words", "children"),
    Output("runs-where-field", "data"),
)
"""What a page of runs sets."""


def layout(*, narrow: bool, refresh_seconds: float) -> list[Child]:
    """The page before its first data."""
    body = [
        html.Div(
            [
                html.H1("Runs", className="h1"),
                html.Span(id="runs-count", className="dim"),
                html.Span(className="sp"),
                *saved_views.controls(),
                runs_filters.columns_choice(),
                _menu(),
            ],
            className="row runs-title",
        ),
        html.P(
            "Judged by the noise scale B_noise against the batch in use.", id="runs-sentence", className="lede mb12"
        ),
        html.Div(runs_filters.layout(), className="row filters mb12", role="search"),
        html.Div(id="runs-note"),
        html.Div(id="runs-empty"),
        runs_selection.outcome(),
        to_change.layout(),
        html.Section([_grid(narrow), _footer()], className="card", id="runs-card", **aria({"aria-label": "Runs"})),
        dcc.Store(id="runs-view"),
        dcc.Store(id="runs-sort"),
        # what a click has unfolded or folded; assets/modules/runs/cells.js
        dcc.Store(id="runs-toggled"),
        dcc.Store(id="runs-rows"),
        dcc.Store(id="runs-sparks", data={}),
        dcc.Store(id="runs-sparks-wanted"),
        dcc.Store(id="runs-sparks-fresh"),
        dcc.Store(id="runs-cursors", data=[None]),
        dcc.Store(id="runs-pulse"),
        dcc.Store(id="runs-selected"),
        dcc.Store(id="runs-live", data={"running": True}),
        dcc.Interval(id="runs-clock", interval=int(1000 * refresh_seconds)),
    ]
    return shell.page([html.B("Runs")], body)


def _menu() -> html.Details:
    """What can be taken away of the list, and how its numbers are computed."""
    export = html.A(
        [icon("download", "sm"), html.Span("Runs as CSV", id="runs-export-words")],
        id="runs-export", href=runs_export.ADDRESS, download="noisescale-runs.csv",
    )  # fmt: skip
    return html.Details(
        [
            html.Summary(icon("more"), className="ib b", **aria({"aria-label": "Export, link, how computed"})),
            html.Div(
                [export, menu_button(LINK_ACTION), menu_button(HOW_ACTION), explanation("runs-card")],
                className="dropdown",
            ),
        ],
        className="details card-menu",
    )


def _grid(narrow: bool) -> dag.AgGrid:
    return dag.AgGrid(
        id="runs-grid",
        rowData=[],
        columnDefs=runs_table.columns(runs_view.DEFAULT_SORT, narrow=narrow),
        defaultColDef=runs_table.ANY_COLUMN,
        getRowId="params.data.id",
        eventListeners={"sortChanged": ["reportSort(params)"]},
        dashGridOptions={
            "theme": {"function": runs_table.THEME},
            "animateRows": False,
            "rowHeight": runs_table.NARROW_ROW_HEIGHT if narrow else runs_table.ROW_HEIGHT,
            "headerHeight": 0 if narrow else runs_table.HEADER_HEIGHT,
            # arrows go from cell to cell, Tab out of the table: fifty rows of cells lie before what follows it
            "tabToNextCell": {"function": "false"},
            "suppressNoRowsOverlay": True,
            "enableBrowserTooltips": True,
            **runs_table.selection(narrow=narrow),
        },
        style={"height": runs_table.grid_height(4, narrow=narrow), "width": "100%"},
    )


def _footer() -> html.Div:
    return html.Div(
        [
            runs_selection.bar(),
            html.Span(className="sp"),
            html.Span(id="runs-range"),
            _turn("runs-previous", "chevl", "Previous page"),
            _turn("runs-next", "chevr", "Next page"),
        ],
        className="ft",
    )


def _turn(button_id: str, icon_name: str, words: str) -> html.Button:
    return html.Button(icon(icon_name, "sm"), id=button_id, className="ib b", **aria({"aria-label": words}))


def register(app: Dash, api: ApiClient) -> None:
    """Callbacks of the page: address and controls, rows, sparklines, projects."""
    _register_clientside(app)
    _register_rows(app, api)
    _register_sparklines(app, api)
    _register_tasks(app, api)
    runs_selection.register(app, api)
    saved_views.register(app)
    to_change.register(app, api)


def _register_rows(app: Dash, api: ApiClient) -> None:
    @app.callback(
        *CHANGED,
        Input("runs-view", "data"),
        Input("runs-pulse", "data"),
        Input("runs-done", "data"),
        State("runs-cursors", "data"),
        State("runs-rows", "data"),
        State("narrow", "data"),
    )
    async def load_rows(
        view: dict[str, Any] | None, _pulse: Any, _done: Any, cursors: list[str | None], shown: Any, narrow: bool
    ) -> tuple[Any, ...]:
        if view is None:
            raise PreventUpdate
        place = min(view["page"], len(cursors) - 1)
        try:
            visitor = visitor_headers(ctx.headers)
            page = await runs_listing.find(api, visitor, view, cursors[place], narrow=narrow)
        except ApiProblem as problem:
            if problem.status == REFUSED:
                said = note(f"Not searched: {problem.detail}")
                return (no_update, no_update, said, None, not shown, *[no_update] * (len(CHANGED) - 5))
            failed = states.paused(None) if shown else states.not_loaded(problem)
            return (no_update, no_update, failed, None, not shown, *[no_update] * (len(CHANGED) - 5))
        known = [*cursors[: place + 1], *([page.next_cursor] if page.next_cursor else [])]
        chosen = runs_columns.chosen(view["cols"])
        is_filtered = runs_view.is_filtered(view)
        # groups know no keys of configs: what could be chosen before them stays
        has_choices = bool(page.known) or not view["group"] or not shown
        empty = None
        if not page.rows:
            # without a filter the list still leaves out what sent nothing for 90 days
            is_empty = not is_filtered and (await api.runs(visitor_headers(ctx.headers), {"limit": 1})).total == 0
            empty = states.no_runs(is_filtered=not is_empty)
        return (
            page.rows,
            known,
            None,
            empty,
            not page.rows,
            sentence(page, view["group"]),
            count_words(page),
            range_words(page, place),
            place == 0,
            page.next_cursor is None,
            runs_table.columns(view["sort"], chosen, narrow=narrow) if ctx.triggered_id == "runs-view" else no_update,
            {"height": runs_table.grid_height(len(page.rows), narrow=narrow), "width": "100%"},
            export_words(page),
            runs_columns.choices(page.known, also=chosen) if has_choices else no_update,
            runs_groups.choices(page.known, also=view["group"]) if has_choices else no_update,
            runs_filters.more_words(view),
            runs_filters.where_words(view),
            runs_filters.field_choices(page.known) if has_choices else no_update,
        )


def _register_sparklines(app: Dash, api: ApiClient) -> None:
    """The browser says which rows lack that of their newest step, a few at a time, and keeps what it is given."""
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "sparklinesWanted"),
        Output("runs-sparks-wanted", "data"),
        Input("runs-rows", "data"),
        Input("runs-sparks", "data"),
    )
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "sparklinesKept"),
        Output("runs-sparks", "data"),
        Input("runs-sparks-fresh", "data"),
        State("runs-sparks", "data"),
        State("runs-rows", "data"),
    )

    @app.callback(Output("runs-sparks-fresh", "data"), Input("runs-sparks-wanted", "data"))
    async def load_sparklines(wanted: dict[str, str] | None) -> dict[str, Any]:
        if not wanted:
            raise PreventUpdate
        found = await api.sparklines(visitor_headers(ctx.headers), list(wanted)[:MAX_SPARKLINES])
        if not found:
            # asked again with the next news, not at once
            raise PreventUpdate
        return {
            run_id: {"stamp": wanted[run_id], "spark": runs_table.sparkline(points)} for run_id, points in found.items()
        }


def _register_tasks(app: Dash, api: ApiClient) -> None:
    @app.callback(Output("runs-task", "data"), Input("runs-task", "id"))
    async def load_tasks(_component_id: str) -> list[str]:
        try:
            projects = await api.projects(visitor_headers(ctx.headers))
        except ApiProblem:
            # the filter stays empty; the list of runs says what is wrong
            raise PreventUpdate from None
        return sorted({task for project in projects for task in project.tasks})


def sentence(page: Listing, group: str | None) -> str:
    """What there is, and which are off; of groups, what their numbers are."""
    if group:
        by = runs_groups.label(group)
        newest = "" if page.is_total_exact else f", the newest {count(page.num_runs)} runs"
        return (
            f"Grouped by {by.lower() if group in runs_groups.OWN else by}{newest}, largest first; numbers are medians."
        )
    num_folds = sum(row.get("kind") == runs_table.FOLD for row in page.rows)
    return sentences.runs_sentence(page.runs, page.total - num_folds)


def count_words(page: Listing) -> str:
    """In short: "1,844 runs in 97 rows", or how many where each is a row."""
    if not page.is_total_exact:
        return f"over {runs_selection.runs_words(page.num_runs)}"
    if page.num_runs == page.total:
        return count(page.total)
    return f"{runs_selection.runs_words(page.num_runs)} in {count(page.total)} row{'' if page.total == 1 else 's'}"


def export_words(page: Listing) -> str:
    """What the export holds: "All 97 runs as CSV"."""
    if not page.is_total_exact:
        return f"All runs as CSV, over {count(page.num_runs)}"
    return f"{'All ' if page.num_runs > 1 else ''}{runs_selection.runs_words(page.num_runs)} as CSV"


def range_words(page: Listing, place: int) -> str:
    """In short: "1 – 50 of 10,214"; what is unfolded is not counted."""
    num_rows = sum(not row.get("child") for row in page.rows)
    if not num_rows:
        return ""
    first = place * runs_table.PAGE_SIZE + 1
    return (
        f"{count(first)} – {count(first + num_rows - 1)} of {'' if page.is_total_exact else 'over '}{count(page.total)}"
    )


def _register_clientside(app: Dash) -> None:
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "runsView"),
        Output("runs-view", "data"),
        *(Output(f"runs-{name}", "value") for name in CONTROLS),
        Input("address", "search"),
        *(Input(f"runs-{name}", "value") for name in CONTROLS),
        Input("runs-sort", "data"),
        Input("runs-toggled", "data"),
        Input("runs-previous", "n_clicks"),
        Input("runs-next", "n_clicks"),
        State("runs-view", "data"),
        State("runs-cursors", "data"),
    )
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "addCondition"),
        Output("runs-where", "value", allow_duplicate=True),
        Output("runs-where-value", "value"),
        Input("runs-where-add", "n_clicks"),
        Input("runs-where-value", "n_submit"),
        State("runs-where-field", "value"),
        State("runs-where-by", "value"),
        State("runs-where-value", "value"),
        State("runs-where", "value"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "runsExport"), Output("runs-export", "href"), Input("runs-view", "data")
    )
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "selectAsAddressed"),
        Output("runs-grid", "selectedRows", allow_duplicate=True),
        Input("runs-grid", "rowData"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "selectionAddressed"),
        Output("runs-selected", "data"),
        Input("runs-grid", "selectedRows"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "pulse"),
        Output("runs-pulse", "data"),
        Input("runs-clock", "n_intervals"),
        State("runs-live", "data"),
    )
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "withSparklines"),
        Output("runs-grid", "rowData"),
        Input("runs-rows", "data"),
        Input("runs-sparks", "data"),
    )
