"""The overview: its answer, what it sums, its events, and what it says when there is nothing."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import fakes_api
from dashboard_callbacks import Callbacks
from fakes_advice import recommendation_json
from fakes_api import FakeApi
from fakes_runs import RUNS, FakeRun, run_json, series_json
from noisescale_dashboard.answers.advice import recommendation
from noisescale_dashboard.answers.common import run
from noisescale_dashboard.answers.series import ShortSeries, noise_scale_series
from noisescale_dashboard.overview import facts as overview_facts
from noisescale_dashboard.overview.events import age_words, earlier, happenings
from noisescale_dashboard.overview.judged import Judged, Totals, headline, hours_to_gain, lede, usd_to_save


def view(**changes: Any) -> dict[str, Any]:
    asked = {"scope": "running", "pref": "0.5", "project": None, **changes}
    return {"overview-view.data": asked, "overview-shown.data": None, "narrow.data": False}


def judged(fake: FakeRun) -> Judged:
    return Judged(run(run_json(fake)), recommendation(recommendation_json(fake, 0.5)))


RAISE = replace(RUNS[0], is_calibrated=True)
LOWER = replace(RUNS[3], is_calibrated=True)


async def test_the_first_sentence_says_which_runs_should_change(callbacks: Callbacks) -> None:
    changed = await callbacks.post("overview-figures.data", view())

    assert changed["overview-head"]["children"] == "4 of 5 running or silent jobs should change their batch size"
    assert changed["overview-lede"]["children"] == "3 too small · 1 too large · 1 unsure"


async def test_the_scope_project_and_order_are_the_servers(callbacks: Callbacks, fake_api: FakeApi) -> None:
    await callbacks.post("overview-figures.data", view(scope="7d", project="demo"))

    asked = fake_api.requests[0].query_params
    since = datetime.now(UTC) - datetime.fromisoformat(asked["updated_after"])
    assert (asked["project"], asked["sort"]) == ("demo", "-misfit")
    assert abs(since - timedelta(days=7)) < timedelta(minutes=1)
    assert "status" not in asked


async def test_running_means_running_or_silent(callbacks: Callbacks, fake_api: FakeApi) -> None:
    await callbacks.post("overview-figures.data", view())

    assert fake_api.requests[0].query_params.getlist("status") == ["running", "silent"]


async def test_a_preference_moves_what_is_recommended(callbacks: Callbacks) -> None:
    balanced = await callbacks.post("overview-figures.data", view())
    hasty = await callbacks.post("overview-figures.data", view(pref="0.8"))

    def best(changed: dict[str, Any]) -> list[float]:
        columns = dict(changed["overview-figures"]["data"]["misfit"]["layout"]["meta"]["columns"])
        return [batch for batch in columns["recommended batch (examples)"] if batch is not None]

    assert sum(best(hasty)) > sum(best(balanced))


@pytest.fixture
def without_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """No run has changed since the last call."""
    monkeypatch.setattr(fakes_api, "run_json", lambda fake: {**run_json(fake), "updated_at": "2026-11-20T12:00:00Z"})


@pytest.mark.usefixtures("without_news")
async def test_another_preference_leaves_the_panels_of_the_same_runs_alone(callbacks: Callbacks) -> None:
    first = await callbacks.post("overview-figures.data", view())
    known = {"overview-shown.data": first["overview-shown"]["data"]}

    again = await callbacks.post("overview-figures.data", {**view(pref="0.9"), **known})

    assert "misfit" in again["overview-figures"]["data"]
    assert "overview-shown" not in again


@pytest.mark.usefixtures("without_news")
async def test_where_no_run_has_news_only_the_list_is_asked_for(callbacks: Callbacks, fake_api: FakeApi) -> None:
    shown = (await callbacks.post("overview-figures.data", view()))["overview-shown"]["data"]
    body = callbacks.payload("overview-figures.data", {**view(), "overview-shown.data": shown})
    fake_api.requests.clear()

    await callbacks.client.post("/_dash-update-component", json={**body, "changedPropIds": ["overview-pulse.data"]})

    assert fake_api.paths() == ["/api/v1/runs"]


async def test_panels_and_events_come_for_the_runs_that_are_shown(callbacks: Callbacks, fake_api: FakeApi) -> None:
    shown = (await callbacks.post("overview-figures.data", view()))["overview-shown"]["data"]

    changed = await callbacks.post("overview-panels.data", {"overview-shown.data": shown, "narrow.data": False})

    panels = changed["overview-panels"]["data"]["small"]["layout"]["meta"]["columns"]
    running = [run.name for run in fake_api.runs if run.status == "running"]
    assert set(dict(panels)["run"]) >= set(running[:5])
    assert "Batch raised" in str(changed["overview-events"]["children"])
    assert "noise scale" in changed["overview-small-sentence"]["children"].lower()


async def test_panels_and_events_that_never_came_say_so(callbacks: Callbacks, fake_api: FakeApi) -> None:
    shown = (await callbacks.post("overview-figures.data", view()))["overview-shown"]["data"]
    fake_api.failing_ends = ("/sparklines",)

    changed = await callbacks.post("overview-panels.data", {"overview-shown.data": shown, "narrow.data": False})

    assert "not loaded: Service unavailable" in str(changed["overview-events"]["children"])
    assert changed["overview-small-card-subtitle"]["children"] == "not loaded: Service unavailable"


async def test_panels_stay_where_the_api_does_not_answer(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.failing = True
    stamps = {"stamps": {RUNS[0].id: ""}}
    known = {"overview-shown.data": stamps, "narrow.data": False, "overview-panels.data": {"small": {}}}

    answer = await callbacks.client.post(
        "/_dash-update-component", json=callbacks.payload("overview-panels.data", known)
    )

    assert answer.status_code == 204


async def test_a_run_that_has_diverged_is_the_first_thing_said(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.runs = (RUNS[0], replace(RUNS[1], diverged_at=101))

    changed = await callbacks.post("overview-figures.data", view())
    shown = changed["overview-shown"]["data"]
    later = await callbacks.post("overview-panels.data", {"overview-shown.data": shown, "narrow.data": False})

    assert changed["overview-head"]["children"] == "1 of 2 running jobs has diverged"
    assert changed["overview-lede"]["children"].startswith("One has diverged: moe-1b3-fineweb-s7. ")
    assert "Diverged: loss or gradients not finite" in str(later["overview-events"]["children"])


async def test_where_nothing_runs_the_newest_runs_are_shown(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.runs = (RUNS[4],)

    changed = await callbacks.post("overview-figures.data", view())

    assert changed["overview-head"]["children"] == "None of 1 run is known to need another batch size"
    assert changed["overview-lede"]["children"].startswith("Nothing is running; these are the newest runs. ")
    assert RUNS[4].name in str(changed["overview-figures"]["data"])


async def test_the_newest_runs_are_those_of_the_project(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.runs = (RUNS[4],)

    await callbacks.post("overview-figures.data", view(project=RUNS[4].project))

    lists = [one for one in fake_api.requests if one.url.path.endswith("/runs")]
    assert {one.query_params.get("project") for one in lists} == {RUNS[4].project}
    assert any("status" not in one.query_params for one in lists)


async def test_a_scope_without_runs_says_where_to_look(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.runs = (RUNS[4],)

    changed = await callbacks.post("overview-figures.data", view(scope="7d", project="other"))

    assert changed["overview-head"]["children"] == "No run in the last 7 days in project other"
    assert "Last 30 days" in str(changed["overview-missing"]["children"])
    assert changed["overview-body"]["className"] == "hidden"


async def test_without_any_run_it_says_how_to_make_one(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.runs = ()

    changed = await callbacks.post("overview-figures.data", view())

    assert "import noisescale" in str(changed["overview-missing"]["children"])


async def test_a_silent_api_is_said_and_what_is_shown_stays(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.failing = True

    fresh = await callbacks.post("overview-figures.data", view())
    shown = await callbacks.post("overview-figures.data", {**view(), "overview-shown.data": {"stamps": {}}})

    assert "Training is not affected" in str(fresh["overview-missing"]["children"])
    assert "Live updates paused" in str(shown["overview-note"]["children"])
    assert "overview-figures" not in shown


def test_only_calibrated_runs_are_summed_and_the_others_are_counted_aside() -> None:
    aside = RUNS[2]

    gain = hours_to_gain([judged(RAISE), judged(aside), judged(LOWER)])

    predicted = {p.is_recommended: p.hours for p in judged(RAISE).advice.predictions.batches}  # type: ignore[union-attr]
    then = predicted[True]
    assert (gain.num_counted, gain.num_aside) == (1, 1)
    assert gain.total.value == pytest.approx(50 - then.value)  # type: ignore[operator]
    assert gain.total.low == pytest.approx(50 - then.high)  # type: ignore[operator]
    assert gain.total.high == pytest.approx(50 - then.low)  # type: ignore[operator]


def test_money_is_saved_by_lowered_batches_alone() -> None:
    save = usd_to_save([judged(RAISE), judged(LOWER)])

    assert (save.num_counted, save.num_aside) == (1, 0)
    assert save.total.value is not None
    assert save.total.value > 0


def test_without_a_calibrated_run_there_is_no_sum() -> None:
    gain = hours_to_gain([judged(RUNS[0])])

    assert gain.total.value is None
    assert (gain.num_counted, gain.num_aside) == (0, 1)


def test_a_count_of_the_runs_that_are_judged_says_of_how_many_it_is() -> None:
    """Eight that are worth a change are not eight of 23."""
    words = str(overview_facts.facts([judged(RUNS[0]), judged(RUNS[4])], 23, scope="running"))

    assert words.count("of the 2 furthest off") == 2
    counts = Totals(runs=23, silent=5, raised=7, lowered=1, likely=3, kept=9)
    of_all = str(overview_facts.facts([judged(RUNS[0]), judged(RUNS[4])], 23, scope="running", totals=counts))
    assert [word in of_all for word in ("'18'", "5 silent, not counted", "of 23", "7 raise, 1 lower; 3 probably")] == [
        True
    ] * 4
    all_of_them = str(overview_facts.facts([judged(RUNS[0]), judged(RUNS[1])], 2, scope="running"))
    assert "furthest off" not in all_of_them
    assert "silent" not in all_of_them


def test_where_more_run_than_are_judged_the_sentence_says_so() -> None:
    said = headline([judged(RUNS[0]), judged(RUNS[4])], 812, scope="running")

    assert said == "1 of the 2 furthest off, of 812 running jobs, should change its batch size"
    counts = Totals(runs=812, silent=0, raised=7, lowered=1, likely=3, kept=9)
    of_all = headline([judged(RUNS[0]), judged(RUNS[4])], 812, scope="running", totals=counts)
    assert of_all == "8 of 812 running jobs should change their batch size"
    assert lede([], counts) == "7 too small · 1 too large · 3 probably off · 792 unsure · 9 fine"


def test_none_off_is_said_without_a_promise() -> None:
    assert headline([judged(RUNS[4])], 1, scope="7d") == "None of 1 run is known to need another batch size"
    assert lede([judged(RUNS[4])]) == "1 fine"


def short(fake: FakeRun) -> ShortSeries:
    series = noise_scale_series(series_json(replace(fake, branched_at=None), points=100))
    return ShortSeries(series.points, series.events)


def test_events_are_resolved_estimates_crossings_and_changes() -> None:
    found = []
    for fake in (RUNS[0], replace(RUNS[2], status="running")):
        found += happenings(run(run_json(fake)), short(fake))

    assert {event.words for event in found} == {
        "Noise scale first resolved", "Noise scale rose above the batch", "Batch raised 256 → 512", "LR ÷3",
    }  # fmt: skip


def test_a_run_that_was_resolved_from_the_first_point_is_no_event() -> None:
    fake = replace(RUNS[1], tentative_until=0.0, batch=1)
    one, series = run(run_json(fake)), short(fake)

    assert happenings(one, series) == []


def test_a_silent_run_is_an_event() -> None:
    found = happenings(run(run_json(RUNS[2])), None)

    assert [event.words for event in found] == ["No data for a minute"]


@pytest.mark.parametrize(
    ("seconds", "words"), [(5, "just now"), (1560, "26 min ago"), (40_680, "11 h ago"), (454_000, "5 days ago")]
)
def test_ages_are_short(seconds: float, words: str) -> None:
    assert age_words(seconds) == words


def test_a_run_that_ended_before_its_first_step_says_so() -> None:
    finished = next(one for one in RUNS if one.status == "finished" and one.diverged_at is None)
    ended = run(run_json(finished) | {"last_step": None})

    assert [event.detail for event in happenings(ended, None)] == ["no step"]


def test_what_has_happened_before_is_folded_away() -> None:
    found = [event for fake in RUNS for event in happenings(run(run_json(fake)), short(fake))]

    folded = str(earlier(found, now=time.time(), after=4))

    assert len(found) > 4
    assert f"{len(found) - 4} earlier" in folded
    assert folded.count("className='what'") == len(found) - 4
    assert earlier(found, now=time.time(), after=len(found)) is None


async def test_an_empty_server_waits_for_the_first_step_and_opens_its_run(
    callbacks: Callbacks, fake_api: FakeApi
) -> None:
    fake_api.runs = ()
    empty = await callbacks.post("overview-figures.data", view())
    looking = callbacks.payload("address.pathname", {"first-run-clock.n_intervals": 1})

    waits = await callbacks.client.post("/_dash-update-component", json=looking)
    fake_api.runs = RUNS[:1]
    opened = await callbacks.post("address.pathname", {"first-run-clock.n_intervals": 2})

    assert "Waiting for the first step" in str(empty["overview-missing"]["children"])
    assert waits.status_code == 204
    assert opened["address"]["pathname"] == f"/runs/{RUNS[0].id}"


async def test_all_counts_come_from_one_request_beside_the_list(callbacks: Callbacks, fake_api: FakeApi) -> None:
    changed = await callbacks.post("overview-figures.data", view())

    asked = [path.removeprefix("/api/v1") for path in fake_api.paths()]
    assert sorted(asked) == ["/runs", "/runs/recommendations", "/runs/summary"]
    summary = next(request.query_params for request in fake_api.requests if request.url.path.endswith("summary"))
    assert (summary["by"], summary["trials"], summary.getlist("status")) == ("decision", "hide", ["running", "silent"])
    assert "1 silent, not counted" in str(changed["overview-facts"]["children"])


async def test_trials_are_left_out_unless_there_is_nothing_else(callbacks: Callbacks, fake_api: FakeApi) -> None:
    fake_api.runs = tuple(replace(run, status="finished") for run in RUNS[4:5])
    fake_api.folds = {RUNS[4].id: {"kind": "sweep", "id": "1", "name": "batches", "num_runs": 1}}

    changed = await callbacks.post("overview-figures.data", view())

    asked = [request.query_params.get("trials") for request in fake_api.requests if request.url.path == "/api/v1/runs"]
    assert asked == ["hide", "hide", None]
    assert "overview-missing" not in changed or changed["overview-missing"]["children"] is None
