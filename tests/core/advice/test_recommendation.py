import math

import pytest

from advised_runs import KNOWN
from noisescale_core.advice.effects import waste
from noisescale_core.advice.evidence.critical_belief import USUAL_LOG_SD
from noisescale_core.advice.evidence.evidence import Measured
from noisescale_core.advice.parts.flags import notices
from noisescale_core.advice.parts.numbers import number
from noisescale_core.advice.parts.parts import Interval, SpentPoint
from noisescale_core.advice.question import Question
from noisescale_core.advice.recommendation import decide, recommend, round_batch
from noisescale_core.estimators.flags import Flags
from noisescale_core.estimators.uncertainty import Reason
from noisescale_core.theory.expected_cost import least_expected_cost
from noisescale_core.theory.prices import worth_examples
from plain_runs import noise_scale, run, unresolved

BALANCED = Question()


def ends_of(interval):
    return [interval.value, interval.low, interval.high]


def test_what_changes_the_worth_of_advice_is_said_before_anything_else():
    flags = Flags.HETEROGENEOUS_RANKS | Flags.COUPLED_EXAMPLES | Flags.WEIGHTING_MISMATCH | Flags.LAYER_NORM_PROXY

    answer = recommend(run(flags=flags | Flags.PARTIAL_GRADIENTS | Flags.COMPRESSED_GRADIENT), asked=BALANCED)

    codes = [caution.code for caution in answer.warnings]
    first = ["heterogeneous_ranks", "weighting_mismatch", "coupled_examples", "layer_norm_proxy"]
    assert codes == [*first, "uncalibrated", "no_price"]


def test_small_batches_that_are_all_alike_are_called_a_bug():
    nothing = unresolved(low=None, reason=Reason.NO_ESTIMATES, z=None, updates_needed=None)

    answer = recommend(run(estimate=nothing, reason="duplicated_small_batches"), asked=BALANCED)

    assert answer.headline == "Measurement needs a look"
    assert (
        answer.reason == "All small batches of a step have the same gradient: the same examples in each, or no noise."
    )
    assert answer.next_step.startswith("Give each rank its own sampler or seed")


def test_a_run_without_a_signal_is_promised_no_number_of_steps():
    answer = recommend(run(estimate=unresolved(reason=Reason.NO_SIGNAL_YET)), asked=BALANCED)

    sure = "The run has too few measured steps to be sure that there is a gradient."
    assert answer.reason == f"{sure} The noise scale is above 650 images."
    assert "900" not in answer.next_step


def test_every_notice_has_a_way_out():
    texts = [notice.text for notice in notices(sum(Flags))]

    assert len(texts) == 11
    assert all(text.endswith(".") and any(mark in text for mark in (": ", "; ")) for text in texts)


def test_the_interval_holds_the_published_spread_and_at_a_price_half_of_it_on_the_log_scale():
    exact = noise_scale(low=999.999, high=1000.001)

    answer, at_a_price = (
        recommend(run(estimate=exact), asked=one) for one in (BALANCED, Question(examples_per_step=500))
    )

    # together with what is usual
    log_sd = 1 / math.hypot(1 / (0.87 * math.log(10)), 1 / USUAL_LOG_SD)
    critical = answer.critical_batch
    assert math.log(critical.high / critical.low) == pytest.approx(2 * 1.959964 * log_sd, rel=0.01)
    assert (answer.interval.low, answer.interval.high) == (critical.low, critical.high)
    ends = [math.sqrt(500 * one) for one in (critical.low, critical.high)]
    assert [at_a_price.interval.low, at_a_price.interval.high] == pytest.approx(ends)
    assert answer.statistical_interval.high == pytest.approx(answer.statistical_interval.low, rel=2e-3)


def test_an_unresolved_noise_scale_gives_no_number_but_its_lower_bound_speaks():
    answer = recommend(run(batch_size=256, estimate=unresolved()), asked=BALANCED)

    assert answer.decision == "insufficient_evidence"
    assert answer.recommended_batch_size is None
    assert answer.interval is None
    assert answer.reason == "The noise scale is above 650 images; no upper bound can be given."
    assert answer.effect == "The batch of 256 is not too large."
    assert "900" in answer.next_step


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"batch_size": None}, "batch size is unknown"),
        (
            {"estimate": unresolved(None, Reason.NO_ESTIMATES, None, None), "reason": "one_small_batch"},
            "one small batch",
        ),
        ({"estimate": unresolved(None, Reason.NO_ESTIMATES, None, None)}, "No step has an estimate"),
        ({"estimate": unresolved(None, Reason.NO_ESTIMATES, None, None), "batch_size": None}, "No measurements yet"),
        ({"estimate": unresolved(None, Reason.TOO_FEW_UPDATES, None, None)}, "the first estimate takes 8"),
        ({"estimate": unresolved(None, Reason.TRACE_COV_NOT_POSITIVE, None, None)}, "tr Σ is not positive"),
        ({"estimate": unresolved(None)}, "cannot be told from noise"),
    ],
)
def test_what_is_missing_is_said(changes, words):
    answer = recommend(run(**changes), asked=BALANCED)

    assert answer.decision == "insufficient_evidence"
    assert words in answer.reason
    assert answer.next_step


