"""MLPerf's reference convergence points and language models' sweeps, by the same code as one's own sweeps."""

import pytest

from noisescale_server.analysis.sweeps.fitting.refusal import Refusal, RefusalReason
from noisescale_server.analysis.sweeps.fitting.sweep_fit import SweepFit
from noisescale_server.analysis.sweeps.published import published_critical_batches, published_sweeps, workloads


def outcome_of(name: str) -> SweepFit | Refusal:
    return next(sweep.outcome for sweep in published_sweeps() if sweep.workload.name == name)


def test_every_workload_is_there_with_its_points():
    found = workloads()

    assert sum(workload.suite.startswith("MLPerf") for workload in found) == 20
    assert len(found) == 25
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
        ("sd", RefusalReason.UNDETERMINED),
        ("gpt3", RefusalReason.REPEATS_DISAGREE),
        ("deepseekv3_671b", RefusalReason.ALL_ABOVE),
        ("unet3d", RefusalReason.ALL_BELOW),
    ],
)
def test_a_workload_that_cannot_be_fitted_says_why(name, reason):
    refusal = outcome_of(name)

    assert refusal.reason is reason
    assert refusal.explanation.endswith(".")


def test_the_sweeps_of_language_models_are_in_sequences_with_their_source_and_length():
    found = [sweep for sweep in published_sweeps() if sweep.workload.tokens_per_example is not None]

    assert [sweep.workload.name for sweep in found] == [
        f"C4 language modelling, {size}" for size in ("85M", "151M", "302M", "604M", "1.2B")
    ]
    for sweep in found:
        assert "arXiv:2410.21676" in sweep.workload.source
        assert "plots/chinchilla.ipynb" in sweep.workload.source
        assert sweep.workload.tokens_per_example == 512
    assert found[0].workload.points[0].to_target_mean == 64 * 46_000


def test_critical_batches_of_language_models_rise_with_the_model():
    found = [sweep.outcome for sweep in published_sweeps() if sweep.workload.tokens_per_example is not None]

    assert all(isinstance(outcome, SweepFit) for outcome in found)
    values = [outcome.critical_batch.value for outcome in found if isinstance(outcome, SweepFit)]
    assert values == sorted(values)
    assert values[0] == pytest.approx(2190, rel=0.02)
    assert values[-1] == pytest.approx(11_100, rel=0.02)


def test_one_of_the_language_models_turns_at_small_batches_and_that_is_said():
    turned = [
        sweep for sweep in published_sweeps() if isinstance(sweep.outcome, SweepFit) and sweep.outcome.turn is not None
    ]

    assert [sweep.workload.name for sweep in turned] == ["C4 language modelling, 302M"]
    turn = turned[0].outcome.turn
    assert turn.batch_sizes == (64, 128)
    assert turn.best_batch.low < turn.best_batch.value < turn.best_batch.high


def test_only_what_is_verified_is_given_out():
    found = published_critical_batches()

    assert len(found) == 18
    assert all("remembered" not in one.evidence for one in found)
    assert all("2505.23971" not in one.source for one in found)
    assert {one.num_parameters for one in found} >= {"215M", "8B"}


def test_counts_of_steps_are_told_as_the_samples_that_other_versions_count():
    by_name = {sweep.workload.name: sweep.workload for sweep in published_sweeps()}
    of_steps, of_samples = by_name["sd"], by_name["stable_diffusion"]
    later = {point.batch_size: point.to_target_mean for point in of_samples.points}

    assert (of_steps.unit, of_samples.unit) == ("samples", "samples")
    assert all(0.9 < p.to_target_mean / later[p.batch_size] < 1.3 for p in of_steps.points)


def test_data_to_a_target_have_a_unit_that_fits_their_size():
    for workload in (sweep.workload for sweep in published_sweeps()):
        most = max(point.to_target_mean for point in workload.points)
        assert (workload.unit == "epochs") == (most < 1_000), workload.name
        assert (workload.unit == "tokens") == (most > 1e9), workload.name
