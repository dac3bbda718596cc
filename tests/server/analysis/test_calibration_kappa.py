"""From critical batches and noise scales to κ, in numbers and words."""

import math

import pytest

from noisescale_server.analysis.calibration.calibration import UNCALIBRATED
from noisescale_server.analysis.calibration.kappa import KappaMeasurement, kappa_of, optimizer_kind
from noisescale_server.analysis.calibration.levels import Observation
from noisescale_server.analysis.calibration.measurement import observed_kappa, typical_noise_scale
from noisescale_server.analysis.estimate import Bounds, Estimate

Z = 1.959964


def known(value: float, log_sd: float) -> Estimate:
    return Estimate(value, value * math.exp(-Z * log_sd), value * math.exp(Z * log_sd), 0.95)


def measured(log_kappa: float, kind: str = "sweep") -> KappaMeasurement:
    observation = Observation(log_kappa, log_kappa, 0.1, 4, 0.1)
    return KappaMeasurement("branch" if kind == "branch" else "sweep", observation)


def test_runs_are_averaged_on_the_log_scale_each_with_its_own_error() -> None:
    scales = [known(100.0, 0.1), known(400.0, 0.3)]

    found = typical_noise_scale(scales)

    assert found is not None
    assert found.value == pytest.approx(200.0)
    assert found.error == pytest.approx(math.hypot(0.1, 0.3) / 2)
    assert found.squares == pytest.approx(2 * math.log(2) ** 2)
    assert found.run_error == pytest.approx(math.sqrt((0.01 + 0.09) / 2))


def test_a_run_without_a_bounded_interval_does_not_count() -> None:
    scales = [known(100.0, 0.1), Estimate(1e6, 10.0, None, 0.95), Estimate(1e6, 0.0, 2e6, 0.95)]

    found = typical_noise_scale(scales)

    assert found is not None
    assert (found.value, found.num_runs, found.squares) == pytest.approx((100.0, 1, 0.0))
    assert typical_noise_scale(scales[1:]) is None


def test_kappa_has_the_errors_of_both_numbers() -> None:
    scale = typical_noise_scale([known(100.0, 0.1)])
    assert scale is not None

    found = observed_kappa(known(300.0, 0.2), scale)

    assert found is not None
    assert found.low == found.high == pytest.approx(math.log(3))
    assert found.error == pytest.approx(math.hypot(0.1, 0.2))


def test_a_refused_fit_and_a_branch_leave_an_interval_and_nothing_known_leaves_none() -> None:
    scale = typical_noise_scale([known(100.0, 0.1)])
    assert scale is not None

    above, between, nothing = (
        observed_kappa(bounds, scale)
        for bounds in (Bounds(200.0, None, 0.95), Bounds(50.0, 200.0, 0.95), Bounds(None, None, 0.95))
    )

    assert above is not None
    assert (above.low, above.high) == pytest.approx((math.log(2), math.inf))
    assert between is not None
    assert (between.low, between.high) == pytest.approx((-math.log(2), math.log(2)))
    assert nothing is None


def test_without_a_measurement_kappa_is_the_published_one() -> None:
    assert kappa_of((), ()) is UNCALIBRATED
    assert kappa_of((), ((), ())) is UNCALIBRATED


def test_the_sentence_says_where_kappa_was_measured_and_how_far_it_may_be_off() -> None:
    found = kappa_of((measured(-0.03),) * 3, ((measured(2.0),),))

    assert found.state == "calibrated"
    assert found.measurements == 3
    assert found.said == "Calibrated here on 3 sweeps: κ 0.98, ×/÷ 1.3."


@pytest.mark.parametrize(
    ("own", "others", "said"),
    [
        ((measured(0.0),), (), "Calibrated here on 1 sweep: "),
        ((measured(0.0, "branch"),) * 2, (), "Calibrated here on 2 branches: "),
        ((measured(0.0), measured(0.0, "branch")), (), "Calibrated here on 1 sweep and 1 branch: "),
        ((), ((measured(0.0),), (measured(0.0),)), "Calibrated on 2 sweeps of other tasks of this family: "),
    ],
)
def test_it_counts_sweeps_and_branches(
    own: tuple[KappaMeasurement, ...], others: tuple[tuple[KappaMeasurement, ...], ...], said: str
) -> None:
    assert kappa_of(own, others).said.startswith(said)


def test_another_task_of_the_family_is_drawn_towards_what_its_sisters_measured_but_stays_wider() -> None:
    sisters = ((measured(1.5),), (measured(1.7),), (measured(1.6),))

    own, other = kappa_of(sisters[0], sisters[1:]), kappa_of((), sisters)

    assert other.log_mean == pytest.approx(1.6, abs=0.1)
    assert own.log_sd < other.log_sd < 0.6 * UNCALIBRATED.log_sd


def test_optimizers_share_a_kappa_where_they_share_a_rule() -> None:
    kinds = [optimizer_kind(name) for name in ("SGD", "AdamW", "adam", "Lion", None)]

    assert kinds == ["sgd", "adam", "adam", "lion", ""]
