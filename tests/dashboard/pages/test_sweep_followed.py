"""The card of a sweep's page with the runs that are held against it."""

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from dashboard_callbacks import Callbacks
from fakes_api import FakeApi
from fakes_sweeps import SWEEPS
from noisescale_dashboard.answers.common import Interval
from noisescale_dashboard.answers.sweeps import FollowedRun, Sweep
from noisescale_dashboard.sweeps import followed

SWEEP = Sweep(
    "00000000-0000-4000-9000-000000000001", "demo", "digits", "Runs of digits", "sweep", "2026-11-20T13:00:00Z"
)
VALUE = FollowedRun("a", "ramped, seed 3", "r-1", 290.0, 96.0, Interval(2.11, 1.6, 2.8, 0.95))
BOUND = FollowedRun("b", "far above", "r-2", 98.0, 96.0, Interval(None, None, 0.07, 0.95))
NOTHING = FollowedRun("c", "too slow", "r-3", 900.0, 96.0, None, "Its learning rate at the target, 0.03, is too small.")
FROM_ELSEWHERE = FollowedRun("d", "of another server", kappa=Interval(2.0, 1.0, 4.0, 0.95))


def said(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=lambda one: one.to_plotly_json())


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (VALUE, ("ramped, seed 3", "/runs/r-1", "290", "2.11", "1.60 – 2.80")),
        (BOUND, ("far above", "98", "a bound", "below 0.0700")),
        (NOTHING, ("too slow", "900", "says nothing", "0.03, is too small.")),
        (FROM_ELSEWHERE, ("of another server", "–", "2.00", "1.00 – 4.00")),
    ],
    ids=["a value", "a bound", "nothing", "imported"],
)
def test_a_row_says_kappa_the_bound_that_is_left_or_why_there_is_none(run: FollowedRun, words: tuple[str, ...]) -> None:
    shown = said(followed.changes(replace(SWEEP, followed=(run,)))["sweep-followed.children"])

    for word in words:
        assert word in shown


def test_without_such_runs_there_is_no_card() -> None:
    assert followed.changes(SWEEP) == {"sweep-followed.children": None}


async def test_the_page_of_a_sweep_has_the_card(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.sweeps = (replace(SWEEPS[0], followed=(asdict(VALUE), asdict(NOTHING))),)
    asked = {
        "sweep-view.data": {"target": None, "regimes": "fit"},
        "sweep-id.data": SWEEPS[0].id,
        "narrow.data": False,
    }

    changed = await callbacks.post("sweep-figures.data", asked)

    card = said(changed["sweep-followed"]["children"])
    assert followed.TITLE in card
    assert "ramped, seed 3" in card
    assert "says nothing" in card
