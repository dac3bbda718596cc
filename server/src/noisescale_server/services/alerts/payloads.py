"""What is sent of an event: as JSON of our own, as Slack takes it, or as an e-mail that a gateway sends."""

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from noisescale_server.services.alerts.rules import WORDS, Kind

Shape = Literal["webhook", "slack", "email"]
SHAPES: Final[tuple[Shape, ...]] = ("webhook", "slack", "email")
SECRET_PREFIX: Final = "whsec_"  # noqa: S105  # no secret: what one begins with

_SLACK: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True, slots=True)
class Message:
    """An event as it is told.

    Attributes:
        id: Of the event: the same whenever it is sent, so that a receiver knows one that comes again.
        kind: Of the rule; None of a test.
        rule: What the rule is called.
        project: Whose run it is.
        run_id: Of the run; None of a test.
        run: What it is called.
        sentence: What has happened.
        happened_at: When.
        url: Of the run's page; None where the server has no public address.
        to: Whom an e-mail goes to.
    """

    id: UUID
    kind: Kind | None
    rule: str
    project: str
    run_id: UUID | None
    run: str | None
    sentence: str
    happened_at: datetime
    url: str | None
    to: str | None = None

    @property
    def subject(self) -> str:
        """The event in a few words."""
        what = "Test" if self.kind is None else WORDS[self.kind]
        return f"{what}: {self.run}" if self.run else what


def body_of(message: Message, shape: Shape) -> bytes:
    """The body of the request, the same each time.

    Args:
        message: What to tell.
        shape: How the receiver takes it.
    """
    shaped = {"webhook": _webhook, "slack": _slack, "email": _email}[shape](message)
    return json.dumps(shaped, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def secret_of(pepper: bytes, receiver_id: UUID) -> str:
    """The secret that a receiver's messages are signed with: it follows from the server's own, and is kept nowhere."""
    digest = hmac.new(pepper, b"alert receiver " + receiver_id.bytes, hashlib.sha256).digest()
    return SECRET_PREFIX + base64.b64encode(digest).decode()


def signed_headers(secret: str, message_id: UUID, body: bytes, now: datetime) -> dict[str, str]:
    """Headers by which a receiver knows who has sent it, and when: those of Standard Webhooks.

    HMAC-SHA256 over id, timestamp and body. A receiver refuses a timestamp that is minutes old, and an id that it has.

    Args:
        secret: As `secret_of` makes it.
        message_id: Of the event.
        body: As it is sent.
        now: When it is sent.

    Source: https://www.standardwebhooks.com, version 1.0.0.
    """
    timestamp = str(int(now.timestamp()))
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    signed = b".".join((str(message_id).encode(), timestamp.encode(), body))
    signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return {
        "webhook-id": str(message_id),
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{signature}",
        "Content-Type": "application/json",
        "User-Agent": "noisescale-alerts",
    }


def _webhook(message: Message) -> dict[str, Any]:
    return {
        "type": f"noisescale.{message.kind or 'test'}",
        "id": str(message.id),
        "timestamp": message.happened_at.isoformat(),
        "data": {
            "rule": message.rule,
            "project": message.project,
            "run_id": None if message.run_id is None else str(message.run_id),
            "run": message.run,
            "sentence": message.sentence,
            "url": message.url,
        },
    }


def _slack(message: Message) -> dict[str, Any]:
    subject, sentence = message.subject.translate(_SLACK), message.sentence.translate(_SLACK)
    text = f"*{subject}* ({message.project.translate(_SLACK)})\n{sentence}"
    link = "" if message.url is None else f"\n<{message.url}|Open the run>"
    section = {"type": "section", "text": {"type": "mrkdwn", "text": text + link}}
    return {"text": f"{subject}: {sentence}", "blocks": [section], "unfurl_links": False}


def _email(message: Message) -> dict[str, Any]:
    lines = [message.sentence, "", f"Project: {message.project}", f"Rule: {message.rule}"]
    lines += [] if message.run is None else [f"Run: {message.run}"]
    lines += [] if message.url is None else [message.url]
    return {
        "to": message.to,
        "subject": f"[noisescale] {message.subject}",
        "text": "\n".join(lines),
        "headers": {"Message-ID": f"<{message.id}@noisescale>"},
    }
