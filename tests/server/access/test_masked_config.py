"""Secrets that people leave in a config are not stored: by the rules that the job has, too (tests/core/masking)."""

from typing import Any

import httpx
import pytest

from noisescale_core.masking import MASK
from noisescale_server.api.runs.schemas import RunFields
from noisescale_server.services.access import key_text
from secrets_in_configs import HARMLESS, SECRETS


@pytest.mark.parametrize(("config", "stored"), SECRETS, ids=str)
def test_the_server_masks_what_the_rules_say(config: dict[str, Any], stored: dict[str, Any]) -> None:
    assert RunFields(project="p", config=config).config == stored


@pytest.mark.parametrize("config", HARMLESS, ids=str)
def test_the_server_keeps_the_rest(config: dict[str, Any]) -> None:
    assert RunFields(project="p", config=config).config == config


def test_keys_of_ours_are_masked_wherever_they_stand() -> None:
    key = key_text.new("write").text

    found = RunFields(project="p", config={"note": f"made with {key} today"}).config

    assert found == {"note": f"made with {MASK} today"}


async def test_a_stored_config_holds_none(shared_client: httpx.AsyncClient) -> None:
    body = {"project": "p", "config": {"lr": 0.1, "hf_token": "hunter2"}}

    answer = await shared_client.post("/api/v1/runs", json=body)
    stored = await shared_client.get(f"/api/v1/runs/{answer.json()['id']}")

    assert stored.json()["config"] == {"lr": 0.1, "hf_token": MASK}
