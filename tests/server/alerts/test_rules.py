"""What is a case of a rule, and when it is told of."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from noisescale_core.estimators.flags import Flags
from noisescale_server.services.alerts import episodes
from noisescale_server.services.alerts.episodes import NEVER, Episode
from noisescale_server.services.alerts.rules import KINDS, WORDS, Kind, Rule, Standing, sentence_of

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
RUN = UUID(int=7)


def rule(kind: Kind, *, again: float = 24.0, **settings: float) -> Rule:
    return Rule(uuid4(), uuid4(), kind, settings, timedelta(hours=again))


def run(**known: Any) -> Standing:
    return Standing(run_id=RUN, name="big", **known)


OFF = {"batch_size": 64.0, "recommended": 256.0, "odds": 0.93}


@pytest.mark.parametrize(
    ("watches", "stands", "said"),
    [
        (rule("resolved"), run(state="resolved", value=1234.0), "The noise scale is resolved: 1,234 examples."),
        (rule("resolved"), run(state="tentative", value=1234.0), None),
        (
            rule("batch_off"),
            run(**OFF),
            "The batch of 64 examples is 4 times too small: 256 is cheaper with odds of 93 %.",
        ),
        (
            rule("batch_off"),
            run(batch_size=256.0, recommended=64.0, odds=0.93),
            "The batch of 256 examples is 4 times too large: 64 is cheaper with odds of 93 %.",
        ),
        (rule("batch_off", factor=5), run(**OFF), None),
        (rule("batch_off", odds=0.95), run(**OFF), None),
        (rule("batch_off"), run(**OFF, has_ended=True), None),
        (rule("batch_off"), run(batch_size=64.0), None),
        (
            rule("saving", usd=50),
            run(recommended=256.0, odds=0.93, usd_saving=80.5),
            "A batch of 256 examples is expected to save 80.50 USD over the rest of the plan, with odds of 93 %.",
        ),
        (rule("saving"), run(recommended=256.0, odds=0.93, usd_saving=99.9), None),
        (
            rule("stalled"),
            run(heard=NOW - timedelta(minutes=15)),
            "Nothing has come for 15 minutes, and the run has not ended.",
        ),
        (rule("stalled"), run(heard=NOW - timedelta(minutes=14, seconds=59)), None),
        (rule("stalled"), run(heard=NOW - timedelta(days=1), has_ended=True), None),
        (rule("diverged"), run(diverged_step=1_200), "Loss or gradients are not finite since step 1,200."),
        (rule("diverged"), run(), None),
        (
            rule("spool_growing"),
            run(delay=timedelta(hours=3)),
            "Records come 3.0 hours after they were made: they wait on the disk of the training host.",
        ),
        (rule("spool_growing"), run(delay=timedelta(minutes=9)), None),
        (
            rule("ranks_alike"),
            run(flags=int(Flags.REPEATED_RANKS) | 1),
            "Two ranks or more compute the same gradients: they see the same data, and the noise scale is too small.",
        ),
        (rule("ranks_alike"), run(flags=1), None),
        (
            rule("trace_cov_of_rounding"),
            run(reason="trace_cov_of_rounding"),
            "tr Σ is of the size of rounding: the small batches are all but the same, and there is no noise scale.",
        ),
        (rule("trace_cov_of_rounding"), run(reason="no_estimates"), None),
    ],
)
def test_a_rule_says_what_is_a_case_of_it(watches: Rule, stands: Standing, said: str | None) -> None:
    assert sentence_of(watches, stands, NOW) == said


def test_every_kind_has_its_case_and_its_words() -> None:
    assert set(KINDS) == set(WORDS)
    for kind in KINDS:
        assert sentence_of(rule(kind), run(), NOW) is None


def told(watches: Rule, looks: list[tuple[float, bool]]) -> list[float]:
    """Minutes at which it is told of, for looks of (minute, whether it is a case)."""
    found, stands = [], NEVER
    for minute, is_case in looks:
        stands, is_told = episodes.step(watches, stands, is_case=is_case, now=NOW + timedelta(minutes=minute))
        found += [minute] if is_told else []
    return found


class TestEpisodes:
    def test_what_lasts_is_told_of_once(self) -> None:
        assert told(rule("diverged"), [(minute, True) for minute in range(5_000)]) == [0]

    def test_a_case_has_to_last_for_as_long_as_the_rule_says(self) -> None:
        watches = rule("batch_off", minutes=30)

        assert told(watches, [(minute, True) for minute in range(60)]) == [30]
        assert told(watches, [(minute, minute % 20 != 0) for minute in range(200)]) == []

    def test_silence_says_itself_how_long_it_has_lasted(self) -> None:
        assert told(rule("stalled", minutes=30), [(0, True)]) == [0]

    def test_what_comes_again_too_soon_is_not_told_of_again(self) -> None:
        looks = [(0, True), (1, False), (2, True), (60, False), (61, True), (119, False), (121, True)]

        assert told(rule("diverged", again=1), looks) == [0, 61, 121]
        assert told(rule("diverged", again=2), looks) == [0, 121]
        assert told(rule("diverged", again=0), looks) == [0, 2, 61, 121]

    def test_a_case_that_outlasts_the_pause_is_told_of_when_it_ends(self) -> None:
        looks = [(0, True), (1, False), *((minute, True) for minute in range(2, 100))]

        assert told(rule("diverged", again=1), looks) == [0, 60]

    def test_each_time_has_a_number_of_its_own(self) -> None:
        watches = rule("diverged", again=0)
        first, _ = episodes.step(watches, NEVER, is_case=True, now=NOW)
        gone, _ = episodes.step(watches, first, is_case=False, now=NOW)
        second, _ = episodes.step(watches, gone, is_case=True, now=NOW)

        assert (first.number, gone.number, second.number) == (1, 1, 2)
        assert gone == Episode(None, False, NOW, 1)

    def test_a_rule_is_muted_until_its_time(self) -> None:
        muted = Rule(uuid4(), uuid4(), "diverged", {}, muted_until=NOW)

        assert muted.is_muted(NOW - timedelta(seconds=1))
        assert not muted.is_muted(NOW)
