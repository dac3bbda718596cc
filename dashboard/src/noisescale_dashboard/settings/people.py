"""Members and the audit log on the page of settings."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.access import AuditEntry, Person
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.serving.page_routes import is_id
from noisescale_dashboard.settings import logins as settings_logins
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.shell.parts import card, link, note

T = TypeVar("T")
ROLES = (("viewer", "Viewer: reads"), ("member", "Member: writes too"), ("admin", "Admin: keys, members, deleting"))
NUM_ENTRIES = 50
SHORT_ID = 8
"""Characters of an id; the whole stands in its tooltip."""


def members() -> html.Section:
    """The card before its first data."""
    form = html.Div(
        [
            dmc.Select(id="settings-person", label="Person", placeholder="choose", searchable=True, size="xs"),
            dmc.TextInput(id="settings-person-project", label="Project", size="xs"),
            dmc.Select(
                id="settings-person-role",
                label="Role",
                data=[{"value": value, "label": label} for value, label in ROLES],
                value="viewer",
                allowDeselect=False,
                size="xs",
            ),
            html.Button("Set role", id="settings-role-set", type="button", className="btn"),
            html.Button("Remove", id="settings-role-remove", type="button", className="btn"),
        ],
        className="settings-form",
    )
    body = [
        html.Div(id="settings-people", className="scrollx-in", tabIndex="0"),
        html.Div(id="settings-person-said", role="status"),
        form,
        settings_logins.layout(),
    ]
    return card(
        "Members",
        "People come from the organisation's login, or by a one-time link",
        body,
        card_id="settings-people-title",
    )


def log() -> html.Section:
    """The card of the audit log before its first data."""
    body = html.Div(id="settings-audit", className="scrollx-in scrolly tall", tabIndex="0")
    return card(
        "Audit log",
        "Keys, roles, logins, alerts, baselines and comments, newest first",
        body,
        card_id="settings-audit-title",
    )


def register(app: Dash, api: ApiClient) -> None:
    """Callbacks: members, roles, logins, the log."""

    @app.callback(
        Output("settings-people", "children"),
        Output("settings-person", "data"),
        Output("settings-audit", "children"),
        Input("settings-me", "data"),
        Input("settings-changes", "data"),
    )
    async def load_people(me: dict[str, Any] | None, _changes: Any) -> tuple[Child, list[dict[str, str]], Child]:
        if not me or not me["manages"]:
            raise PreventUpdate
        visitor = visitor_headers(ctx.headers)
        people, entries = await asyncio.gather(
            _found(api.people(visitor)), _found(api.audit(visitor, limit=NUM_ENTRIES))
        )
        return *_people(people), _entries(entries)

    @app.callback(
        Output("settings-person-said", "children"),
        Output("settings-changes", "data", allow_duplicate=True),
        Input("settings-role-set", "n_clicks"),
        Input("settings-role-remove", "n_clicks"),
        State("settings-person", "value"),
        State("settings-person-project", "value"),
        State("settings-person-role", "value"),
        prevent_initial_call=True,
    )
    async def change_role(
        settings: int | None, removals: int | None, person_id: str | None, project: str | None, role: str
    ) -> tuple[Child, Any]:
        if not (settings or removals):
            raise PreventUpdate
        if not person_id or not (project or "").strip():
            return note("Choose a person and name a project."), no_update
        wanted = None if ctx.triggered_id == "settings-role-remove" else role
        try:
            await api.set_role(visitor_headers(ctx.headers), str(project), person_id, wanted)
        except ApiProblem as problem:
            return note(problem.detail), no_update
        return note("Saved.", quiet=True), f"{person_id} {project} {wanted} {settings} {removals}"

    settings_logins.register(app, api)


async def _found(asked: Awaitable[Sequence[T]]) -> Sequence[T] | ApiProblem:
    try:
        return await asked
    except ApiProblem as problem:
        return problem


def _people(found: Sequence[Person] | ApiProblem) -> tuple[Child, list[dict[str, str]]]:
    """The members and those among them that can be chosen, or why there are none."""
    if isinstance(found, ApiProblem):
        return note(f"Members are not loaded: {found.detail}"), []
    return people_table(found), [{"value": one.id, "label": one.name} for one in found]


def _entries(found: Sequence[AuditEntry] | ApiProblem) -> Child:
    """The log, or why there is none."""
    if isinstance(found, ApiProblem):
        return note(f"The audit log is not loaded: {found.detail}")
    return log_table(found)


def people_table(people: Sequence[Person]) -> Child:
    """A row a person, with the roles in the projects that the reader manages."""
    if not people:
        return html.P("Nobody yet.", className="t2")
    rows = [
        html.Tr(
            [
                html.Td([html.B(one.name), html.Span(one.email or "", className="below")]),
                html.Td(standing_text(one)),
            ]
        )
        for one in people
    ]
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in ("Name", "Roles")]))
    return html.Table([head, html.Tbody(rows)], className="tb list short")


def standing_text(person: Person) -> str:
    """What the person is here."""
    if person.is_disabled:
        return "disabled: cannot log in"
    return "admin of all projects" if person.is_administrator else roles_text(person.roles)


def roles_text(roles: Sequence[tuple[str, str]]) -> str:
    """The roles in one line."""
    return ", ".join(f"{role} in {project}" for project, role in roles) or "none"


def log_table(entries: Sequence[AuditEntry]) -> Child:
    """A row an entry."""
    if not entries:
        return html.P("Nothing yet.", className="t2")
    rows = [
        html.Tr(
            [
                html.Td(f"{one.at:%Y-%m-%d %H:%M}", className="nb"),
                html.Td(one.actor),
                html.Td([one.action, html.Span(details_of(one), className="below")]),
            ]
        )
        for one in entries
    ]
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in ("When, UTC", "Who", "What")]))
    return html.Table([head, html.Tbody(rows)], className="tb list")


def details_of(entry: AuditEntry) -> list[Child]:
    """What an entry says beside its action; a run is a link, and of other ids the beginning stands there."""
    parts: list[Child] = []
    for name, value in entry.details:
        short = value[:SHORT_ID] if is_id(value) else value
        is_run = name == "run" and short != value
        shown = link(short, f"/runs/{value}", class_name="inline") if is_run else html.Span(short, title=value)
        parts += [", " if parts else "", f"{name} ", shown]
    return [part for part in parts if part != ""]
