import math

import pytest

from noisescale_core.advice.evidence import Measured
from noisescale_core.advice.kappa import UNCALIBRATED, Kappa
from noisescale_core.advice.parts import RunSoFar
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

    reach = 1.3**1.959964
    assert answer.critical_batch.value == pytest.approx(970)
    assert answer.critical_batch.high == pytest.approx(970 * reach, rel=1e-4)
    assert answer.critical_batch.low == pytest.approx(970 / reach, rel=1e-4)
    assert answer.interval.high == pytest.approx(970 * math.sqrt(reach), rel=1e-4)


def test_what_calibrates_is_said_in_place_of_the_caution():
    answer = recommend(run(256.0), Measured(CALIBRATED))

    assert "uncalibrated" not in {caution.code for caution in answer.warnings}
    assert (answer.calibration.state, answer.calibration.measurements) == ("calibrated", 3)
    assert answer.calibration.text == SAID
    assert answer.calibration.kappa.value == pytest.approx(0.97)
    assert answer.calibration.kappa.high == pytest.approx(0.97 * 1.3**1.959964, rel=1e-4)


def test_a_good_batch_is_kept_once_it_is_calibrated():
    assert recommend(run(1000.0), Measured(CALIBRATED)).decision == "keep"
    assert recommend(run(1000.0), Measured(UNCALIBRATED)).decision == "insufficient_evidence"
    assert recommend(run(1000.0), Measured(CALIBRATED)).headline == "Keep 1,000"


def test_a_calibrated_run_that_is_not_sure_is_not_told_to_calibrate():
    wide = Kappa(log_mean=0.0, log_sd=math.log(3.0), measurements=1, said="Calibrated here on 1 branch.")

    answer = recommend(run(400.0), Measured(wide))

    assert answer.decision == "insufficient_evidence"
    assert answer.headline == "Probably raise; not sure yet"
    assert answer.reason.endswith("on either side of the present one.")
    assert "half and twice" in answer.next_step


def test_a_preference_moves_its_price_with_the_critical_batch_so_its_batch_has_the_whole_error():
    stated, unstated = (
        recommend(run(32.0), Measured(CALIBRATED), wish) for wish in (Question(preference=0.5), Question())
    )
    at_a_price = recommend(run(32.0), Measured(CALIBRATED), Question(examples_per_step=970.0))

    def reach(answer):
        return math.log(answer.interval.high / answer.interval.value)

    assert stated.interval.value == pytest.approx(unstated.interval.value)
    assert reach(stated) == pytest.approx(2 * reach(unstated), rel=1e-4)
    assert at_a_price.interval.high == pytest.approx(unstated.interval.high)
    assert [answer.exchange_rate.examples_per_step for answer in (stated, unstated)] == pytest.approx([970, 970])


def test_without_a_price_the_answer_asks_for_one():
    codes = [
        [caution.code for caution in recommend(run(32.0), Measured(CALIBRATED), wish).warnings]
        for wish in (Question(), Question(preference=0.5), Question(examples_per_step=10.0))
    ]

    assert codes == [["no_price"], [], []]
