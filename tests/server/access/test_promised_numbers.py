"""The limits and times of access and ingestion that the documentation promises are those of the code."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from noisescale_server.api.access import credentials as auth_credentials
from noisescale_server.api.access import login_provider
from noisescale_server.services.access import keys, sessions
from noisescale_server.services.ingest import ingestion, metric_names

ACCESS = re.sub(r"\s+", " ", (Path(__file__).parents[3] / "docs/access.md").read_text())


@pytest.mark.parametrize(
    ("promise", "found", "expected"),
    [
        ("logs in once, within the hour", sessions.LINK_LIVES, timedelta(hours=1)),
        ("12 hours without a look", sessions.IDLE, timedelta(hours=12)),
        ("or 7 days end it", sessions.LONGEST, timedelta(days=7)),
        ("A key ends after 180 days unless it is told otherwise", keys.DEFAULT_DAYS, 180),
        ("there are never three", keys.MAX_ACTIVE_IN_LINEAGE, 2),
        ("within 5 seconds", auth_credentials.REMEMBER_SECONDS, 5.0),
        ("60 a minute from one address | 429, to wrong ones alone", auth_credentials.WRONG_KEYS_PER_MINUTE, 60),
        ("60 a minute from one address | 429, to wrong ones alone", auth_credentials.MINUTE, 60.0),
        ("names of a run's metrics | 10,000", metric_names.MAX_NAMES, 10_000),
        ("streams of a run | 10,000", ingestion.MAX_STREAMS, 10_000),
    ],
)
def test_a_number_that_the_page_on_access_promises_is_the_codes(promise: str, found: object, expected: object) -> None:
    assert promise in ACCESS
    assert found == expected


def test_the_last_use_of_a_key_or_login_is_written_down_once_a_minute_at_most() -> None:
    """More often would be a transaction for each request."""
    assert auth_credentials.NOTE_USE_EVERY == sessions.NOTE_SEEN_EVERY == timedelta(minutes=1)


def test_a_way_back_from_the_organisations_login_is_kept_for_ten_minutes() -> None:
    assert timedelta(minutes=10) == sessions.ATTEMPT_LIVES


def test_the_organisations_login_has_ten_seconds_to_answer_and_its_clock_may_be_a_minute_off() -> None:
    assert (login_provider.SECONDS, login_provider.LEEWAY_SECONDS) == (10.0, 60)
