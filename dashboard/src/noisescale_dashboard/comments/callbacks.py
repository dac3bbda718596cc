"""Reading and writing a run's comments, and which of the page's buttons its reader may press."""

from collections.abc import Mapping
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.common import Run
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, is_own_site, visitor_headers
from noisescale_dashboard.baseline import pin
from noisescale_dashboard.comments import card
from noisescale_dashboard.shell import shell

NOT_FOR_THEM = (401, 403, 404)
"""Answers that say that a reader may see no comments; others may come back."""
CHANGED = (
    Output("run-comments-box", "hidden"),
    Output("run-comments", "children"),
    Output("run-comments-card-subtitle", "children"),
    Output("run-comment-form", "hidden"),
    Output("run-comment-names", "children"),
    Output("run-actions", "className"),
    Output("run-pin", "children"),
    Output("run-pinned", "data"),
)
ACTIONS = "row wrap run-actions"


def register(app: Dash, api: ApiClient) -> None:
    """The list, what is written, and what the browser does with the form."""
    _register_list(app, api)
    _register_changes(app, api)
    pin.register(app, api)
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "commentWanted"),
        Output("run-comment-change", "data"),
        Input("run-comment-add", "n_clicks"),
        Input("run-comment-wanted", "data"),
        State("run-comment-text", "value"),
    )
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "commentDone"),
        Output("run-comment-said", "children"),
        Output("run-comment-text", "value"),
        Input("run-comment-done", "data"),
    )
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "commentCancelled"),
        Output("run-comment-cancel", "hidden"),
        Input("run-comment-cancel", "n_clicks"),
    )


def _register_list(app: Dash, api: ApiClient) -> None:
    @app.callback(
        *CHANGED,
        # at once, and once a minute while the run goes on
        Input("run-slow-pulse", "data"),
        Input("run-comment-done", "data"),
        Input("run-pin-done", "data"),
        State("run-id", "data"),
    )
    async def load(pulse: float | None, _done: Any, _pinned: Any, run_id: str) -> tuple[Any, ...]:
        if pulse is None:
            raise PreventUpdate
        visitor = visitor_headers(ctx.headers)
        try:
            run = await api.run(visitor, run_id)
            rights = await api.rights(visitor, run.project)
        except ApiProblem:
            # the page says what is wrong
            raise PreventUpdate from None
        buttons = (
            actions(rights),
            pin.words(is_baseline=run.is_baseline),
            {"project": run.project, "is_baseline": run.is_baseline},
        )
        try:
            return *await shown(api, visitor, run, rights), *buttons
        except ApiProblem as problem:
            if problem.status in NOT_FOR_THEM:
                return True, no_update, no_update, True, no_update, *buttons
            return *(no_update,) * 5, *buttons


async def shown(
    api: ApiClient, visitor: Mapping[str, str], run: Run, rights: frozenset[str]
) -> tuple[bool, Any, str, bool, Any]:
    """Of the card: hidden or not, the list, the subtitle, the form hidden or not, and the names.

    Raises:
        ApiProblem: When the visitor may see no comments, or the API does not answer.
    """
    found = await api.comments(visitor, run.id, card.NEWEST)
    writes = "change" in rights
    are_sent = bool(found.mentionable) and await api.tells_of_mentions(visitor, run.project)
    names = card.names_offered(found.mentionable, are_sent=are_sent)
    rows = card.listed(found, writes=writes, deletes="delete" in rights)
    return False, rows, card.subtitle(found), not writes, names


def actions(rights: frozenset[str]) -> str:
    """The class of the page's buttons: assets/34-comments.css shows those that the reader may press."""
    allowed = {"change": "may-change", "manage": "may-manage"}
    return " ".join([ACTIONS, *(name for right, name in allowed.items() if right in rights)])


def _register_changes(app: Dash, api: ApiClient) -> None:
    @app.callback(
        Output("run-comment-done", "data"),
        Input("run-comment-change", "data"),
        State("run-id", "data"),
        prevent_initial_call=True,
    )
    async def write(change: Mapping[str, Any] | None, run_id: str | None) -> dict[str, Any]:
        if not change or not run_id or not is_own_site(ctx.headers):
            raise PreventUpdate
        visitor = visitor_headers(ctx.headers)
        try:
            return {"words": await made(api, visitor, run_id, change), "is_done": True}
        except ApiProblem as problem:
            reasons = [message for _, message in problem.errors] or [problem.detail]
            return {"words": f"Nothing was changed. {' '.join(reasons)}", "is_done": False}


async def made(api: ApiClient, visitor: Mapping[str, str], run_id: str, change: Mapping[str, Any]) -> str:
    """What was done, in words.

    Raises:
        ApiProblem: When it is refused.
    """
    match change["do"]:
        case "add":
            await api.add_comment(visitor, run_id, str(change.get("text", "")))
            return "Added."
        case "edit":
            await api.edit_comment(visitor, run_id, str(change.get("id", "")), str(change.get("text", "")))
            return "Changed."
        case _:
            await api.delete_comment(visitor, run_id, str(change.get("id", "")))
            return "Deleted."
