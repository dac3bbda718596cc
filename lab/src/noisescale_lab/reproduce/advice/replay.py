"""Replays runs under policies: many at once, stacked by batch size, each with its own history and cost.

Cost is counted as r times steps plus examples, over everything that is computed: abandoned trajectories, losing arms of
branches, and a third of an example for each example that is only evaluated. The evaluation that decides whether the
target is reached is the experimenter's and costs nothing.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import torch

from noisescale_lab.follow.actions import Adopt, Branch, BranchedArm, Restart, RunState, Train, Undo
from noisescale_lab.reproduce.advice.run import Job, Outcome, Policy, Run, Start, feasible, new_run, rounded
from noisescale_lab.reproduce.advice.simple_policies import BranchOfEqualExamples
from noisescale_lab.reproduce.advice.sweep import Reference
from noisescale_lab.reproduce.stacked.random_stream import RandomStream, keys
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.trainer import Replicas, evaluate, train

EVALUATION_COST = 1 / 3
"""An example that is only evaluated costs this much of one that is trained on: no backward pass."""

CAP = 8.0
"""A run that has spent this much of the best constant run's cost without meeting the target has missed it."""


# The arms of a branch: how long they are, and what they show on examples that the run does not train on.


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


def replay(
    task: Task,
    reference: Reference,
    starts: Iterable[Start],
    policies: dict[str, Callable[[], Policy]],
) -> list[Outcome]:
    """Every policy from every start."""
    runs = [new_run(task, reference, start, name, build()) for start in starts for name, build in policies.items()]
    stream = RandomStream()
    alive = runs
    initial = {seed: float(evaluate(task, task.network.initial([seed]))[0]) for seed in {r.start.seed for r in runs}}
    for run in runs:
        run.before = (0.0, initial[run.start.seed])
        run.jobs = [run.phase()]
    while alive:
        execute(task, stream, alive)
        settle(task, alive)
        for run in alive:
            if run.outcome is None:
                follow(run, stream)
        alive = [run for run in alive if run.outcome is None]
    return [run.outcome for run in runs if run.outcome is not None]


def execute(task: Task, stream: RandomStream, runs: Sequence[Run]) -> None:
    """Train every job, those of equal batch and length in one stack."""
    groups: defaultdict[tuple[int, int], list[tuple[Run, Job]]] = defaultdict(list)
    for run in runs:
        for job in run.jobs:
            groups[job.batch, job.steps].append((run, job))
    for (batch, steps), group in groups.items():
        stack = Replicas.gather([job.replicas for _, job in group])
        record = train(
            task,
            stream,
            stack,
            seeds=[run.start.seed for run, _ in group],
            learning_rate=[job.learning_rate for _, job in group],
            batch=batch,
            steps=steps,
            wants_average=True,
        )
        for row, (_, job) in enumerate(group):
            job.replicas, job.record, job.row = stack.take(row), record, row


def settle(task: Task, runs: Sequence[Run]) -> None:
    """Count the cost of what was trained, and see who met the target."""
    main = [run for run in runs if run.branch is None]
    for run in main:
        [job] = run.jobs
        run.absorb(job)
    for run in runs:
        if run.branch is not None:
            run.spent += sum(job.steps * run.step_cost(job.batch) for job in run.jobs)
    if main:
        losses = evaluate(task, torch.cat([run.replicas.parameters for run in main]))
        for run, loss in zip(main, losses.tolist(), strict=True):
            judge(run, loss)
    for run in runs:
        if run.outcome is None and run.spent >= CAP * run.reference.cost(run.reference.best):
            end(run, CAP, reached=False)


def judge(run: Run, loss: float) -> None:
    """Whether the target was met since the last look; the log of the loss is interpolated over cost."""
    target = run.reference.target
    spent, before = run.before
    if loss <= target:
        share = 1.0 if before <= target else math.log(before / target) / math.log(before / max(loss, 1e-12))
        at = spent + share * (run.spent - spent)
        best = run.reference.cost(run.reference.best)
        end(run, min(CAP, at / best), reached=at < CAP * best)
    elif not math.isfinite(loss) and not hasattr(run.policy, "rescues"):
        end(run, CAP, reached=False)
    else:
        run.before = (run.spent, loss if math.isfinite(loss) else math.inf)


def end(run: Run, cost: float, *, reached: bool) -> None:
    """Close a run."""
    run.outcome = Outcome(run.start, run.name, cost, reached, run.batch, run.learning_rate)


def follow(run: Run, stream: RandomStream) -> None:
    """Ask the policy and do what it says."""
    if run.is_warming_up:
        run.jobs = [run.phase()]
        return
    view = run.view()
    if run.branch is not None:
        view = with_arms(run, view, stream)
    action = run.policy.decide(view)
    match action:
        case Adopt(arm, batch, learning_rate):
            run.replicas = run.jobs[arm].replicas
            run.remember(run.jobs[arm])
            run.batch, run.learning_rate = feasible(batch), learning_rate
        case Restart(batch, learning_rate):
            run.restart()
            run.batch, run.learning_rate = feasible(batch), learning_rate
        case Undo(batch, learning_rate):
            run.undo()
            run.batch, run.learning_rate = feasible(batch), learning_rate
        case Train(batch, learning_rate):
            if action.is_on_probation:
                run.keep()
            run.look_after = action.look_after
            run.batch, run.learning_rate = feasible(batch), learning_rate
        case Branch():
            pass
    if isinstance(action, Branch):
        run.branch = action
        run.jobs = [
            Job(run.replicas.take(0), feasible(batch), rate * run.decay, arm_steps(action, feasible(batch)))
            for batch, rate in action.arms
        ]
    else:
        run.branch = None
        run.jobs = [run.phase()]
