"""Who can log in, on the page of settings: add somebody, make a link, log out, disable, choose admins."""

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import note

CHANGES: Mapping[str, tuple[str, dict[str, bool], str]] = {
    "disable": ("Disable", {"is_disabled": True}, "Disabled: logins have ended, keys are refused within 5 s."),
    "enable": ("Enable", {"is_disabled": False}, "Enabled: they can log in again, with new keys."),
    "promote": ("Make admin of all projects", {"is_administrator": True}, "An admin of all projects now."),
    "demote": ("Remove admin rights", {"is_administrator": False}, "Admin rights removed."),
}
"""By the button's name: its words, what changes, and what is said then."""


def layout() -> html.Div:
    """The part of the members' card that admins of all projects see."""
    newcomer = html.Div(
        [
            dmc.TextInput(id="settings-newcomer-name", label="Name", placeholder="Ada Lovelace", size="xs"),
            dmc.TextInput(
                id="settings-newcomer-email", label="E-mail", description="Shown; nothing is sent there", size="xs"
            ),
            dmc.Checkbox(id="settings-newcomer-admin", label="Admin of all projects", size="xs"),
            html.Button("Add", id="settings-newcomer-add", type="button", className="btn"),
        ],
        className="settings-form",
    )
    logins = html.Div(
        [
            html.Button("Make a login link", id="settings-link-make", type="button", className="btn"),
            html.Button("Log out everywhere", id="settings-person-out", type="button", className="btn"),
        ],
        className="settings-form",
    )
    standing = html.Div(
        [
            html.Button(label, id=f"settings-person-{name}", type="button", className="btn")
            for name, (label, _, _) in CHANGES.items()
        ],
        className="settings-form",
    )
    return html.Div(
        [
            html.H3("Logins of the chosen person", className="tt"),
            logins,
            html.H3("Access of the chosen person", className="tt"),
            html.P(
                "Disabling ends their logins and keys for good. The last admin of all projects stays.", className="t2"
            ),
            standing,
            html.H3("Add somebody", className="tt"),
            newcomer,
        ],
        id="settings-logins",
        hidden=True,
    )


def register(app: Dash, api: ApiClient) -> None:
    """Callbacks: adding, links, logging out."""

    @app.callback(
        Output("settings-person-said", "children", allow_duplicate=True),
        Output("settings-changes", "data", allow_duplicate=True),
        Output("settings-person", "value"),
        Input("settings-newcomer-add", "n_clicks"),
        State("settings-newcomer-name", "value"),
        State("settings-newcomer-email", "value"),
        State("settings-newcomer-admin", "checked"),
        prevent_initial_call=True,
    )
    async def add(
        clicks: int | None, name: str | None, email: str | None, is_administrator: bool | None
    ) -> tuple[Child, Any, Any]:
        if not clicks:
            raise PreventUpdate
        if not (name or "").strip():
            return note("Name the person."), no_update, no_update
        try:
            person_id = await api.add_person(
                visitor_headers(ctx.headers),
                name=str(name),
                email=(email or "").strip() or None,
                is_administrator=bool(is_administrator),
            )
        except ApiProblem as problem:
            return note(problem.detail), no_update, no_update
        said = f"{name} is added and chosen: set a role, and make a login link."
        return note(said, quiet=True), f"added {person_id}", person_id

    @app.callback(
        Output("settings-person-said", "children", allow_duplicate=True),
        Output("settings-changes", "data", allow_duplicate=True),
        Input("settings-link-make", "n_clicks"),
        Input("settings-person-out", "n_clicks"),
        State("settings-person", "value"),
        prevent_initial_call=True,
    )
    async def change_logins(links: int | None, outs: int | None, person_id: str | None) -> tuple[Child, Any]:
        if not (links or outs):
            raise PreventUpdate
        if not person_id:
            return note("Choose a person first."), no_update
        visitor = visitor_headers(ctx.headers)
        try:
            if ctx.triggered_id == "settings-person-out":
                await api.log_out_everywhere(visitor, person_id)
                return note("Logged out of every browser.", quiet=True), f"out {person_id} {outs}"
            link = await api.make_login_link(visitor, person_id)
        except ApiProblem as problem:
            return note(problem.detail), no_update
        return shown_link(link), f"link {person_id} {links}"

    @app.callback(
        Output("settings-person-said", "children", allow_duplicate=True),
        Output("settings-changes", "data", allow_duplicate=True),
        *(Input(f"settings-person-{name}", "n_clicks") for name in CHANGES),
        State("settings-person", "value"),
        prevent_initial_call=True,
    )
    async def change_standing(*given: Any) -> tuple[Child, Any]:
        *clicks, person_id = given
        if not any(clicks):
            raise PreventUpdate
        if not person_id:
            return note("Choose a person first."), no_update
        name = str(ctx.triggered_id).removeprefix("settings-person-")
        _, wanted, said = CHANGES[name]
        try:
            await api.change_person(visitor_headers(ctx.headers), person_id, **wanted)
        except ApiProblem as problem:
            return note(problem.detail), no_update
        return note(said, quiet=True), f"{name} {person_id} {clicks}"


def shown_link(url: str) -> html.Div:
    """A one-time link, to be handed over now."""
    return html.Div(
        [
            note("Copy this link now: it is shown once, works once and expires in an hour."),
            html.Pre(url, className="mono code key", tabIndex="0", **aria({"aria-label": "The login link"})),
        ]
    )
