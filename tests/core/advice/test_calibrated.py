import math

import pytest

from noisescale_core.advice.evidence.evidence import Measured
from noisescale_core.advice.evidence.kappa import UNCALIBRATED, Kappa
from noisescale_core.advice.parts.parts import RunSoFar
from noisescale_core.advice.question import Question
from noisescale_core.advice.recommendation import recommend
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate, State

SAID = "Calibrated here on 3 sweeps: κ 0.97, ×/÷ 1.3."
CALIBRATED = Kappa(log_mean=math.log(0.97), log_sd=math.log(1.3), measurements=3, said=SAID)
NO_ERROR = NoiseScaleEstimate(
    State.RESOLVED, 1000.0, 999.999, 1000.001, 0.95, 7.0, None, None, 64, 16, 1.0, 0.1, 0.001, 0.0001
)


def run(batch_size):
    return RunSoFar(noise_scale=NO_ERROR, batch_size=batch_size, optimizer="SGD", example="image", unit="images")


def test_the_critical_batch_is_kappa_times_the_noise_scale_with_the_spread_of_kappa():
    answer = recommend(run(256.0), Measured(CALIBRATED))

    critical, reach = answer.critical_batch, 1.3**1.959964
    # a quarter of the plan stands for one that nobody has said, and κ of a sweep is of the run's average
    assert critical.value == pytest.approx(970 * math.exp(0.22 - 0.27), rel=0.02)
    assert critical.high == pytest.approx(critical.value * reach, rel=0.02)
    assert critical.low == pytest.approx(critical.value / reach, rel=0.02)


def test_what_calibrates_is_said_in_place_of_the_caution():
    answer = recommend(run(256.0), Measured(CALIBRATED))

    assert "uncalibrated" not in {caution.code for caution in answer.warnings}
    assert (answer.calibration.state, answer.calibration.measurements) == ("calibrated", 3)
    assert answer.calibration.text == SAID
    assert answer.calibration.kappa.value == pytest.approx(0.97)
    assert answer.calibration.kappa.high == pytest.approx(0.97 * 1.3**1.959964, rel=1e-4)


def test_a_good_batch_is_kept_once_it_is_calibrated_and_not_before():
    calibrated, guessed = (recommend(run(1000.0), Measured(kappa)) for kappa in (CALIBRATED, UNCALIBRATED))

    assert (calibrated.decision, calibrated.headline) == ("keep", "Keep 1,000")
    assert (guessed.decision, guessed.headline) == ("probably_increase", "Try a larger batch: 2,048")
    assert guessed.odds.present_regret > 0.125 > calibrated.odds.present_regret


@pytest.mark.parametrize(
    ("batch_size", "decision", "words"),
    [(400.0, "probably_increase", "Try twice the batch first"), (700.0, "keep_for_now", "half and twice the batch")],
)
def test_a_calibrated_run_that_is_not_sure_is_not_told_to_calibrate(batch_size, decision, words):
    wide = Kappa(log_mean=0.0, log_sd=math.log(3.0), measurements=1, said="Calibrated here on 1 branch.")

    answer = recommend(run(batch_size), Measured(wide))

    assert answer.decision == decision
    assert words in answer.next_step
    assert "sweep" not in answer.next_step
    assert answer.odds.assumes == wide.said


def test_nothing_said_and_no_preference_for_either_are_the_same_question():
    stated, unstated = (
        recommend(run(32.0), Measured(CALIBRATED), wish) for wish in (Question(preference=0.5), Question())
    )

    assert stated == unstated
    assert stated.exchange_rate.examples_per_step == pytest.approx(stated.critical_batch.value)


def test_a_preference_moves_its_price_with_the_critical_batch_so_its_batch_has_the_whole_error():
    preferred, at_a_price = (
        recommend(run(32.0), Measured(CALIBRATED), wish)
        for wish in (Question(preference=0.5), Question(examples_per_step=970.0))
    )

    critical = preferred.critical_batch
    assert (preferred.interval.low, preferred.interval.high) == pytest.approx((critical.low, critical.high))
    assert at_a_price.interval.high == pytest.approx(math.sqrt(970 * critical.high))
    assert at_a_price.interval.low == pytest.approx(math.sqrt(970 * critical.low))


def test_where_the_price_is_assumed_the_answer_says_so_and_what_others_would_take():
    silent, split, priced, thrifty = (
        recommend(run(32.0), Measured(CALIBRATED), wish)
        for wish in (Question(), Question(preference=0.5), Question(examples_per_step=10.0), Question(preference=0.2))
    )

    assert [[caution.code for caution in one.warnings] for one in (silent, split, priced, thrifty)] == [
        ["no_price"], ["no_price"], [], [],
    ]  # fmt: skip
    assert "time and data matter equally" in silent.warnings[0].text
    assert [one.preference for one in silent.otherwise] == [0.2, 0.8]
    assert silent.otherwise[0].batch_size == thrifty.recommended_batch_size < silent.recommended_batch_size
    assert silent.otherwise[1].batch_size > silent.recommended_batch_size
    assert priced.otherwise == thrifty.otherwise == ()
