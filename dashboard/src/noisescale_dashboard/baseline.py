"""Pinning a run as the baseline of its project, from its own page, and letting it go."""

from collections.abc import Mapping
from typing import Any

from dash import Dash, Input, Output, State, ctx, dcc, html
from dash.exceptions import PreventUpdate

from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, is_own_site, visitor_headers
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import icon

MEANING = "Compare sets the other runs of the project against its baseline"
BASELINE = "Baseline: Compare sets the other runs of its project against this one"


def button() -> list[Child]:
    """The button in the head of the page; for who may change the run."""
    return [
        html.Button(words(is_baseline=False), id="run-pin", type="button", className="btn for-writers", title=MEANING),
        dcc.Store(id="run-pinned"),
        dcc.Store(id="run-pin-done"),
    ]


def mark() -> html.Span:
    """Beside the name of a run that is a baseline."""
    return html.Span(className="i xs i-pin pinned-run", title=BASELINE, role="img", **aria({"aria-label": BASELINE}))


def words(*, is_baseline: bool) -> list[Child]:
    """What the button says of a run."""
    return [icon("pin", "sm"), "Unpin baseline" if is_baseline else "Pin as baseline"]


async def pinned(api: ApiClient, visitor: Mapping[str, str], project: str, run_id: str, *, is_baseline: bool) -> str:
    """Pin the run, or let it go where it is the baseline; what came of it in words."""
    try:
        if is_baseline:
            await api.unpin_baseline(visitor, project)
            return f"{project} has no baseline any more."
        await api.pin_baseline(visitor, project, run_id)
    except ApiProblem as problem:
        return f"Nothing was changed. {problem.detail}"
    return f"Pinned: Compare sets the other runs of {project} against this one."


def register(app: Dash, api: ApiClient) -> None:
    """The button; the head of the page then says what is true."""

    @app.callback(
        Output("run-pin-done", "data"),
        Output("run-change", "data", allow_duplicate=True),
        Input("run-pin", "n_clicks"),
        State("run-id", "data"),
        State("run-pinned", "data"),
        prevent_initial_call=True,
    )
    async def change(clicks: int | None, run_id: str | None, known: Mapping[str, Any] | None) -> tuple[Any, Any]:
        if not clicks or not run_id or not known or not is_own_site(ctx.headers):
            raise PreventUpdate
        visitor, is_baseline = visitor_headers(ctx.headers), bool(known["is_baseline"])
        said = await pinned(api, visitor, str(known["project"]), run_id, is_baseline=is_baseline)
        return clicks, {"words": said}
