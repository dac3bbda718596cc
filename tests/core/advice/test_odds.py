"""A run is decided by its odds and what is at stake, from all that has been measured; what is wrong decides nothing."""

import math
import re

import pytest

from noisescale_core.advice.parts.known_noise_scale import KnownNoiseScale
from noisescale_core.advice.parts.parts import RateOff
from noisescale_core.advice.question import Question
from noisescale_core.advice.recommendation import decide, recommend
from noisescale_core.estimators.belief import Belief
from noisescale_core.estimators.divergence import Divergence
from noisescale_core.estimators.flags import Flags
from noisescale_core.estimators.uncertainty import Reason, State
from plain_runs import noise_scale, run, unresolved

BALANCED = Question()


def test_a_batch_far_below_is_to_be_raised_though_the_interval_reaches_to_its_other_side():
    answer = recommend(run(batch_size=32), asked=BALANCED)

    assert answer.decision == "increase"
    assert answer.headline == "Raise the batch to 1,536"
    assert answer.odds.probability > 0.8
    assert answer.interval.low < 32 < answer.interval.value
    assert answer.learning_rate.recommended > 0.1


def test_a_batch_far_above_is_to_be_lowered_though_the_interval_reaches_to_its_other_side():
    answer = recommend(run(batch_size=65_536), asked=BALANCED)

    assert answer.decision == "decrease"
    assert answer.headline == "Lower the batch to 4,096"
    assert answer.odds.probability > 0.8
    assert answer.interval.high > 65_536 > answer.interval.value
    assert answer.learning_rate.recommended < 0.1


def test_an_uncalibrated_guess_near_the_batch_is_a_guess_and_says_a_first_step():
    answer = recommend(run(batch_size=512, steps_done=1000), asked=BALANCED)

    assert answer.decision == "probably_increase"
    assert answer.headline == "Try a larger batch: 2,048"
    assert 0.6 <= answer.odds.probability < 0.8
    assert answer.next_step.startswith("Try twice the batch first, and look again at step 1,500.")
    assert answer.recommended_batch_size == 2048
    assert answer.warnings[0].code == "uncalibrated"


def test_an_uncalibrated_guess_at_the_batch_keeps_it_for_now_and_says_what_would_settle_it():
    answer = recommend(run(batch_size=2000, steps_done=1000), asked=BALANCED)

    assert (answer.decision, answer.headline) == ("keep_for_now", "Keep 2,000 for now")
    assert answer.odds.probability < 0.6
    assert "run a small sweep" in answer.next_step
    assert f"save {100 * answer.odds.regret / (1 + answer.odds.regret):.0f} % on average" in answer.next_step


def test_the_odds_are_said_as_the_answer_holds_them():
    answer = recommend(run(batch_size=256), asked=BALANCED)

    odds = answer.odds
    assert answer.reason.startswith(
        "The noise scale is 3.9 × the batch of 256 images; the critical batch is 1,700 images"
    )
    assert answer.reason.endswith(
        f"1,536 is cheaper with a probability of {math.floor(100 * odds.probability)} %: it saves "
        f"{100 * odds.saving:.0f} % of the cost on average, and in the worst case of 20 it costs "
        f"{100 * odds.worst_case:.0f} % more."
    )


TOO_LOW, TOO_HIGH = RateOff(7.1, 2.4, 21.5), RateOff(0.14, 0.05, 0.42)


@pytest.mark.parametrize(
    ("batch_size", "rate_off", "said"),
    [
        (
            65_536,
            TOO_HIGH,
            "The present rate is 7.1 × [2.38, 20] the best one. So far above it the noise scale is smaller",
        ),
        (512, TOO_LOW, "The best rate is 7.1 × [2.4, 21.5] the present one. So far below it the noise scale is"),
    ],
)
def test_a_change_that_a_far_off_rate_makes_look_good_waits_for_the_rate(batch_size, rate_off, said):
    one = run(batch_size=batch_size, steps_done=1000, rate_off=rate_off)

    answer, row = recommend(one, asked=BALANCED), decide(one, asked=BALANCED)

    assert (answer.decision, answer.headline) == ("keep_for_now", "Set the learning rate first")
    assert answer.reason.startswith(said)
    assert answer.short_reason.endswith("one: the batch comes after it.")
    assert answer.next_step.startswith("Set it about 7.1 × ")
    assert (answer.odds, answer.sureness, answer.effect) == (None, None, None), "they are of a rate near the best one"
    assert (answer.learning_rate, answer.rescaling, answer.schedule) == (None, None, None)
    assert (row.decision, row.reason) == (answer.decision, answer.reason)
    assert (row.probability, row.saving) == (None, None)


@pytest.mark.parametrize(
    ("batch_size", "rate_off"), [(32, TOO_LOW), (32, TOO_HIGH), (512, TOO_HIGH), (65_536, TOO_LOW)]
)
def test_a_change_that_holds_at_a_far_off_rate_is_said_at_once(batch_size, rate_off):
    one = {"batch_size": batch_size, "steps_done": 1000}

    assert recommend(run(**one, rate_off=rate_off), asked=BALANCED) == recommend(run(**one), asked=BALANCED)


def test_a_batch_that_breaks_a_limit_does_not_wait_for_the_rate():
    devices = Question(num_devices=16, examples_per_device=64, max_micro_batches=1)

    answer = recommend(run(batch_size=65_536, rate_off=TOO_HIGH), asked=devices)

    assert answer.decision == "decrease"


