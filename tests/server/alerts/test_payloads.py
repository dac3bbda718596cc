"""What a receiver is sent, and how it knows by whom."""

import base64
import hashlib
import hmac
import json
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from noisescale_server.services.alerts.payloads import Message, body_of, secret_of, signed_headers

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
MESSAGE = Message(
    id=UUID(int=1),
    kind="diverged",
    rule="watch for NaN",
    project="vision",
    run_id=UUID(int=2),
    run="big <b>&</b>",
    sentence="Loss or gradients are not finite since step 7.",
    happened_at=NOW,
    url="https://noisescale.example.com/runs/2",
    to="ada@example.com",
)


def test_a_webhook_says_what_has_happened_to_which_run() -> None:
    said = json.loads(body_of(MESSAGE, "webhook"))

    assert said["type"] == "noisescale.diverged"
    assert said["id"] == str(MESSAGE.id)
    assert said["data"]["run_id"] == str(MESSAGE.run_id)
    assert said["data"]["sentence"] == MESSAGE.sentence
    assert said["timestamp"] == "2026-11-25T12:00:00+00:00"


def test_slack_is_told_in_its_own_shape_and_names_cannot_write_its_markup() -> None:
    said = json.loads(body_of(MESSAGE, "slack"))

    text = said["blocks"][0]["text"]["text"]
    assert said["text"].startswith("Run diverged: big &lt;b&gt;&amp;&lt;/b&gt;")
    assert "<https://noisescale.example.com/runs/2|Open the run>" in text
    assert "<b>" not in text


def test_an_e_mail_has_a_receiver_a_subject_and_an_id_of_its_event() -> None:
    said = json.loads(body_of(MESSAGE, "email"))

    assert said["to"] == "ada@example.com"
    assert said["subject"] == "[noisescale] Run diverged: big <b>&</b>"
    assert MESSAGE.sentence in said["text"]
    assert said["headers"]["Message-ID"] == f"<{MESSAGE.id}@noisescale>"


@pytest.mark.parametrize("shape", ["webhook", "slack", "email"])
def test_the_same_event_is_the_same_bytes_whenever_it_is_sent(shape: str) -> None:
    assert body_of(MESSAGE, shape) == body_of(replace(MESSAGE), shape)


def test_a_test_has_neither_rule_nor_run() -> None:
    tried = replace(MESSAGE, kind=None, run=None, run_id=None, url=None)

    assert json.loads(body_of(tried, "webhook"))["type"] == "noisescale.test"
    assert json.loads(body_of(tried, "email"))["subject"] == "[noisescale] Test"


def test_a_signature_is_that_of_standard_webhooks() -> None:
    """Computed again by the words of the specification: base64 HMAC-SHA256 of id.timestamp.body."""
    secret, body = secret_of(b"pepper", UUID(int=3)), body_of(MESSAGE, "webhook")

    headers = signed_headers(secret, MESSAGE.id, body, NOW)

    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    assert len(key) == 32
    assert headers["webhook-timestamp"] == str(int(NOW.timestamp()))
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"


def test_each_receiver_and_each_server_has_a_secret_of_its_own() -> None:
    secrets = {secret_of(pepper, UUID(int=number)) for pepper in (b"one", b"two") for number in range(3)}

    assert len(secrets) == 6
