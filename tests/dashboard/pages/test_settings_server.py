"""The server on the page of settings: what is stored, and which versions answer."""

import json
from typing import Any

import pytest

from dashboard_callbacks import Callbacks
from fakes_api import FakeApi
from noisescale_dashboard.settings.server import bytes_words, table


def words(shown: Any) -> str:
    return json.dumps(shown, ensure_ascii=False, default=lambda part: part.to_plotly_json())


async def test_projects_and_versions_are_told(callbacks: Callbacks) -> None:
    changed = await callbacks.post("settings-stored.children", {"settings-stored.id": "settings-stored"})

    stored, health = words(changed["settings-stored"]), words(changed["settings-health"])
    for part in ("vision", "1,200", "3.4M", "1.5 GB", "/runs?project=vision", "860 kB"):
        assert part in stored
    for part in ("noisescale 0.1.0, answered in ", "PostgreSQL 16.4"):
        assert part in health


async def test_a_server_that_does_not_answer_is_said_in_both_cards(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.failing = True

    changed = await callbacks.post("settings-stored.children", {"settings-stored.id": "settings-stored"})

    assert "Not loaded" in words(changed["settings-stored"])
    assert "Not loaded" in words(changed["settings-health"])


@pytest.mark.parametrize(
    ("size", "said"), [(0, "0 B"), (860_000, "860 kB"), (1_536_000, "1.5 MB"), (2 * 10**12, "2 TB")]
)
def test_sizes_are_read_in_the_largest_unit(size: int, said: str) -> None:
    assert bytes_words(size) == said


def test_without_a_project_nothing_is_stored() -> None:
    assert "Nothing yet." in words(table(()))