def test_a_row_of_a_table_says_what_the_card_says():
    for batch_size in (32, 256, 1000, 65_536):
        row, card = decide(run(batch_size=batch_size)), recommend(run(batch_size=batch_size))

        assert (row.decision, row.batch_size, row.reason) == (card.decision, card.recommended_batch_size, card.reason)
        assert (row.low, row.high) == (card.interval.low, card.interval.high)
        assert (row.probability, row.saving) == (card.odds.probability, card.odds.saving)


@pytest.mark.parametrize("z", [3.0, 6.3])
def test_a_tentative_window_far_away_is_decided_by_its_odds(z):
    tentative = noise_scale(state=State.TENTATIVE, z=z, updates_needed=178)

    answer = recommend(run(batch_size=2, estimate=tentative), asked=BALANCED)

    resolved = recommend(run(batch_size=2), asked=BALANCED)
    assert (answer.decision, answer.headline) == ("increase", "Raise the batch to 768")
    assert (answer.odds, answer.reason) == (resolved.odds, resolved.reason)
    assert answer.noise_scale.state == "tentative"
    assert answer.next_steps[0].steps == 178


def test_an_unresolved_window_is_decided_by_all_looks_of_the_run():
    looks = Belief.of_interval(1000.0, 800.0, 1300.0, 0.95)

    answer = recommend(run(batch_size=32, estimate=unresolved(), known=KnownNoiseScale(looks)), asked=BALANCED)

    assert answer.decision == "increase"
    assert answer.odds == recommend(run(batch_size=32), asked=BALANCED).odds
    assert answer.reason.startswith("By all steps so far the noise scale is 1,000 images (800 – 1,300)")


def test_looks_that_show_no_gradient_are_told_as_the_bound_that_they_are_and_raise_a_small_batch():
    none_shown = Belief(math.log(2000.0), 0.1, (1 / 130,) * 130)

    answer = recommend(run(batch_size=32, estimate=unresolved(), known=KnownNoiseScale(none_shown)), asked=BALANCED)

    assert answer.decision == "increase"
    assert answer.reason.startswith("By all steps so far the noise scale is above 2,600 images; ")
    assert answer.recommended_batch_size < 32 * 1000


@pytest.mark.parametrize(
    "changes",
    [
        {"flags": Flags.DIFFERENT_SMALL_BATCHES},
        {"flags": Flags.REPEATED_RANKS},
        {"estimate": unresolved(None, Reason.NO_ESTIMATES, None, None), "reason": "duplicated_small_batches"},
        {"estimate": unresolved(None, Reason.TRACE_COV_NOT_POSITIVE, None, None)},
        {"estimate": unresolved(None, Reason.TRACE_COV_OF_ROUNDING, None, None)},
        {"batch_size": None},
        {"divergence": Divergence(step=3, loss=True, gradients=False)},
    ],
    ids=["places differ", "repeated ranks", "duplicated", "not positive", "of rounding", "no batch", "diverged"],
)
def test_looks_of_a_measurement_that_is_wrong_decide_nothing(changes):
    looks = Belief.of_interval(1000.0, 800.0, 1300.0, 0.95)

    now = run(**({"batch_size": 32, "known": KnownNoiseScale(looks)} | changes))
    answer = recommend(now, asked=BALANCED)

    assert answer.decision == decide(now).decision == "insufficient_evidence"
    assert answer.recommended_batch_size is None
    assert answer.odds is None
    assert answer.effect is None
    assert "so far from any run's" not in answer.reason
    assert answer.next_step


@pytest.mark.parametrize("has_ended", [False, True])
@pytest.mark.parametrize("flag", [Flags.DIFFERENT_SMALL_BATCHES, Flags.REPEATED_RANKS])
def test_what_is_next_after_a_measurement_that_is_wrong_is_to_mend_it(flag, has_ended):
    """A resolved run was told that it had ended before its noise scale was resolved."""
    answer = recommend(run(batch_size=32, flags=flag, has_ended=has_ended), asked=BALANCED)

    assert answer.decision == "insufficient_evidence"
    assert "resolved" not in answer.next_step
    assert "Keep training" not in answer.next_step
    assert ("sampler" in answer.next_step) == (flag is Flags.REPEATED_RANKS)


@pytest.mark.parametrize("batch_size", [512, 1500])
@pytest.mark.parametrize("steps_done", [0, 9, 33, 1001])
def test_the_step_to_look_again_at_is_a_whole_one_and_to_come(batch_size, steps_done):
    answer = recommend(run(batch_size=batch_size, steps_done=steps_done), asked=BALANCED)

    step = re.search(r"ook again at step (\S*\d)", answer.next_step)[1].replace(",", "")
    assert step.isdigit()
    assert steps_done < int(step) <= 1.6 * steps_done + 2


def test_a_batch_that_is_the_best_guess_is_not_compared_with_itself():
    answer = recommend(run(batch_size=2048.0), asked=BALANCED)

    assert answer.recommended_batch_size == answer.current_batch_size == 2048
    assert (answer.decision, answer.effect) == ("keep_for_now", None)
    assert "Of all batches 2,048 costs least on average; it may cost " in answer.reason
    assert "probability" not in answer.reason


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"optimizer": "AdamW"}, "by momentum or Adam"),
        ({"optimizer": "SGD", "momentum": 0.9}, "by momentum or Adam"),
        ({"optimizer": "SGD", "momentum": 0.0}, "by plain SGD"),
        ({"optimizer": "SGD"}, "by any optimizer"),
        ({"optimizer": "Lion"}, "by any optimizer"),
    ],
)
def test_the_odds_say_of_which_optimizers_they_are(changes, said):
    odds = recommend(run(batch_size=32, **changes), asked=BALANCED).odds

    assert odds.assumes.startswith(f"κ as in other tasks {said} with a quarter of the plan done")
