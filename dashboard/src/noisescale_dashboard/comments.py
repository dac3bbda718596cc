"""The comments on a run, at the foot of its page: reading and writing them, and what its reader may press."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard import baseline
from noisescale_dashboard.answers.comments import Comment, Comments
from noisescale_dashboard.answers.common import Run
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, is_own_site, visitor_headers
from noisescale_dashboard.shell import shell
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import card

# The card with a run's comments, and the field for one more.

MAX_TEXT = 4_000
"""Characters of a comment that the API takes."""
NEWEST = 100
"""Comments that the page shows."""
MAX_NAMES = 12
"""Names that are offered; others are mentioned by writing them."""
_TWICE = (html.Span("Delete", className="ask"), html.Span("Delete for good?", className="sure"))
"""A second press soon after the first deletes (assets/modules/run/comments.js)."""
NONE_YET = "Nobody has said anything about this run yet."
SHOWN_ALONE = "A mention is shown as such; nobody is notified."
SENT = "A mention is sent to the project's alert receivers."


def layout() -> html.Div:
    """The card before its first data: hidden until it is known that the reader may see comments."""
    form = html.Div(
        [
            dmc.Textarea(
                id="run-comment-text",
                placeholder="What should the others know about this run?",
                autosize=True,
                minRows=2,
                maxRows=12,
                inputProps={"maxLength": MAX_TEXT},
                size="xs",
                **aria({"aria-label": "Comment"}),
            ),
            html.Div(id="run-comment-names", className="row wrap mention-names"),
            html.Div(
                [
                    html.Button("Comment", id="run-comment-add", type="button", className="btn"),
                    html.Button("Cancel", id="run-comment-cancel", type="button", className="btn", hidden=True),
                    html.Span(id="run-comment-said", role="status", className="t2 small"),
                ],
                className="row wrap",
            ),
        ],
        id="run-comment-form",
        className="comment-form",
        hidden=True,
    )
    stores = [dcc.Store(id=f"run-comment-{name}") for name in ("change", "done", "wanted")]
    body = [html.Div(id="run-comments", className="comments"), form, *stores]
    return html.Div(
        card("Comments", "", body, card_id="run-comments-card", class_name="comments-card"),
        id="run-comments-box",
        className="mt16",
        hidden=True,
    )


def listed(found: Comments, *, writes: bool, deletes: bool) -> list[Child]:
    """The comments, newest first.

    Args:
        found: Of the run.
        writes: Whether the reader may write.
        deletes: Whether the reader may take those of others away.
    """
    if not found.comments:
        return [html.P(NONE_YET, className="t2")]
    rows: list[Child] = [
        _row(one, is_changed=writes and one.is_own, is_deleted=writes and (one.is_own or deletes))
        for one in found.comments
    ]
    left = found.total - len(found.comments)
    more = [html.P(f"{left} older ones: GET /api/v1/runs/…/comments lists them.", className="t2")] if left else []
    return [*rows, *more]


def _row(one: Comment, *, is_changed: bool, is_deleted: bool) -> html.Article:
    edit = {"data-comment-edit": one.id, "data-comment-text": one.text, "aria-label": f"Edit “{_begin(one.text)}”"}
    delete = {"data-comment-delete": one.id, "aria-label": f"Delete “{_begin(one.text)}”"}
    buttons = [
        *([html.Button("Edit", type="button", className="btn small", **aria(edit))] if is_changed else []),
        *([html.Button(_TWICE, type="button", className="btn small", **aria(delete))] if is_deleted else []),
    ]
    when = moment(one.created_at) + ("" if one.edited_at is None else f" · edited {moment(one.edited_at)}")
    head = [html.B("You" if one.is_own else one.author, title=one.author), html.Span(when, className="t3")]
    return html.Article(
        [
            html.Div([*head, html.Span(className="sp"), *buttons], className="row"),
            html.P(with_mentions(one.text, one.mentions), className="comment-text"),
        ],
        className="comment",
    )


def moment(text: str) -> str:
    """A moment in short: "2026-11-26 10:04 UTC"."""
    return f"{text[:16].replace('T', ' ')} UTC"


def with_mentions(text: str, names: Sequence[str]) -> list[Child]:
    """The text, with each mention marked.

    Args:
        text: As it was written.
        names: Of whom it mentions.
    """
    if not names:
        return [text]
    # the longer of two names of which one begins with the other counts, as for the server
    either = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    parts = re.split(rf"(?<![^\W_])(@(?:{either}))(?![^\W_])", text, flags=re.IGNORECASE)
    return [html.Span(part, className="mention") if place % 2 else part for place, part in enumerate(parts) if part]


def names_offered(names: Sequence[str], *, are_sent: bool) -> list[Child]:
    """Buttons that put a name into the text, and what becomes of a mention."""
    if not names:
        return []
    buttons = [
        html.Button(
            f"@{name}", type="button", className="chip mention-name", title=name, **aria({"data-comment-name": name})
        )
        for name in names[:MAX_NAMES]
    ]
    return [*buttons, html.Span(SENT if are_sent else SHOWN_ALONE, className="t3 small")]


def subtitle(found: Comments) -> str:
    """How many, and who sees them."""
    number = {0: "None yet", 1: "1 comment"}.get(found.total, f"{found.total} comments, newest first")
    return f"{number} · seen by the people of the project, not by guests"


def _begin(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 40 else f"{words[:39]}…"


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
    baseline.register(app, api)
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
            baseline.words(is_baseline=run.is_baseline),
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
    found = await api.comments(visitor, run.id, NEWEST)
    writes = "change" in rights
    are_sent = bool(found.mentionable) and await api.tells_of_mentions(visitor, run.project)
    names = names_offered(found.mentionable, are_sent=are_sent)
    rows = listed(found, writes=writes, deletes="delete" in rights)
    return False, rows, subtitle(found), not writes, names


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
