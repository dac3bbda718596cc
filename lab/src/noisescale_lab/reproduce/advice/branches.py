"""The arms of a branch: how long they are, and what they show on examples that the run does not train on."""

import math
from dataclasses import replace

import torch

from noisescale_lab.follow.actions import Branch, BranchedArm, RunState
from noisescale_lab.reproduce.advice.run import Run, feasible, rounded
from noisescale_lab.reproduce.advice.simple_policies import BranchOfEqualExamples
from noisescale_lab.reproduce.stacked.random_stream import RandomStream, keys

EVALUATION_COST = 1 / 3
"""An example that is only evaluated costs this much of one that is trained on: no backward pass."""


def arm_steps(branch: Branch, batch: int) -> int:
    """Steps of an arm: of all the same, or fewer for larger batches where arms are to see equally many examples."""
    if isinstance(branch, BranchOfEqualExamples):
        return rounded(branch.steps * feasible(branch.arms[0][0]) / batch)
    return rounded(branch.steps)


def with_arms(run: Run, view: RunState, stream: RandomStream) -> RunState:
    """The view with what the branch showed, its evaluation paid for."""
    assert run.branch is not None
    found = [(math.nan, math.nan)] * (len(run.jobs) + 1)
    if run.branch.held_out:
        assert run.average is not None
        rows = [run.average, *(job.average for job in run.jobs)]
        found = held_out_losses(run, torch.cat(rows), stream, run.branch.held_out)
        run.spent += len(rows) * run.branch.held_out * EVALUATION_COST
    arms = tuple(
        BranchedArm(job.batch, rate, loss, error)
        for job, (_, rate), (loss, error) in zip(run.jobs, run.branch.arms, found[1:], strict=True)
    )
    return replace(view, arms=arms, before_loss=found[0][0])


def held_out_losses(run: Run, parameters: torch.Tensor, stream: RandomStream, count: int) -> list[tuple[float, float]]:
    """Loss of each row on examples that the run does not train on, and the error of its difference from row 1's.

    Row 1 is the first arm; all rows see the same examples.
    """
    tables, rows = stream.tables([run.start.seed + 500_000])
    drawn = keys(tables, rows, run.replicas.num_examples[:, None], count)
    inputs, targets = run.task.sample(drawn)
    outputs = run.task.network.forward(parameters, inputs.expand(len(parameters), *inputs.shape[1:]))[-1]
    losses = run.task.loss(outputs, targets.expand(len(parameters), *targets.shape[1:]))[0].double()
    means = losses.mean(1).tolist()
    errors = ((losses - losses[1]).std(1) / math.sqrt(count)).tolist()
    return [
        (loss, error) if math.isfinite(loss) and math.isfinite(error) else (math.inf, math.inf)
        for loss, error in zip(means, errors, strict=True)
    ]
