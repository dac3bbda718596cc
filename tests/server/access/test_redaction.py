"""A key that was planted everywhere is found nowhere."""

import io
import logging
from collections.abc import Iterator

import pytest
from fastapi import FastAPI

from app_in_process import client_of, running_app
from keys_of_tests import bearer
from noisescale_server.process import log_redaction
from noisescale_server.process.settings import Settings
from noisescale_server.services.access import key_text

KEY = key_text.new("admin")


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What a redacting process writes."""
    before, written = logging.getLogRecordFactory(), io.StringIO()
    handler = logging.StreamHandler(written)
    log_redaction.install()
    logging.getLogger().addHandler(handler)
    yield written
    logging.getLogger().removeHandler(handler)
    logging.setLogRecordFactory(before)


def test_a_logged_key_keeps_its_kind_and_loses_its_secret(log: io.StringIO) -> None:
    logging.getLogger("anything").warning("refused %s of %s", KEY.text, "10.0.0.7")

    assert log.getvalue() == "refused ns_a_…**** of 10.0.0.7\n"


def test_a_traceback_that_holds_one_loses_it_too(log: io.StringIO) -> None:
    try:
        raise ValueError(f"cannot read {KEY.text}")
    except ValueError:
        logging.getLogger("anything").exception("failed")

    assert "ValueError: cannot read ns_a_…****" in log.getvalue()
    assert KEY.secret not in log.getvalue()


@pytest.mark.parametrize(
    "address", ["/login?token=ns_a_short", "/login?link=" + "x" * 43, "/login/back?code=" + "y" * 20]
)
def test_what_logs_in_by_an_address_is_left_out(log: io.StringIO, address: str) -> None:
    logging.getLogger("access").warning("GET %s", address)

    assert "****" in log.getvalue()
    assert address not in log.getvalue()


def test_ordinary_words_stay(log: io.StringIO) -> None:
    logging.getLogger("anything").warning("ns_records: token=7, next_state=ready")

    assert log.getvalue() == "ns_records: token=7, next_state=ready\n"


async def test_no_answer_and_no_log_repeats_a_key(new_database, log: io.StringIO) -> None:
    async with running_app(new_database(), local_token=KEY.text) as app, client_of(app, bearer(KEY.text)) as client:
        break_something(app)
        answers = [
            await client.get("/api/v1/broken"),
            await client.get("/broken"),
            await client.get(f"/api/v1/runs/{KEY.text}"),
            await client.get("/api/v1/me"),
            await client.get("/api/v1/runs", headers=bearer(KEY.text + "x")),
            await client.get("/login", params={"token": KEY.text + "x"}),
        ]

    shown = [answer.text for answer in answers if str(answer.url).find(KEY.text) < 0 or answer.status_code != 422]
    assert all(KEY.secret not in text for text in shown)
    assert KEY.secret not in log.getvalue()


def break_something(app: FastAPI) -> None:
    """An endpoint whose error carries the key."""

    @app.get("/broken")
    async def fail() -> None:
        raise RuntimeError(f"something about {KEY.text}")


def test_settings_do_not_show_what_they_hold() -> None:
    settings = Settings(local_token=KEY.text, secret_key=KEY.text, oidc_client_secret=KEY.text)

    assert KEY.secret not in repr(settings)
    assert KEY.secret not in str(settings.model_dump())