def test_a_price_moves_the_best_batch_by_its_square_root():
    now, known = run(steps_done=1, planned_steps=100), Measured(KNOWN)
    cheap_steps, dear_steps = (recommend(now, known, Question(examples_per_step=rate)) for rate in (10.0, 40.0))

    assert cheap_steps.interval.value == pytest.approx(math.sqrt(10 * cheap_steps.critical_batch.value), rel=0.02)
    assert dear_steps.interval.value == pytest.approx(2 * cheap_steps.interval.value, rel=0.02)
    assert cheap_steps.exchange_rate.examples_per_step == 10
    assert cheap_steps.preference is None


@pytest.mark.parametrize("rate", [10.0, 1e5])
def test_the_less_is_known_the_further_a_batch_stays_from_what_the_estimate_alone_would_choose(rate):
    answer = recommend(run(), asked=Question(examples_per_step=rate))

    alone = math.sqrt(rate * answer.critical_batch.value)
    assert answer.interval.value == least_expected_cost(Measured().critical(run()).belief, worth_examples(rate))
    # towards the price: it is known, and the critical batch is not
    assert 0.05 < math.log(alone / answer.interval.value) / math.log(alone / rate) < 0.5


@pytest.mark.parametrize("wish", [Question(preference=1.0), Question(examples_per_step=-1.0)])
def test_a_wish_out_of_range_is_refused(wish):
    with pytest.raises(ValueError, match="got"):
        decide(run(), asked=wish)


def test_predictions_are_the_trade_off_at_the_critical_batch_and_carry_the_model_error():
    answer = recommend(run(batch_size=32), asked=BALANCED)

    steps, critical = answer.predicted.steps_factor, answer.critical_batch.value
    assert steps.value == pytest.approx((1 + critical / 1536) / (1 + critical / 32))
    assert steps.low < steps.value < steps.high
    assert answer.predicted.examples_factor.value == pytest.approx(steps.value * 1536 / 32)


def test_efficiencies_of_the_present_batch_come_with_the_statistical_interval():
    answer = recommend(run(batch_size=1000), asked=BALANCED)

    now = answer.example_efficiency.now
    assert (now.low, now.value, now.high) == pytest.approx((800 / 1800, 0.5, 1300 / 2300))
    assert answer.step_efficiency.now.value == pytest.approx(0.5)


def test_adam_follows_the_square_root_and_language_models_get_the_caution():
    answer = recommend(run(batch_size=32, optimizer="AdamW", unit="tokens"), asked=BALANCED)

    gains = [(1 + b / 32) / (1 + b / answer.recommended_batch_size) for b in ends_of(answer.critical_batch)]
    rate = answer.learning_rate
    assert ends_of(Interval(rate.recommended, rate.low, rate.high)) == pytest.approx(
        [0.1 * math.sqrt(g) for g in gains]
    )
    assert "adam_language_model" in [caution.code for caution in answer.warnings]


def test_a_change_of_display_unit_changes_no_recommendation():
    images, tokens = recommend(run(), asked=BALANCED), recommend(run(unit="tokens"), asked=BALANCED)

    assert images.recommended_batch_size == tokens.recommended_batch_size
    assert images.interval == tokens.interval


def test_waste_is_the_share_that_smaller_batches_would_not_have_needed():
    spent = [
        SpentPoint(examples=1000, batch_size=100, value=100, low=50, high=300),
        SpentPoint(examples=3000, batch_size=100, value=300, low=200, high=400),
        SpentPoint(examples=4000, batch_size=100, value=None, low=10, high=None),
    ]

    answer = waste(spent, usd_spent=80.0)

    assert answer.examples.value == pytest.approx(1000 * 0.5 + 3000 * 0.25)
    assert answer.fraction.value == pytest.approx(1250 / 4000)
    assert answer.fraction.low < answer.fraction.value < answer.fraction.high
    assert answer.covered == 0.5
    assert answer.usd.value == pytest.approx(25.0)


def test_no_bounded_stretch_means_no_waste_number():
    assert waste([SpentPoint(1000, 100, None, 10, None)], None) is None


@pytest.mark.parametrize(
    ("batch", "rounded"), [(0.3, 1), (1, 1), (2.6, 3), (44, 48), (1490, 1536), (1000, 1024), (1270, 1536), (6.9, 6)]
)
def test_batches_round_to_a_power_of_two_or_three_times_one(batch, rounded):
    assert round_batch(batch) == rounded


@pytest.mark.parametrize(
    ("value", "text"), [(1490.4, "1,490"), (44.21, "44.2"), (0.0312, "0.0312"), (7, "7"), (123456, "123,000"), (0, "0")]
)
def test_numbers_have_three_significant_digits(value, text):
    assert number(value) == text


@pytest.mark.parametrize("value", [5e-324, 1e-300, 1e160, 1e300, 1.7e308])
@pytest.mark.parametrize("batch_size", [5e-324, 1.0, 1e300])
@pytest.mark.parametrize("preference", [0.001, 0.5, 0.999])
def test_no_finite_noise_scale_is_too_absurd_for_an_answer(value, batch_size, preference):
    estimate = noise_scale(value=value, low=value * 0.9, high=value)

    answer = recommend(run(batch_size=batch_size, estimate=estimate), asked=Question(preference=preference))

    assert answer.reason
    assert answer.interval is None or math.isfinite(answer.interval.high)


def test_a_batch_in_use_is_never_rounded_and_the_larger_of_the_two_is_named_first():
    answer = recommend(run(batch_size=65_537), asked=BALANCED)

    assert answer.reason.startswith("The batch of 65,537 images is 66 × the noise scale")
