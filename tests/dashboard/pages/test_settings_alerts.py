"""Alerts on the page of settings."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dashboard_callbacks import Callbacks
from fakes_access import RULE_ID
from fakes_api import FakeApi
from noisescale_dashboard.settings import alerts as settings_alerts

FORM = {
    "settings-alerts-project.value": "vision",
    "settings-alerts-kind.value": "stalled",
    "settings-alerts-number.value": 30,
    "settings-alerts-chosen.value": RULE_ID,
    "settings-alerts-mute-for.value": "8",
    "settings-alerts-told.value": RULE_ID,
}


async def test_rules_receivers_and_what_became_of_events_are_listed(callbacks: Callbacks) -> None:
    shown = await callbacks.post("settings-alerts.children", {"settings-alerts-project.value": "vision"})

    said = str(shown["settings-alerts"])
    assert "minutes 15; muted until" in said
    assert "hooks.example.com" in said
    assert "big: Nothing has come for 15 minutes" in said
    assert "hook: undelivered" in said


@pytest.mark.parametrize(
    ("button", "words", "path"),
    [
        ("try", "would have fired 3 times in the last week", "/alerts/dry-run"),
        ("add", "The rule is active from now on.", "/alerts/rules"),
        ("test", "slow: This rule would have fired 3 times in the last week", "/alerts/dry-run"),
        ("mute", "slow is muted until 20", f"/alerts/rules/{RULE_ID}"),
        ("delete", "The rule is deleted", f"/alerts/rules/{RULE_ID}"),
    ],
)
async def test_each_button_does_what_it_says(
    callbacks: Callbacks, fake_api: FakeApi, button: str, words: str, path: str
) -> None:
    values = FORM | {f"settings-alerts-{button}.n_clicks": 1}

    body = callbacks.payload("settings-alerts-said.children", values, triggered=f"settings-alerts-{button}.n_clicks")
    shown = await callbacks.client.post("/_dash-update-component", json=body)

    assert words in shown.text
    assert fake_api.requests[-1].url.path.endswith(path)


async def test_a_muted_rule_stays_what_it_was_and_is_heard_again_when_asked(
    callbacks: Callbacks, fake_api: FakeApi
) -> None:
    bodies = []
    for hours in ("8", "0"):
        values = FORM | {"settings-alerts-mute.n_clicks": 1, "settings-alerts-mute-for.value": hours}
        body = callbacks.payload("settings-alerts-said.children", values, triggered="settings-alerts-mute.n_clicks")
        await callbacks.client.post("/_dash-update-component", json=body)
        bodies.append(await fake_api.requests[-1].json())

    muted, heard = bodies
    until = datetime.fromisoformat(muted.pop("muted_until"))
    assert timedelta(hours=7.9) < until - datetime.now(UTC) < timedelta(hours=8.1)
    assert heard.pop("muted_until") is None
    assert muted == heard == {"name": "slow", "kind": "stalled", "minutes": 15.0, "again_after_hours": 24.0}


@pytest.mark.parametrize(
    ("button", "words", "path"),
    [
        ("send", "A test is being sent", f"/alerts/receivers/{RULE_ID}/test"),
        ("untell", "The receiver is deleted", f"/alerts/receivers/{RULE_ID}"),
    ],
)
async def test_a_receiver_is_tested_and_deleted(
    callbacks: Callbacks, fake_api: FakeApi, button: str, words: str, path: str
) -> None:
    values = FORM | {f"settings-alerts-{button}.n_clicks": 1}

    output = callbacks.output_called_by("settings-alerts-tell")
    body = callbacks.payload(output, values, triggered=f"settings-alerts-{button}.n_clicks")
    shown = await callbacks.client.post("/_dash-update-component", json=body)

    assert words in shown.text
    assert fake_api.requests[-1].url.path.endswith(path)


@pytest.mark.parametrize(
    ("kind", "number", "body"),
    [
        ("stalled", 30, {"name": "Run stalled for 30 minutes", "kind": "stalled", "minutes": 30}),
        ("diverged", 30, {"name": "Run diverged", "kind": "diverged"}),
        ("saving", "", {"name": "Expected saving above … USD", "kind": "saving"}),
    ],
)
def test_the_form_says_what_the_api_takes(kind: str, number: Any, body: dict[str, Any]) -> None:
    assert settings_alerts.rule_of(kind, number) == json.loads(json.dumps(body))


@pytest.mark.parametrize(("chosen", "shown"), [(None, "demo"), ("vision", "vision")])
async def test_the_alerts_of_one_project_are_shown_before_anybody_chooses(
    callbacks: Callbacks, chosen: str | None, shown: str
) -> None:
    values = {"settings-defaults-project.data": ["demo", "vision"], "settings-alerts-project.value": chosen}

    offered = (await callbacks.post("settings-alerts-project.data", values))["settings-alerts-project"]

    assert offered == {"data": ["demo", "vision"], "value": shown}
