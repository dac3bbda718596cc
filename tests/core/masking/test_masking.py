"""One list of rules for what a config may not hold; the job's side and the server's are tested with the same cases."""

import time
from typing import Any

import pytest

from noisescale_core.masking import MASK, masked, masked_text
from secrets_in_configs import HARMLESS, HARMLESS_TEXTS, IN_TEXTS, SECRETS


@pytest.mark.parametrize(("config", "stored"), SECRETS, ids=str)
def test_a_secret_is_masked(config: dict[str, Any], stored: dict[str, Any]) -> None:
    assert masked(config) == stored


@pytest.mark.parametrize("config", HARMLESS, ids=str)
def test_what_is_no_secret_stays(config: dict[str, Any]) -> None:
    assert masked(config) == config


@pytest.mark.parametrize(("text", "shown"), IN_TEXTS)
def test_a_secret_inside_a_text_is_masked_and_the_rest_stays(text: str, shown: str) -> None:
    assert masked_text(text) == shown.replace("…", MASK)


@pytest.mark.parametrize("text", HARMLESS_TEXTS)
def test_a_text_without_a_secret_stays(text: str) -> None:
    assert masked_text(text) == text


@pytest.mark.parametrize("text", [text for text, _ in IN_TEXTS])
def test_masking_twice_is_masking_once(text: str) -> None:
    assert masked_text(masked_text(text)) == masked_text(text)


@pytest.mark.parametrize(
    "piece",
    ["a", "a.", "password", "eyJ", "eyJaaaaaaaaaa.", "https://", "https://a:", "-----BEGIN PRIVATE KEY", "--a ",
     "sk-", "hf_", "'", "bearer ", "x:'", "1", "a=", "a-token=", "password='", "https://hooks.slack.com/services",
     "https://a/hooks/", "https://a:b@", "x://:a", "?key=", "&api_key=", "https://a.b/c/d/e/f/hook/"],
)  # fmt: skip
def test_no_text_takes_long(piece: str) -> None:
    text = piece * (65_536 // len(piece))
    begin = time.process_time()

    masked_text(text)

    assert time.process_time() - begin < 1.0
