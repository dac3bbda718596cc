"""`noisescale.sweep` around trainings that log into runs."""

import math

import pytest

import noisescale
import noisy_quadratic
from client_runs import make_kept_run
from noisescale.config import Config
from noisescale.description import RunDescription
from noisescale.guard import announce, logger
from noisescale.run.run import Run
from noisescale.transport.wire import FinishRecord
from noisescale_core.errors import ConfigError
from noisescale_lab.sweep.trial import Trial


class Logged:
    """The quadratic's trainings, each logging into a run of its own."""

    def __init__(self, *, most_steps=400):
        self.most_steps = most_steps
        self.kept = []

    def evaluations(self, batch_size, lr, seed):
        for step, loss in noisy_quadratic.train(batch_size, lr, seed):
            if 0 < step <= self.most_steps:
                yield step, loss
            elif step:
                return

    def yields(self, batch_size, lr, seed):
        run, kept = make_kept_run()
        self.kept.append(kept)
        with run:
            for step, loss in self.evaluations(batch_size, lr, seed):
                run.log_metrics(step=step - 1, eval_loss=loss)
                yield run

    def returns(self, batch_size, lr, seed):
        run, kept = make_kept_run()
        self.kept.append(kept)
        for step, loss in self.evaluations(batch_size, lr, seed):
            run.log_metrics(step=step - 1, eval_loss=loss)
        return run

    def statuses(self):
        return [[record.status for record in kept.records if isinstance(record, FinishRecord)] for kept in self.kept]


def sweep(train, **changes):
    settings = {
        "target": noisy_quadratic.TARGET, "metric": "eval_loss", "learning_rates": [0.4, 0.8], "mode": "disabled",
        "progress": lambda text: None,
    } | changes  # fmt: skip
    return noisescale.sweep(train, [256, 1024], **settings)


def steps_of(result):
    return {point.batch_size: point.steps.steps for point in result.points}


@pytest.mark.thorough
def test_the_runs_of_a_sweep_say_warnings_alone_and_the_sweep_its_trials(caplog):
    caplog.set_level("INFO", "noisescale")
    logged = Logged(most_steps=40)

    def train(batch_size, lr, seed):
        announce("watching a model")
        logger.warning("batch size unknown")
        return logged.yields(batch_size, lr, seed)

    sweep(train, progress=announce)
    announce("done")

    assert "watching a model" not in caplog.messages
    assert caplog.messages.count("batch size unknown") == len(logged.kept)
    assert any(one.startswith("batch 1,024, learning rate 0.8: ") for one in caplog.messages)
    assert caplog.messages[-1] == "done"


@pytest.mark.thorough
def test_a_run_that_is_yielded_after_each_evaluation_is_a_yielded_evaluation():
    logged = Logged()

    result = sweep(logged.yields)

    expected = sweep(logged.evaluations)
    assert steps_of(result) == steps_of(expected)
    assert result.cost.steps == expected.cost.steps
    assert all(curve.run_id is not None for trial in result.trials for curve in trial.curves)


@pytest.mark.thorough
def test_a_run_that_is_returned_gives_its_whole_curve_and_the_same_steps():
    logged = Logged()

    result = sweep(logged.returns)

    assert steps_of(result) == steps_of(sweep(logged.evaluations))
    assert {trial.last_step for trial in result.trials} == {385}


@pytest.mark.thorough
@pytest.mark.parametrize("way", ["yields", "returns"])
def test_every_run_is_finished_once(way):
    logged = Logged()

    sweep(getattr(logged, way))

    assert logged.statuses() == [["finished"]] * len(logged.kept)


def test_runs_of_a_sweep_that_breaks_have_failed():
    logged = Logged()

    def train(batch_size, lr, seed):
        yield from logged.yields(batch_size, lr, seed) if seed < 3 else fails()

    def fails():
        raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        sweep(train)

    assert logged.statuses() == [["failed"]] * 3


def test_a_run_that_diverges_is_infeasible():
    def train(batch_size, lr, seed):
        run, _ = make_kept_run()
        run.log_metrics(step=0, eval_loss=1.0)
        run.log_metrics(step=1, eval_loss=math.inf if lr > 0.5 else 0.1)
        return run

    result = sweep(train)

    assert {(trial.setting.lr, trial.status) for trial in result.trials} == {(0.4, "complete"), (0.8, "infeasible")}


@pytest.mark.thorough
def test_the_runs_of_a_trial_are_in_the_state_file():
    result = sweep(Logged().returns)

    assert Trial.from_json(result.trials[0].to_json()) == result.trials[0]


def silent_run(batch_size, lr, seed):
    run, _ = make_kept_run()
    run.log_metrics(step=0, accuracy=0.5)
    return run


def disabled_run(batch_size, lr, seed):
    run = Run(Config(mode="disabled"), RunDescription())
    run.log_metrics(step=0, eval_loss=0.5)
    return run


@pytest.mark.parametrize(
    ("train", "changes", "message"),
    [
        (Logged().returns, {"metric": None}, "name the metric that it logs"),
        (silent_run, {}, "without a new value of 'eval_loss', it has logged accuracy"),
        (disabled_run, {}, "a run that is disabled keeps nothing"),
        (lambda *_: "0b1e6a2c-7f1d-4b60-9d6b-0d0f5a3f8c11", {}, "but the client is disabled: give the Run itself"),
        (lambda *_: 0.5, {}, r"must yield \(step, metric\), or give a run or its id, got 0.5"),
    ],
)
def test_what_gives_no_curve_says_the_way_out(train, changes, message):
    with pytest.raises(ConfigError, match=message):
        sweep(train, **changes)
