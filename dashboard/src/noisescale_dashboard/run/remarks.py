"""What people say of a run: its name, its tags and their remarks; each change can be undone."""

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.common import Run
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, is_own_site, visitor_headers
from noisescale_dashboard.shell import shell
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import icon

MAX_TAGS = 32
FIELDS = ("name", "tags", "remarks")


def form(run_id: str) -> list[Child]:
    """What can be done with the run, and what was done last."""
    fields = html.Div(
        [
            # with Enter the field hands on its name and that it was pressed at once: neither overtakes the other
            dmc.TextInput(id="run-name", label="Name", size="xs", debounce=True),
            dmc.TagsInput(id="run-tags", label="Tags", size="xs", maxTags=MAX_TAGS, comboboxProps={"zIndex": 20}),
            dmc.Textarea(
                id="run-remarks", label="Remarks", size="xs", autosize=True, minRows=3, maxRows=10,
                description="What you want to remember of this run; shown below its name",
            ),
            html.Div([html.Button("Save", id="run-save", type="button", className="btn")], className="row"),
        ],
        className="dropdown",
    )  # fmt: skip
    compare = f"/compare?tab=runs&runs={run_id}"
    return [
        html.Details(
            [html.Summary([icon("tag", "sm"), "Edit"], className="btn"), fields],
            id="run-edit",
            className="details for-writers",
        ),
        html.A([icon("compare", "sm"), "Compare"], href=compare, className="btn", **aria({"data-go": "page"})),
        html.Button(
            [icon("link", "sm"), html.Span("Copy link", className="wide-only")],
            type="button",
            className="btn",
            **aria({"data-card-action": "link", "aria-label": "Copy link"}),
        ),
        dcc.Store(id="run-said"),
        dcc.Store(id="run-change"),
    ]


def outcome() -> html.Div:
    """What was changed last, with a button that undoes it."""
    return html.Div(
        [
            html.Span(id="run-change-words", role="status"),
            html.Button("Undo", id="run-unsay", type="button", className="btn", hidden=True),
        ],
        className="row outcome run-outcome",
    )


def said_of(run: Run) -> dict[str, Any]:
    """What is said of the run now."""
    return {"name": run.name, "tags": list(run.tags), "remarks": run.remarks}


def register(app: Dash, api: ApiClient) -> None:
    """The form as the run is, changes and their undoing."""
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "remarksShown"),
        *(Output(f"run-{name}", "value") for name in FIELDS),
        Input("run-said", "data"),
        *(State(f"run-{name}", "value") for name in FIELDS),
    )
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "remarksSaved"),
        Output("run-change-words", "children"),
        Output("run-unsay", "hidden"),
        Input("run-change", "data"),
    )

    @app.callback(
        Output("run-change", "data"),
        Input("run-save", "n_clicks"),
        Input("run-name", "n_submit"),
        Input("run-unsay", "n_clicks"),
        *(State(f"run-{name}", "value") for name in FIELDS),
        State("run-said", "data"),
        State("run-change", "data"),
        State("run-id", "data"),
        prevent_initial_call=True,
    )
    async def change(
        _save: int | None,
        _submit: int | None,
        _unsay: int | None,
        name: str,
        tags: list[str],
        remarks: str,
        *states: Any,
    ) -> Any:
        said, last, run_id = states
        if not ctx.triggered[0]["value"] or not said or not is_own_site(ctx.headers):
            raise PreventUpdate
        is_undone = ctx.triggered_id == "run-unsay"
        wanted = {"name": (name or "").strip(), "tags": list(tags or ()), "remarks": (remarks or "").strip()}
        changes = (last or {}).get("undo") if is_undone else changed(said, wanted)
        if not changes:
            return no_update if is_undone else {"words": "Nothing was changed."}
        try:
            await api.change_run(visitor_headers(ctx.headers), run_id, **changes)
        except ApiProblem as problem:
            return {"words": f"Nothing was changed. {problem.detail}"}
        if is_undone:
            return {"words": "Undone."}
        return {"words": f"Saved: {', '.join(changes)}.", "undo": {field: said[field] for field in changes}}


def changed(said: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that the reader has changed."""
    return {field: value for field, value in wanted.items() if value != said.get(field)}
