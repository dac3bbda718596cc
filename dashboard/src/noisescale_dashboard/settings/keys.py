"""API keys on the page of settings: make, list, rotate, revoke."""

from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.access import Key
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import card, note

SCOPES = (
    ("write", "Write: a training job"),
    ("read", "Read: a script"),
    ("metrics", "Metrics: Prometheus"),
    ("admin", "Admin: everything"),
)
DEFAULT_DAYS = 180
HEADS = ("Key", "Scope", "Projects", "Last used", "Until")


def layout() -> html.Section:
    """The card before its first data."""
    form = html.Div(
        [
            dmc.TextInput(id="settings-key-name", label="What is it for?", placeholder="nightly job", size="xs"),
            dmc.Select(
                id="settings-key-scope",
                label="Scope",
                data=[{"value": value, "label": label} for value, label in SCOPES],
                value="write",
                allowDeselect=False,
                size="xs",
            ),
            dmc.TagsInput(
                id="settings-key-projects", label="Projects", description="Empty: all that you may enter", size="xs"
            ),
            dmc.NumberInput(
                id="settings-key-days", label="Days", value=DEFAULT_DAYS, min=1, max=730, allowDecimal=False, size="xs"
            ),
            html.Button("Make a key", id="settings-key-make", type="button", className="btn"),
        ],
        className="settings-form",
    )
    chosen = html.Div(
        [
            dmc.Select(id="settings-key-chosen", label="A key in force", placeholder="choose", size="xs"),
            html.Button("Rotate", id="settings-key-rotate", type="button", className="btn"),
            html.Button("Revoke", id="settings-key-revoke", type="button", className="btn"),
        ],
        className="settings-form",
    )
    body = [
        html.Div(id="settings-keys", className="scrollx-in", tabIndex="0"),
        html.Div(id="settings-key-said", role="status"),
        html.H3("New key", className="tt"),
        form,
        html.H3("Rotate or revoke", className="tt"),
        chosen,
    ]
    return card("API keys", "Copy a key when you make it; it is not shown again", body, card_id="settings-keys-title")


def register(app: Dash, api: ApiClient) -> None:
    """Callbacks: the list, and the three things that can be done."""

    @app.callback(
        Output("settings-keys", "children"),
        Output("settings-key-chosen", "data"),
        Input("settings-me", "data"),
        Input("settings-changes", "data"),
    )
    async def load_keys(me: dict[str, Any] | None, _changes: int | None) -> tuple[Child, list[dict[str, str]]]:
        if not me or not me["makes_keys"]:
            raise PreventUpdate
        try:
            found = await api.keys(visitor_headers(ctx.headers))
        except ApiProblem as problem:
            return note(problem.detail), []
        return table(found), [{"value": key.id, "label": f"{key.name} · {key.id}"} for key in found if key.is_active]

    @app.callback(
        Output("settings-key-said", "children"),
        Output("settings-changes", "data", allow_duplicate=True),
        Input("settings-key-make", "n_clicks"),
        State("settings-key-name", "value"),
        State("settings-key-scope", "value"),
        State("settings-key-projects", "value"),
        State("settings-key-days", "value"),
        prevent_initial_call=True,
    )
    async def make(
        clicks: int | None, name: str | None, scope: str, projects: list[str] | None, days: float | None
    ) -> tuple[Child, Any]:
        if not clicks:
            raise PreventUpdate
        if not (name or "").strip():
            return note("Say what the key is for, so that others know whether it can go."), no_update
        try:
            made = await api.make_key(
                visitor_headers(ctx.headers),
                name=name,
                scope=scope,
                projects=projects or None,
                days=int(days or DEFAULT_DAYS),
            )
        except ApiProblem as problem:
            return note(problem.detail), no_update
        return shown_once(made.text), clicks

    @app.callback(
        Output("settings-key-said", "children", allow_duplicate=True),
        Output("settings-changes", "data", allow_duplicate=True),
        Input("settings-key-rotate", "n_clicks"),
        Input("settings-key-revoke", "n_clicks"),
        State("settings-key-chosen", "value"),
        prevent_initial_call=True,
    )
    async def end(rotations: int | None, revocations: int | None, key_id: str | None) -> tuple[Child, Any]:
        if not (rotations or revocations):
            raise PreventUpdate
        if not key_id:
            return note("Choose a key first."), no_update
        visitor = visitor_headers(ctx.headers)
        try:
            if ctx.triggered_id == "settings-key-rotate":
                made = await api.rotate_key(visitor, key_id)
                return shown_once(made.text, f"{key_id} stays in force until you revoke it."), f"rotated {key_id}"
            await api.revoke_key(visitor, key_id)
        except ApiProblem as problem:
            return note(problem.detail), no_update
        return note(f"{key_id} is revoked; every server refuses it within 5 s.", quiet=True), f"revoked {key_id}"


def shown_once(text: str, more: str = "") -> html.Div:
    """The text of a key, to be copied now."""
    return html.Div(
        [
            note(f"Copy it now: it is not shown again. {more}".strip()),
            html.Pre(text, className="mono code key", tabIndex="0", **aria({"aria-label": "The new key"})),
        ]
    )


def table(keys: Sequence[Key]) -> Child:
    """A row a key."""
    if not keys:
        return html.P("No keys yet.", className="t2")
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in HEADS]))
    return html.Table([head, html.Tbody([_row(key) for key in keys])], className="tb list short")


def _row(key: Key) -> html.Tr:
    until = f"{key.expires_at:%Y-%m-%d}"
    state = until if key.is_active else "revoked" if key.revoked_at is not None else f"expired {until}"
    name = [html.B(key.name), html.Span(f"{key.id} · {key.owner or 'no owner'}", className="below")]
    cells = (
        name,
        key.scope,
        "all" if key.projects is None else ", ".join(key.projects),
        "never" if key.last_used_at is None else f"{key.last_used_at:%Y-%m-%d %H:%M}",
        state,
    )
    return html.Tr([html.Td(cell) for cell in cells], className="" if key.is_active else "dim")
