"""Secrets that people leave in a config are not stored."""

import httpx
import pytest

from noisescale_server.api.masked_config import MASK, masked
from noisescale_server.services import key_text


@pytest.mark.parametrize(
    "name",
    ["password", "db.password", "WANDB_API_KEY", "hf_token", "token", "aws-secret", "client_secret", "access_key",
     "Authorization", "passphrase", "credentials"],
)  # fmt: skip
def test_a_text_under_a_secrets_name_is_masked(name: str) -> None:
    assert masked({"a": [{name: "hunter2"}]}) == {"a": [{name: MASK}]}


@pytest.mark.parametrize(
    "config",
    [{"num_tokens": 4096}, {"tokenizer": "gpt2"}, {"token": 7}, {"keyboard": "x"}, {"pass": 3}, {"secretary": "Ada"},
     {"password": ""}, {"data": "https://example.com/a:b@c"}],
    ids=str,
)  # fmt: skip
def test_what_is_no_secret_stays(config: dict[str, object]) -> None:
    assert masked(config) == config


def test_keys_and_passwords_within_other_texts_are_masked() -> None:
    key = key_text.new("write").text

    found = masked({"argv": f"--key={key} --db=postgresql://ada:hunter2@db/x"})

    assert found == {"argv": f"--key={MASK} --db=postgresql://ada:{MASK}@db/x"}


async def test_a_stored_config_holds_none(shared_client: httpx.AsyncClient) -> None:
    body = {"project": "p", "config": {"lr": 0.1, "hf_token": "hunter2"}}

    answer = await shared_client.post("/api/v1/runs", json=body)
    stored = await shared_client.get(f"/api/v1/runs/{answer.json()['id']}")

    assert stored.json()["config"] == {"lr": 0.1, "hf_token": MASK}
