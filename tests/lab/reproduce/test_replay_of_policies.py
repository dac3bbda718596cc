"""The replay counts every cost, hides the answer, and its scores say what they are called."""

import dataclasses
import math

import pytest
import torch

from noisescale_lab.follow.actions import Adopt, Branch, Restart, RunState, Train
from noisescale_lab.reproduce.advice.replay import CAP, execute, follow, replay, settle
from noisescale_lab.reproduce.advice.run import Outcome, Start, new_run
from noisescale_lab.reproduce.advice.scores import score
from noisescale_lab.reproduce.advice.simple_policies import SIMPLE, Keep, KeepAndExtend
from noisescale_lab.reproduce.advice.sweep import Reference, Tuned, fit, steps_to_target
from noisescale_lab.reproduce.registry import ALL
from noisescale_lab.reproduce.stacked.random_stream import RandomStream

TUNED = tuple(Tuned(batch, 0.8, steps) for batch, steps in ((4, 400.0), (32, 60.0), (256, 40.0)))
REFERENCE = Reference("digits_softmax", 0.4, TUNED, 35.0, 40.0)
RIGHT = Start(1, 1, 5)


class Scripted:
    """Says what it was told to say."""

    def __init__(self, *actions):
        self.actions = list(actions)
        self.seen: list[RunState] = []

    def decide(self, view):
        self.seen.append(view)
        return self.actions.pop(0) if self.actions else Train(view.batch, view.learning_rate)


def played(policy, rounds: int, start: Start = RIGHT, warm_up: int = 0):
    """One run after so many rounds of training, judging and deciding."""
    task, stream = dataclasses.replace(ALL["digits_softmax"](), warm_up=warm_up), RandomStream()
    run = new_run(task, REFERENCE, start, "scripted", policy)
    run.jobs = [run.phase()]
    for _ in range(rounds):
        execute(task, stream, [run])
        settle(task, [run])
        follow(run, stream)
    return run


def test_a_branch_costs_all_of_its_arms_and_a_third_of_each_evaluated_example():
    arms = ((32, 0.8), (32, 0.4), (32, 1.6))
    policy = Scripted(Branch(arms, 4, held_out=60), Adopt(0, 32, 0.8))

    before, after = played(Scripted(), 1), played(policy, 2)

    assert after.spent - before.spent == pytest.approx(3 * 4 * (40 + 32) + 4 * 60 / 3)
    assert [arm.learning_rate for arm in policy.seen[1].arms] == [0.8, 0.4, 1.6]
    assert after.steps == before.steps + 4


def test_the_first_arm_of_a_branch_is_what_the_run_would_have_done():
    policy = Scripted(Branch(((32, 0.8), (32, 1.6)), 2, held_out=8), Adopt(0, 32, 0.8))

    plain, branched = played(Scripted(), 2), played(policy, 2)

    assert branched.steps == plain.steps
    torch.testing.assert_close(branched.replicas.parameters, plain.replicas.parameters, rtol=1e-4, atol=1e-6)


def test_a_restart_gives_fresh_weights_and_refunds_nothing():
    before, after = played(Scripted(), 1), played(Scripted(Restart(32, 0.2)), 1)

    assert after.spent == before.spent
    assert after.steps == 0
    torch.testing.assert_close(after.replicas.parameters, ALL["digits_softmax"]().network.initial([5]))
    assert int(after.replicas.num_examples) == int(before.replicas.num_examples)


def test_a_decaying_rate_falls_with_what_was_spent_and_policies_set_its_base():
    constant, decaying = played(Scripted(), 5), played(Scripted(), 5, dataclasses.replace(RIGHT, decays=True))

    assert constant.jobs[0].learning_rate == pytest.approx(0.8)
    assert decaying.learning_rate == pytest.approx(0.8)
    assert decaying.jobs[0].learning_rate == pytest.approx(0.8 * (1 - 0.9 * decaying.spent / decaying.planned))


def test_nobody_is_asked_during_a_warm_up_and_its_path_tells_nothing_until_as_many_steps_again():
    policy = Scripted()

    run = played(policy, 30, warm_up=12)

    asked_at = [view.steps for view in policy.seen]
    assert min(asked_at) >= 12
    assert min(asked_at) - 12 < asked_at[1] - asked_at[0]
    assert policy.seen[0].path is None
    assert run.path() is not None
    run.steps = 2 * 12
    assert run.path() is not None
    run.steps = 2 * 12 - 1
    assert run.path() is None


def test_keeping_with_extension_undoes_the_decay_once_and_only_beyond_the_plan():
    run, policy = played(Scripted(), 1), KeepAndExtend()
    view = dataclasses.replace(run.view(), learning_rate=0.8, decay=0.1)

    rates = [policy.decide(dataclasses.replace(view, progress=progress)).learning_rate for progress in (0.9, 1.1, 1.2)]

    assert rates == pytest.approx([0.8, 8.0, 0.8])


def test_a_run_meets_its_target_at_an_interpolated_cost_and_one_that_cannot_counts_as_the_cap():
    task = ALL["digits_softmax"]()

    found = replay(task, REFERENCE, [RIGHT, Start(1, 1e-4, 5)], {"keep": Keep})

    assert [outcome.reached for outcome in found] == [True, False]
    assert 0.3 < found[0].cost < 3
    assert found[1].cost == CAP


@pytest.mark.parametrize("name", SIMPLE)
def test_every_policy_ends_a_run(name):
    reference = dataclasses.replace(REFERENCE, target=0.9)
    start = Start(8, 0.5, 3, decays=True)

    [outcome] = replay(ALL["digits_softmax"](), reference, [start], {name: SIMPLE[name]})

    assert 0 < outcome.cost <= CAP


def test_a_fit_recovers_what_was_planted():
    points = [(batch, 50 * (1 + 120 / batch)) for batch in (4, 16, 64, 256, 1024)]

    min_steps, critical_batch = fit([*points, (2, math.inf)])

    assert min_steps == pytest.approx(50, rel=0.01)
    assert critical_batch == pytest.approx(120, rel=0.01)


def test_a_rate_that_diverges_never_arrives():
    task = ALL["powerlaw_regression"]()

    good, wild = steps_to_target(task, 0.5, batch=16, rates=[0.1, 50.0], seeds=[0, 1], limit=400)

    assert math.isfinite(good)
    assert wild == math.inf


def test_scores_compare_with_keeping_from_the_same_start():
    starts = [Start(batch, 1, seed) for batch in (1, 8) for seed in (0, 1)]
    kept = [Outcome(start, "keep", 1.0 if start.batch_factor == 1 else 4.0, True, 8, 0.1) for start in starts]
    other = [Outcome(start, "other", 1.5, True, 8, 0.1) for start in starts]

    everything, right = (score({"task": [*kept, *other]}, "other", kind) for kind in ("all", "right"))

    assert everything.relative == pytest.approx(6 / 10)
    assert everything.median == pytest.approx(50)
    assert (right.runs, right.added, right.relative) == (2, pytest.approx(50), pytest.approx(1.5))
    assert everything.missed == 0
