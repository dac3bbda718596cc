"""A sweep of trainings on the quadratic of `quadratic_flow`, through `noisescale.sweep` up to the server's fit."""

import noisescale
import quadratic_flow
from noisescale_server.analysis.sweeps.batch_sweep.target_answer import target_answer
from noisescale_server.analysis.sweeps.fitting.sweep_fit import SweepFit
from noisescale_server.analysis.sweeps.steps_to_target.crossing import Direction, MetricCurve
from noisescale_server.analysis.sweeps.steps_to_target.setting import Trial, settings_of

OCTAVES = (-4, -2, 0, 2, 4)


def fit_of(share: float, *, seeds: range) -> SweepFit:
    """The trainings of a sweep at one share of the best learning rate, then steps to the target, then the fit."""
    critical = quadratic_flow.truth(share).critical_batch
    result = noisescale.sweep(
        quadratic_flow.train,
        [round(critical * 2.0**octave) for octave in OCTAVES],
        target=quadratic_flow.TARGET,
        learning_rates=[share],
        seeds=seeds,
        mode="disabled",
        progress=lambda text: None,
    )
    trials = [
        Trial(
            trial.setting.batch_size,
            trial.setting.lr,
            curve.seed,
            MetricCurve(tuple(map(float, curve.steps)), curve.values, Direction.MIN),
        )
        for trial in result.trials
        for curve in trial.curves
    ]
    outcome = target_answer(settings_of(trials), quadratic_flow.TARGET, level=0.95).outcome
    assert isinstance(outcome, SweepFit), outcome
    return outcome
