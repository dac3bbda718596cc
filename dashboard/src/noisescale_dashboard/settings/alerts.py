"""Alerts on the page of settings: what is watched for, who is told, what has happened, and what would have."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.projects import AlertEvent, AlertRule, Alerts
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.shell.parts import card, note

KINDS = (
    ("resolved", "Noise scale resolved", None),
    ("batch_off", "Batch off by a factor of …", "factor"),
    ("saving", "Expected saving above … USD", "usd"),
    ("stalled", "Run stalled for … minutes", "minutes"),
    ("diverged", "Run diverged", None),
    ("spool_growing", "Records … minutes late", "minutes"),
    ("ranks_alike", "Two ranks alike", None),
    ("trace_cov_of_rounding", "tr Σ of rounding size", None),
    ("mentioned", "Somebody mentioned in a comment", None),
)
"""Kind, its words, and the number that the form says; the others are as by default."""
SHAPES = (("webhook", "Webhook, signed"), ("slack", "Slack"), ("email", "E-mail gateway"))
MUTED_FOR = (("1", "for an hour"), ("8", "for 8 hours"), ("24", "for a day"), ("168", "for a week"), ("0", "no more"))
"""Hours, in words; what happens meanwhile is noted, and sent to nobody."""
WORDS = {kind: words for kind, words, _ in KINDS}


RULE_BUTTONS = ("try", "add", "test", "mute", "delete")
RECEIVER_BUTTONS = ("tell", "send", "untell")


def layout() -> html.Section:
    """The card before its first data."""
    rule = [
        dmc.Select(
            id="settings-alerts-kind",
            label="Watch for",
            data=[{"value": kind, "label": words} for kind, words, _ in KINDS],
            value="batch_off",
            allowDeselect=False,
            size="xs",
        ),
        dmc.NumberInput(id="settings-alerts-number", label="How much", placeholder="as by default", min=0, size="xs"),
        html.Button("Dry run", id="settings-alerts-try", type="button", className="btn"),
        html.Button("Add rule", id="settings-alerts-add", type="button", className="btn"),
    ]
    chosen = [
        dmc.Select(id="settings-alerts-chosen", label="A rule", placeholder="choose", size="xs"),
        html.Button("Test this rule", id="settings-alerts-test", type="button", className="btn"),
        dmc.Select(
            id="settings-alerts-mute-for",
            label="Mute",
            data=[{"value": value, "label": words} for value, words in MUTED_FOR],
            value="24",
            allowDeselect=False,
            size="xs",
        ),
        html.Button("Set", id="settings-alerts-mute", type="button", className="btn"),
        html.Button("Delete", id="settings-alerts-delete", type="button", className="btn"),
    ]
    told = [
        dmc.Select(id="settings-alerts-told", label="A receiver", placeholder="choose", size="xs"),
        html.Button("Send a test", id="settings-alerts-send", type="button", className="btn"),
        html.Button("Delete", id="settings-alerts-untell", type="button", className="btn"),
    ]
    receiver = [
        dmc.TextInput(id="settings-alerts-name", label="Name", placeholder="team channel", size="xs"),
        dmc.Select(
            id="settings-alerts-shape",
            label="Shape",
            data=[{"value": value, "label": label} for value, label in SHAPES],
            value="webhook",
            allowDeselect=False,
            size="xs",
        ),
        dmc.TextInput(id="settings-alerts-url", label="Address", placeholder="https://…", size="xs"),
        dmc.TextInput(id="settings-alerts-to", label="E-mail to", description="Only for an e-mail gateway", size="xs"),
        html.Button("Add receiver", id="settings-alerts-tell", type="button", className="btn"),
    ]
    body = [
        html.Div(
            dmc.Select(id="settings-alerts-project", label="Project", placeholder="choose", searchable=True, size="xs"),
            className="settings-form",
        ),
        html.Div(id="settings-alerts", className="scrollx-in", tabIndex="0"),
        html.Div(id="settings-alerts-said", role="status"),
        html.H3("New rule", className="tt"),
        html.Div(rule, className="settings-form"),
        html.H3("Test, mute or delete a rule", className="tt"),
        html.Div(chosen, className="settings-form"),
        html.H3("New receiver", className="tt"),
        html.Div(receiver, className="settings-form"),
        html.H3("Test or delete a receiver", className="tt"),
        html.Div(told, className="settings-form"),
    ]
    return card(
        "Alerts",
        "What to watch for in a project's runs, and whom to notify",
        body,
        card_id="settings-alerts-title",
    )


def register(app: Dash, api: ApiClient) -> None:
    """Callbacks: projects, the lists, rules, receivers."""

    @app.callback(
        Output("settings-alerts-project", "data"),
        Output("settings-alerts-project", "value"),
        Input("settings-defaults-project", "data"),
        State("settings-alerts-project", "value"),
    )
    def offer(projects: list[str] | None, chosen: str | None) -> tuple[list[str], str | None]:
        # one of them is shown at once, as under Prices and defaults
        return projects or [], chosen or next(iter(projects or []), None)

    @app.callback(
        Output("settings-alerts", "children"),
        Output("settings-alerts-chosen", "data"),
        Output("settings-alerts-told", "data"),
        Input("settings-alerts-project", "value"),
        Input("settings-changes", "data"),
    )
    async def load(project: str | None, _changes: Any) -> tuple[Child, list[dict[str, str]], list[dict[str, str]]]:
        if not project:
            raise PreventUpdate
        try:
            found = await api.alerts(visitor_headers(ctx.headers), project)
        except ApiProblem as problem:
            return note(problem.detail), [], []
        rules = [{"value": one.id, "label": one.name} for one in found.rules]
        return html.Div(tables(found)), rules, [{"value": one, "label": name} for one, name, *_ in found.receivers]

    @app.callback(
        Output("settings-alerts-said", "children"),
        Output("settings-changes", "data", allow_duplicate=True),
        *(Input(f"settings-alerts-{button}", "n_clicks") for button in RULE_BUTTONS),
        State("settings-alerts-project", "value"),
        State("settings-alerts-kind", "value"),
        State("settings-alerts-number", "value"),
        State("settings-alerts-chosen", "value"),
        State("settings-alerts-mute-for", "value"),
        prevent_initial_call=True,
    )
    async def change(
        tries: int | None,
        adds: int | None,
        tests: int | None,
        mutes: int | None,
        deletes: int | None,
        project: str | None,
        kind: str,
        number: float | str | None,
        chosen: str | None,
        hours: str | None,
    ) -> tuple[Child, Any]:
        clicks = (tries, adds, tests, mutes, deletes)
        if not any(clicks):
            raise PreventUpdate
        button = str(ctx.triggered_id).rpartition("-")[2]
        if not project:
            return note("Choose a project first."), no_update
        visitor, wanted = visitor_headers(ctx.headers), rule_of(kind, number)
        try:
            if button == "try":
                return note(await api.alert_dry_run(visitor, project, wanted), quiet=True), no_update
            if button == "add":
                await api.add_alert_rule(visitor, project, wanted)
                return note("The rule is active from now on.", quiet=True), f"rule {project} {clicks}"
            if not chosen:
                return note("Choose a rule first."), no_update
            done = await _with_rule(api, visitor, project, chosen, button, _hours(hours))
        except ApiProblem as problem:
            return note(problem.detail), no_update
        return note(done, quiet=True), no_update if button == "test" else f"{button} {chosen} {clicks}"

    @app.callback(
        Output("settings-alerts-said", "children", allow_duplicate=True),
        Output("settings-changes", "data", allow_duplicate=True),
        *(Input(f"settings-alerts-{button}", "n_clicks") for button in RECEIVER_BUTTONS),
        State("settings-alerts-project", "value"),
        State("settings-alerts-name", "value"),
        State("settings-alerts-shape", "value"),
        State("settings-alerts-url", "value"),
        State("settings-alerts-to", "value"),
        State("settings-alerts-told", "value"),
        prevent_initial_call=True,
    )
    async def tell(
        tells: int | None,
        sends: int | None,
        untells: int | None,
        project: str | None,
        name: str | None,
        shape: str,
        url: str | None,
        to: str | None,
        told: str | None,
    ) -> tuple[Child, Any]:
        clicks = (tells, sends, untells)
        if not any(clicks):
            raise PreventUpdate
        button = str(ctx.triggered_id).rpartition("-")[2]
        if button != "tell":
            return await _with_receiver(api, visitor_headers(ctx.headers), project, told, button)
        if not project or not (name or "").strip() or not (url or "").strip():
            return note("Choose a project, name the receiver and give its address."), no_update
        wanted = {"name": name, "shape": shape, "url": str(url).strip(), "email_to": (to or "").strip() or None}
        try:
            secret = await api.add_alert_receiver(visitor_headers(ctx.headers), project, wanted)
        except ApiProblem as problem:
            return note(problem.detail), no_update
        shown = html.Div(
            [
                note("Copy the secret of its signatures now: it is not shown again."),
                html.Pre(secret, className="mono code key", tabIndex="0"),
            ]
        )
        return shown, f"receiver {name} {clicks}"


def _hours(said: str | None) -> float:
    """As the form offers them; 0 for anything else."""
    return float(said) if said in dict(MUTED_FOR) else 0.0


async def _with_rule(
    api: ApiClient, visitor: Mapping[str, str], project: str, rule_id: str, button: str, hours: float
) -> str:
    """Test, mute or delete a rule that is there; what was done, in a sentence."""
    if button == "delete":
        await api.delete_alert_rule(visitor, project, rule_id)
        return "The rule is deleted; its events stay."
    rule = await api.alert_rule(visitor, project, rule_id)
    if button == "test":
        return f"{rule.name}: {await api.alert_dry_run(visitor, project, rule.body)}"
    until = datetime.now(UTC) + timedelta(hours=hours) if hours > 0 else None
    await api.change_alert_rule(visitor, project, rule_id, replace(rule, muted_until=until).body)
    if until is None:
        return f"{rule.name} sends notifications again."
    return f"{rule.name} is muted until {until:%Y-%m-%d %H:%M} UTC: events are recorded and not sent."


async def _with_receiver(
    api: ApiClient, visitor: Mapping[str, str], project: str | None, receiver_id: str | None, button: str
) -> tuple[Child, Any]:
    """Test or delete a receiver that is there."""
    if not project or not receiver_id:
        return note("Choose a project and a receiver first."), no_update
    try:
        if button == "send":
            await api.test_alert_receiver(visitor, project, receiver_id)
            said = "A test is being sent: the list of events will show its result."
        else:
            await api.delete_alert_receiver(visitor, project, receiver_id)
            said = "The receiver is deleted; notifications that still waited for it are dropped."
    except ApiProblem as problem:
        return note(problem.detail), no_update
    return note(said, quiet=True), f"{button} {receiver_id} {datetime.now(UTC).isoformat()}"


def rule_of(kind: str, number: float | str | None) -> dict[str, Any]:
    """The rule that the form says, as the API takes it."""
    asks = next((name for one, _, name in KINDS if one == kind), None)
    said = {} if asks is None or number in (None, "") else {asks: number}
    return {"name": WORDS.get(kind, str(kind)).replace("…", str(said.get(asks or "", "…"))), "kind": kind, **said}


def tables(found: Alerts) -> list[Child]:
    """Rules, receivers and what has happened."""
    rules = _table(("Rule", "Numbers"), [_rule(one) for one in found.rules], "No rules yet.")
    told = [(name, f"{shape}, {host}") for _, name, shape, host in found.receivers]
    receivers = _table(("Receiver", "Where"), told, "No receivers yet.")
    events = _table(("When, UTC", "What", "Told"), [_event(one) for one in found.events], "Nothing has happened yet.")
    return [rules, receivers, events]


def _rule(one: AlertRule) -> tuple[str, str]:
    numbers = ", ".join(f"{name} {value:g}" for name, value in one.numbers) or "none"
    return one.name, numbers if one.muted_until is None else f"{numbers}; muted until {one.muted_until:%Y-%m-%d %H:%M}"


def _event(one: AlertEvent) -> tuple[str, str, str]:
    told = "muted" if one.is_muted else ", ".join(f"{name}: {state}" for name, state, _ in one.deliveries) or "nobody"
    return f"{one.at:%Y-%m-%d %H:%M}", f"{one.run or one.rule}: {one.sentence}", told


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], nothing: str) -> Child:
    if not rows:
        return html.P(nothing, className="t2")
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in heads]))
    body = html.Tbody([html.Tr([html.Td(cell) for cell in row]) for row in rows])
    return html.Table([head, body], className="tb list short")
