"""Prices and defaults on the page of settings."""

import json
from typing import Any

import pytest

from dashboard_callbacks import Callbacks
from fakes_api import FakeApi
from noisescale_dashboard.answers.projects import ProjectDefaults
from noisescale_dashboard.settings import defaults as settings_defaults

FORM = {
    "settings-defaults-save.n_clicks": 1,
    "settings-defaults-project.value": "vision",
    "settings-defaults-price.value": 2.0,
    "settings-defaults-currency.value": "EUR",
    "settings-defaults-rate.value": 1.1,
    "settings-defaults-way.value": "preference",
    "settings-defaults-worth.value": 0.3,
}


def sent(fake_api: FakeApi) -> Any:
    return json.loads(fake_api.requests[-1].content)


async def test_the_first_project_is_chosen_and_its_defaults_are_in_the_form(callbacks: Callbacks) -> None:
    chosen = await callbacks.post(
        "settings-defaults-project.data", {"settings-me.data": {"makes_keys": True, "manages": True, "is_local": False}}
    )
    name = chosen["settings-defaults-project"]["value"]

    shown = await callbacks.post("settings-defaults-price.value", {"settings-defaults-project.value": name})

    assert name in chosen["settings-defaults-project"]["data"]
    values = [shown[f"settings-defaults-{one}"]["value"] for one in settings_defaults.FIELDS]
    assert values == [2.0, "EUR", 1.1, "preference", 0.3]


async def test_saving_sends_what_the_form_says_and_says_what_is_assumed_then(
    callbacks: Callbacks, fake_api: FakeApi
) -> None:
    shown = await callbacks.post("settings-defaults-said.children", FORM, headers={"Cookie": "who=ada"})

    assert fake_api.requests[-1].headers["cookie"] == "who=ada"
    assert "vision assumes 2 EUR a device-hour; a preference of 0.3." in str(shown)


async def test_without_a_project_nothing_is_saved(callbacks: Callbacks) -> None:
    shown = await callbacks.post("settings-defaults-said.children", FORM | {"settings-defaults-project.value": None})

    assert "Choose a project first." in str(shown)


@pytest.mark.parametrize(
    ("given", "body"),
    [
        ((2.0, "EUR", 1.1, "none", None), {"device_hour_price": 2.0, "currency": "EUR", "usd_per_unit": 1.1}),
        (("", "USD", 1, "fixed_hardware", None), {"currency": "USD", "fixed_hardware": True}),
        ((None, "USD", 1, "examples_per_step", 64), {"currency": "USD", "examples_per_step": 64}),
        ((None, "USD", 1, "preference", ""), "Say how much a step is worth."),
    ],
)
def test_the_form_says_what_the_api_takes(given: tuple[Any, ...], body: Any) -> None:
    assert settings_defaults.body_of(given) == body


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "no price of a device; what a step is worth is left open"),
        ({"examples_per_step": 64.0}, "a step saved is worth 64.0 examples"),
        ({"fixed_hardware": True}, "the devices stay as they are"),
    ],
)
def test_what_was_saved_is_said_as_a_sentence(changes: dict[str, Any], words: str) -> None:
    nothing = {
        "device_hour_price": None, "currency": "USD", "usd_per_unit": 1.0, "preference": None,
        "examples_per_step": None, "fixed_hardware": False,
    }  # fmt: skip

    assert words in settings_defaults.sentence("vision", ProjectDefaults(**(nothing | changes)))
