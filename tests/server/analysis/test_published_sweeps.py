"""MLPerf's reference convergence points, by the same code as one's own sweeps."""

import pytest

from noisescale_server.analysis.batch_sweep.refusal import Refusal, RefusalReason
from noisescale_server.analysis.batch_sweep.sweep_fit import SweepFit
from noisescale_server.analysis.published_sweeps import published_sweeps, workloads


def outcome_of(name: str) -> SweepFit | Refusal:
    return next(sweep.outcome for sweep in published_sweeps() if sweep.workload.name == name)


def test_every_workload_is_there_with_its_points():
    found = workloads()

    assert len(found) == 20
    assert all(len(workload.points) >= 3 for workload in found)


def test_at_least_ten_workloads_are_fitted_within_8_percent():
    fits = [sweep.outcome for sweep in published_sweeps() if isinstance(sweep.outcome, SweepFit)]

    assert len(fits) >= 10
    assert max(fit.rms for fit in fits) <= 0.08


def test_the_largest_language_model_has_its_critical_batch_within_15_percent():
    critical = outcome_of("llama31_405b").critical_batch

    assert critical.value == pytest.approx(5018, rel=0.01)
    assert (critical.high - critical.low) / 2 <= 0.15 * critical.value


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cosmoflow", RefusalReason.MISFIT),
        ("sd", RefusalReason.EXAMPLES_FALL),
        ("gpt3", RefusalReason.REPEATS_DISAGREE),
        ("deepseekv3_671b", RefusalReason.ALL_ABOVE),
        ("unet3d", RefusalReason.ALL_BELOW),
    ],
)
def test_a_workload_that_cannot_be_fitted_says_why(name, reason):
    refusal = outcome_of(name)

    assert refusal.reason is reason
    assert refusal.explanation.endswith(".")
