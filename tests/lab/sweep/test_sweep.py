"""`noisescale.sweep` around a training whose expected loss is known exactly."""

import json
import math
import random

import numpy as np
import pytest
import torch

import noisescale
import noisy_quadratic
from noisescale_core.errors import ConfigError


def sweep(train=noisy_quadratic.train, batch_sizes=(16, 64, 256, 1024), **changes):
    said = []
    settings = {"target": noisy_quadratic.TARGET, "mode": "disabled", "progress": said.append} | changes
    return noisescale.sweep(train, list(batch_sizes), **settings), said


def steps_of(result):
    return {point.batch_size: point.steps.steps for point in result.points}


class Counted:
    """The training, and how often it was begun; `fail_at` raises in that training."""

    def __init__(self, fail_at=None):
        self.begun = 0
        self.fail_at = fail_at

    def __call__(self, batch_size, lr, seed):
        self.begun += 1
        if self.begun == self.fail_at:
            raise KeyboardInterrupt
        return noisy_quadratic.train(batch_size, lr, seed)


@pytest.mark.slow
def test_steps_at_each_batch_size_are_the_fewest_that_theory_knows():
    result, _ = sweep()

    for batch_size, steps in steps_of(result).items():
        assert steps == pytest.approx(noisy_quadratic.exact_best_steps(batch_size), rel=0.15)
    assert len(result.points) == 4
    assert not any(point.is_at_grid_edge for point in result.points[:3])


@pytest.mark.thorough
def test_the_table_names_every_batch_size_the_cost_and_why_there_is_no_fit():
    result, said = sweep(batch_sizes=(64, 256), target=(noisy_quadratic.TARGET, 1.0))

    assert said[-1] == str(result)
    assert [point.target for point in result.points] == [1.0, 1.0, 0.3, 0.3]
    assert "Steps to loss 0.3, averaged over 4 seeds" in said[-1]
    assert "No fit: it is made by the server" in said[-1]
    assert f"{result.cost.examples:,} examples" in said[-1]
    assert result.cost.num_runs == 4 * len(result.trials)


@pytest.mark.thorough
def test_a_finished_sweep_trains_nothing_when_called_again(tmp_path):
    first, _ = sweep(state_file=tmp_path / "sweep.json", batch_sizes=(256, 1024))
    again = Counted()

    second, _ = sweep(again, state_file=tmp_path / "sweep.json", batch_sizes=(256, 1024))

    assert again.begun == 0
    assert (second.points, second.sweep_id) == (first.points, first.sweep_id)


@pytest.mark.slow
@pytest.mark.thorough
def test_an_interrupted_sweep_ends_as_one_that_ran_through(tmp_path):
    whole, _ = sweep(batch_sizes=(256, 1024))

    with pytest.raises(KeyboardInterrupt):
        sweep(Counted(fail_at=30), state_file=tmp_path / "sweep.json", batch_sizes=(256, 1024))
    rest = Counted()
    resumed, _ = sweep(rest, state_file=tmp_path / "sweep.json", batch_sizes=(256, 1024))

    assert resumed.points == whole.points
    assert 0 < rest.begun < 4 * len(whole.trials)


@pytest.mark.thorough
def test_a_larger_sweep_takes_what_the_state_file_has(tmp_path):
    sweep(state_file=tmp_path / "sweep.json", batch_sizes=(1024,))
    more = Counted()

    result, _ = sweep(more, state_file=tmp_path / "sweep.json", batch_sizes=(1024, 256))

    at_256 = [trial for trial in result.trials if trial.setting.batch_size == 256]
    assert more.begun == 4 * len(at_256)


@pytest.mark.thorough
def test_a_state_file_of_another_question_is_refused(tmp_path):
    sweep(state_file=tmp_path / "sweep.json", batch_sizes=(1024,))

    with pytest.raises(ConfigError, match=r"other targets: name another file"):
        sweep(state_file=tmp_path / "sweep.json", batch_sizes=(1024,), target=0.5)


def test_a_file_that_is_no_state_is_refused(tmp_path):
    (tmp_path / "notes.json").write_text(json.dumps([1, 2]))

    with pytest.raises(ConfigError, match="is not one of a sweep"):
        sweep(state_file=tmp_path / "notes.json")


@pytest.mark.slow
def test_a_budget_ends_the_sweep_and_keeps_what_is_known(tmp_path):
    result, said = sweep(budget=600_000, state_file=tmp_path / "sweep.json")

    assert not result.is_complete
    assert result.cost.examples < 650_000
    assert {point.batch_size for point in result.points} < {16, 64, 256, 1024}
    assert "The budget ended the sweep" in said[-1]
    whole, _ = sweep(state_file=tmp_path / "sweep.json")
    assert whole.is_complete
    assert steps_of(whole) == steps_of(sweep()[0])


