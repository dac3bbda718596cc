"""κ by the outcome of a run whose batch changed: exact where it can be done by hand, and as sure as it says."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from noisescale_server.analysis.calibration.followed import FollowedKappa, LeastSteps, Stretch, followed_kappa
from noisescale_server.analysis.calibration.kappa import KappaMeasurement, kappa_of
from noisescale_server.analysis.errors import AnalysisError
from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.sweeps.batch_sweep.fit import fit_sweep
from noisescale_server.analysis.sweeps.fitting.sweep_fit import SweepFit
from noisescale_server.analysis.sweeps.points.steps import StepsToTarget
from noisescale_server.analysis.sweeps.points.sweep import Repeats, SweepPoint

SURE = LeastSteps(100.0, error=0.01, scatter=0.02)


def followed(
    stretches: Sequence[Stretch], *, least: LeastSteps = SURE, noise_scale_error: float = 0.0
) -> FollowedKappa | None:
    steps = StepsToTarget.at(sum(one.num_steps for one in stretches))
    return followed_kappa(stretches, steps, least, noise_scale_error=noise_scale_error)


class TestByHand:
    def test_at_one_batch_kappa_is_what_the_hyperbola_says(self) -> None:
        """T = S_min (1 + κ φ / B): 300 = 100 (1 + κ 50 / 100), so κ = 4; ln Σ falls by u / (1 + u) with u = 2."""
        found = followed([Stretch(300.0, 100.0, 50.0)], noise_scale_error=0.1)

        assert found is not None
        assert found.low == found.high == pytest.approx(math.log(4), abs=1e-9)
        assert found.own_error == pytest.approx(math.hypot(0.02 * 3 / 2, 0.1), abs=1e-12)
        assert found.shared_error == pytest.approx(0.01 * 3 / 2, abs=1e-12)

    def test_two_stretches_add_up_their_progress(self) -> None:
        """120 / (1 + 2) + 90 / (1 + 1 / 2) = 40 + 60: κ = 2 where φ / B is 1, then 1 / 4."""
        found = followed([Stretch(120.0, 64.0, 64.0), Stretch(90.0, 256.0, 64.0)])

        assert found is not None
        assert found.low == found.high == pytest.approx(math.log(2), abs=1e-9)
        slope = (40 * 2 / 3 + 60 * 1 / 3) / 100
        assert found.own_error == pytest.approx(0.02 / slope, abs=1e-9)
        assert found.shared_error == pytest.approx(0.01 / slope, abs=1e-9)

    def test_a_target_between_two_steps_takes_a_part_of_the_stretch(self) -> None:
        """Of the second stretch 45.5 of 90 steps: 120 / 3 + 45.5 / 1.5 of progress."""
        stretches = [Stretch(120.0, 64.0, 64.0), Stretch(90.0, 256.0, 64.0)]
        least = LeastSteps(40 + 45.5 / 1.5, error=0.01, scatter=0.02)

        found = followed_kappa(stretches, StepsToTarget.at(165.5), least, noise_scale_error=0.0)

        assert found is not None
        assert found.low == pytest.approx(math.log(2), abs=1e-9)

    def test_the_ends_of_a_bound_are_those_of_s_min_at_95_percent(self) -> None:
        """T = 101 is no farther above S_min than runs scatter: κ is at most what S_min e^(-1.96 σ) leaves."""
        found = followed([Stretch(101.0, 100.0, 50.0)], noise_scale_error=0.1)

        assert found is not None
        reach = 1.959963984540054 * math.hypot(0.01, 0.02)
        assert found.low == -math.inf
        assert found.high == pytest.approx(math.log((101 / (100 * math.exp(-reach)) - 1) * 2), abs=1e-9)
        assert (found.own_error, found.shared_error) == (0.1, 0.0)


class TestWhatIsNoValue:
    @pytest.mark.parametrize("steps", [95.0, 99.0, 100.0])
    def test_as_fast_as_s_min_gives_an_upper_bound(self, steps: float) -> None:
        found = followed([Stretch(steps, 64.0, 64.0)], least=LeastSteps(100.0, error=0.03, scatter=0.03))

        assert found is not None
        assert found.low == -math.inf < found.high < 0

    def test_faster_than_runs_scatter_gives_nothing(self) -> None:
        assert followed([Stretch(80.0, 64.0, 64.0)]) is None

    def test_batches_far_above_the_critical_one_give_an_upper_bound_however_sure_s_min_is(self) -> None:
        sure = LeastSteps(100.0, error=1e-6, scatter=1e-6)

        flat, steep = (
            followed([Stretch(109.0, 64.0, 64.0)], least=sure),
            followed([Stretch(112.0, 64.0, 64.0)], least=sure),
        )

        assert flat is not None
        assert steep is not None
        assert flat.low == -math.inf
        assert flat.high == pytest.approx(math.log(0.09), abs=1e-3)
        assert steep.low == steep.high == pytest.approx(math.log(0.12), abs=1e-9)

    def test_a_target_seen_between_two_far_evaluations_gives_an_interval(self) -> None:
        steps = StepsToTarget.at(300.0, after=200.0, seen_at=400.0)

        found = followed_kappa([Stretch(400.0, 100.0, 100.0)], steps, SURE, noise_scale_error=0.05)

        assert found is not None
        reach = 1.959963984540054 * math.hypot(0.01, 0.02)
        assert found.low == pytest.approx(math.log(2 / math.exp(reach) - 1), abs=1e-9)
        assert found.high == pytest.approx(math.log(4 * math.exp(reach) - 1), abs=1e-9)
        assert found.own_error == 0.05

    def test_a_target_met_at_the_first_evaluation_bounds_kappa_from_above_alone(self) -> None:
        steps = StepsToTarget.at(300.0, after=0.0, seen_at=300.0)

        found = followed_kappa([Stretch(300.0, 100.0, 100.0)], steps, SURE, noise_scale_error=0.05)

        assert found is not None
        assert found.low == -math.inf < math.log(2) < found.high

    @pytest.mark.parametrize(
        ("stretches", "steps"),
        [
            ([], StepsToTarget.at(1.0)),
            ([Stretch(10.0, 0.0, 1.0)], StepsToTarget.at(10.0)),
            ([Stretch(10.0, 1.0, 1.0)], StepsToTarget.beyond(10.0)),
        ],
        ids=["no steps", "no batch", "not reached"],
    )
    def test_what_cannot_be_solved_is_refused(self, stretches: list[Stretch], steps: StepsToTarget) -> None:
        with pytest.raises(AnalysisError):
            followed_kappa(stretches, steps, SURE, noise_scale_error=0.0)


def ramp(kappa: float, ideal_steps: float, batches: tuple[float, float]) -> tuple[list[Stretch], list[float]]:
    """A run whose noise scale grows with its progress as 40 (1 + s / 50), and whose batch changes at s = 100.

    Stretches of ten steps, and the ideal steps s that are done after each.
    """
    done, stretches, ends = 0.0, [], []
    while done < ideal_steps:
        phi, batch = 40 * (1 + done / 50), batches[done >= 100]
        done += 10 / (1 + kappa * phi / batch)
        stretches.append(Stretch(10.0, batch, phi))
        ends.append(done)
    return stretches, ends


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("kappa", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("batches", [(32.0, 256.0), (256.0, 32.0), (64.0, 1024.0)])
def test_the_stated_error_is_that_of_the_estimates(kappa: float, batches: tuple[float, float]) -> None:
    """S_min known to 4 %, runs that scatter by 5 %, φ known to 8 %: 95 % intervals hold κ in 92 to 98 of 100."""
    rng, truth, num_draws, num_inside = np.random.default_rng(17), 200.0, 1_000, 0
    stretches, ends = ramp(kappa, 2 * truth, batches)
    for scatter, miss, phi in np.exp(rng.normal(size=(num_draws, 3)) * (0.05, 0.04, 0.08)):
        steps = float(np.interp(truth * scatter, [0.0, *ends], [10.0 * place for place in range(len(ends) + 1)]))
        whole = stretches[: math.ceil(steps / 10)]
        run = [Stretch(one.num_steps, one.batch_size, one.noise_scale * phi) for one in whole]
        least = LeastSteps(truth * miss, error=0.04, scatter=0.05)

        found = followed_kappa(run, StepsToTarget.at(steps), least, noise_scale_error=0.08)

        if found is None:
            continue
        reach = 1.96 * found.observation(1).error
        num_inside += found.low - reach <= math.log(kappa) <= found.high + reach

    assert 0.92 <= num_inside / num_draws <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize("batches", [(32.0, 256.0), (256.0, 32.0)])
def test_it_is_so_with_s_min_and_scatter_as_a_sweep_of_few_batch_sizes_tells_them(batches: tuple[float, float]) -> None:
    """Five batch sizes without repeats leave three degrees of freedom; one σ of 4 % is behind fit and run."""
    rng, truth, critical, kappa, num_draws, num_inside = np.random.default_rng(23), 200.0, 300.0, 2.0, 500, 0
    stretches, ends = ramp(kappa, 2 * truth, batches)
    steps_after = [10.0 * place for place in range(len(ends) + 1)]
    for _ in range(num_draws):
        noise = rng.normal(size=6) * 0.04
        fit = fit_sweep(
            [
                SweepPoint(size, Repeats(1, math.log(truth * (1 + critical / size)) + miss, 0.0))
                for size, miss in zip((16.0, 64.0, 256.0, 1024.0, 4096.0), noise[:5], strict=True)
            ]
        )
        if not isinstance(fit, SweepFit):
            num_draws -= 1
            continue
        steps = float(np.interp(truth * math.exp(noise[5]), [0.0, *ends], steps_after))

        found = followed_kappa(
            stretches[: math.ceil(steps / 10)], StepsToTarget.at(steps), LeastSteps.of(fit), noise_scale_error=0.0
        )

        if found is not None:
            reach = 1.96 * found.observation(1).error
            num_inside += found.low - reach <= math.log(kappa) <= found.high + reach

    assert num_draws > 450
    assert 0.92 <= num_inside / num_draws <= 0.98


def test_runs_that_share_a_sweep_count_its_error_once() -> None:
    """Nine runs, each known to 6 % by itself, against one S_min that leaves 30 %: their mean is known to 30 %."""
    found = FollowedKappa(0.0, 0.0, own_error=0.06, shared_error=0.3)

    error = found.observation(9).error / 3

    assert error == pytest.approx(math.hypot(0.06 / 3, 0.3))
    assert found.observation(1).error == pytest.approx(math.hypot(0.06, 0.3))


def test_the_sentence_names_followed_runs() -> None:
    value = FollowedKappa(math.log(2), math.log(2), 0.1, 0.1).observation(1)
    one = KappaMeasurement("followed", value)

    assert kappa_of((one,), ()).said.startswith("Calibrated here on 1 followed run: κ ")
    sweep, branch = KappaMeasurement("sweep", value), KappaMeasurement("branch", value)
    assert kappa_of((sweep, sweep, one), ()).said.startswith("Calibrated here on 2 sweeps and 1 followed run: κ ")
    all_kinds = kappa_of((sweep, branch, branch, one, one), ())
    assert all_kinds.said.startswith("Calibrated here on 1 sweep, 2 branches and 2 followed runs: κ ")
    assert all_kinds.measurements == 5
    assert "on 2 followed runs of other tasks of this family" in kappa_of((), ((one, one),)).said


class TestOfAFit:
    def test_few_degrees_of_freedom_widen_both(self) -> None:
        sizes, spread = (16.0, 64.0, 256.0, 1024.0), (0.02, -0.02, -0.02, 0.02)
        points = [
            SweepPoint(size, Repeats(1, math.log(100 * (1 + 256 / size)) + miss, 0.0))
            for size, miss in zip(sizes, spread, strict=True)
        ]
        fit = fit_sweep(points)
        assert isinstance(fit, SweepFit)

        least = LeastSteps.of(fit)

        assert fit.freedom == 2
        assert least.value == fit.min_steps.value
        assert least.scatter == pytest.approx(fit.scatter * 4.302653 / 1.959964, rel=1e-6)
        low, high = fit.min_steps.low, fit.min_steps.high
        assert low is not None
        assert high is not None
        assert least.error == pytest.approx(math.log(high / low) / (2 * 1.959964), rel=1e-6)

    def test_an_open_interval_is_refused(self) -> None:
        with pytest.raises(AnalysisError):
            LeastSteps.of(_open_fit())


def _open_fit() -> SweepFit:
    points = [
        SweepPoint(size, Repeats(1, math.log(100 * (1 + 256 / size)), 0.0)) for size in (16.0, 64.0, 1024.0, 4096.0)
    ]
    fit = fit_sweep(points)
    assert isinstance(fit, SweepFit)
    fields = {name: getattr(fit, name) for name in SweepFit.__slots__}
    return SweepFit(**fields | {"min_steps": Estimate(100.0, None, 120.0, 0.95)})