@pytest.mark.thorough
def test_a_setting_is_stopped_soon_after_the_best_one_so_far_had_arrived():
    result, _ = sweep(batch_sizes=(64,), first_learning_rate=0.4)

    first, *others = [trial.last_step for trial in result.trials]
    assert all(last <= 1.3 * 1.08 * first for last in others)  # evaluations are 7 % apart


def test_a_target_that_every_start_has_reached_ends_the_sweep_with_one_step_at_most():
    result, said = sweep(lambda *_: [(0, 0.1), (1, 0.05)], batch_sizes=(8, 16))

    assert steps_of(result) == {8: 1.0, 16: 1.0}
    assert "0 to 1" in said[-1]


@pytest.mark.thorough
def test_given_learning_rates_are_tried_and_no_others():
    result, _ = sweep(batch_sizes=(64, 256), learning_rates=[0.2, 0.4, 0.8])

    assert {trial.setting.lr for trial in result.trials} == {0.2, 0.4, 0.8}


def test_a_divergence_is_infeasible_and_its_curve_ends_before_it():
    def train(batch_size, lr, seed):
        yield 0, 2.0
        yield 1, 1.0
        yield 2, math.nan if lr > 0.5 else 0.1

    result, _ = sweep(train, batch_sizes=(8,), learning_rates=[0.4, 0.8], target=0.3)

    diverged = next(trial for trial in result.trials if trial.setting.lr == 0.8)
    assert diverged.status == "infeasible"
    assert diverged.curves[0].values == (2.0, 1.0)
    assert [point.lr for point in result.points] == [0.4]


def test_a_training_draws_from_global_generators_as_if_it_ran_alone():
    def train(batch_size, lr, seed):
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        for step in range(5):
            yield step, random.random() + float(np.random.rand()) + float(torch.rand(()))

    result, _ = sweep(train, batch_sizes=(8,), learning_rates=[0.1], target=-1.0, seeds=3)

    assert [curve.values for curve in result.trials[0].curves] == [
        tuple(value for _, value in train(8, 0.1, seed)) for seed in range(3)
    ]


def test_a_training_that_seeds_nothing_draws_by_its_seed_and_nothing_else():
    """Otherwise repeats share their first weights, and a sweep that is resumed in another process has others."""

    def first_draws():
        drawn = {}

        def train(batch_size, lr, seed):
            drawn[seed, lr] = (random.random(), float(np.random.rand()), float(torch.rand(())))
            yield 1, 0.0

        sweep(train, batch_sizes=(8,), target=0.5, learning_rates=[0.1, 0.2], seeds=2)
        return drawn

    torch.manual_seed(5)
    before = first_draws()
    torch.manual_seed(6)
    after = first_draws()

    assert before == after
    assert before[0, 0.1] == before[0, 0.2]
    assert all(one != other for one, other in zip(before[0, 0.1], before[1, 0.1], strict=True))


def test_global_generators_are_left_as_they_were():
    random.seed(7)
    expected = random.Random(7).random()

    sweep(batch_sizes=(1024,), learning_rates=[0.1])

    assert random.random() == expected


@pytest.mark.parametrize(
    ("train", "message"),
    [
        (lambda *_: [(0, 1.0), (0, 0.9)], "rising steps, got 0 after 0"),
        (lambda *_: [1.0], r"must yield \(step, metric\), got 1.0"),
        (lambda _, __, seed: [(seed, 1.0)], "same steps for every seed"),
    ],
)
def test_evaluations_that_are_none_are_refused(train, message):
    with pytest.raises(ConfigError, match=message):
        sweep(train, batch_sizes=(8,))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_sizes": (8, 8)}, "batch_sizes must be different"),
        ({"batch_sizes": ()}, "batch_sizes must be different"),
        ({"target": math.nan}, "target must be one finite value"),
        ({"goal": "most"}, "goal must be"),
        ({"seeds": 0}, "seeds must be different and at least one"),
        ({"learning_rates": [0.1, -0.1]}, "learning rates must be positive"),
        ({"learning_rates": []}, "learning rates must be positive"),
        ({"learning_rates": "fast"}, "learning_rates must be 'auto'"),
        ({"first_learning_rate": 0.0}, "learning rates must be positive"),
        ({"max_steps": 0}, "max_steps must be at least 1"),
        ({"budget": -1}, "budget must be a positive number"),
    ],
)
def test_an_argument_that_no_sweep_can_answer_is_named(changes, message):
    with pytest.raises(ConfigError, match=message):
        sweep(**changes)
