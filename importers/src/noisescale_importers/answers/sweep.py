"""Runs of one task at several batch sizes as a sweep on the server, with targets from their curves."""

import re
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from noisescale_importers import source
from noisescale_importers.answers.curves import budget_curves, proposed_targets, smoothed
from noisescale_importers.answers.summary import Curve, Summary
from noisescale_importers.delivery.assembly import REACHED
from noisescale_importers.delivery.connection import Connection
from noisescale_importers.source import TrialStatus

MIN_BATCH_SIZES = 3
MAX_POINTS = 2_000
RUNS_AT_ONCE = 500
UNKNOWN_RATE = 1.0
"""Entered where no learning rate is known, and said: the server wants one."""

FALLING = re.compile(r"loss|entropy|(?:error|perplexity|ppl|bpb|nll|mse|mae|wer|cer)[^a-z]*$", re.IGNORECASE)
"""Said first: an accumulated loss falls."""

RISING = re.compile(r"acc|score|precision|recall|f1|auc|reward|bleu|map\b|iou", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Trial:
    """A run of a sweep.

    Attributes:
        run_id: On the server; of a curve its name for repeated requests.
        is_stored: Whether the server reads the run's own metric.
        batch: Examples of a step.
        lr: Learning rate, or None.
        seed: Which repeat it is, or None.
        curve: The metric along its steps.
        status: How it ended.
    """

    run_id: str
    is_stored: bool
    batch: float
    lr: float | None
    seed: int | None
    curve: Curve
    status: TrialStatus = "complete"


@dataclass(frozen=True, slots=True)
class Question:
    """What a sweep asks.

    Attributes:
        metric: Name of the metric; None: the training loss.
        goal: "min" or "max".
        trials: The runs.
        how: What the curves are, in words.
    """

    metric: str | None
    goal: str
    trials: tuple[Trial, ...]
    how: str

    @property
    def batches(self) -> set[float]:
        """The batch sizes of runs that did not diverge."""
        return {trial.batch for trial in self.trials if trial.status != "infeasible"}

    @property
    def settings(self) -> dict[tuple[float, float | None], list[Curve]]:
        """The curves by batch size and learning rate."""
        found: dict[tuple[float, float | None], list[Curve]] = defaultdict(list)
        for trial in self.trials:
            if trial.status != "infeasible":
                found[trial.batch, trial.lr].append(trial.curve)
        return dict(found)


NO_QUESTION = Question(None, "min", (), "no curves at three batch sizes")


def question_of(summaries: Sequence[Summary], goal: str | None) -> Question | None:
    """What the runs of a task can answer together; None without curves at three batch sizes."""
    known = [(one, batch) for one in summaries if (batch := one.batch) is not None]
    for ask in (_of_steps, _of_budgets, _of_metric, _of_loss):
        question = ask(known, goal)
        if question is not None and len(question.batches) >= MIN_BATCH_SIZES:
            return question
    return None


Known = Sequence[tuple[Summary, float]]


def _of_steps(known: Known, goal: str | None) -> Question | None:
    """Runs of which the steps to a target are all that is known."""
    trials = []
    for one, batch in known:
        if one.steps_to_target is None:
            continue
        curve = Curve()
        last = round(one.steps_to_target) - 1
        for step, is_reached in ((last - 1, 0.0), (last, 1.0)):
            if step >= 0:
                curve.add(step, is_reached)
        trials.append(Trial(one.run_id, True, batch, one.lr, one.seed, curve))
    return Question(REACHED, "max", tuple(trials), "steps to the target as the table has them") if trials else None


def _of_budgets(known: Known, goal: str | None) -> Question | None:
    """Runs of which only the end is known, at several budgets each batch size: the loss over budgets is a curve."""
    rows = [(one, batch) for one, batch in known if one.is_one_row and one.steps_to_target is None and one.loss.steps]
    trials = [
        Trial(str(uuid.uuid5(uuid.UUID(run_id), "budgets")), False, batch, lr, None, curve)
        for run_id, batch, lr, curve in budget_curves(rows)
    ]
    how = "the best end of each batch size at each budget, joined to a curve over budgets"
    return Question(None, goal or "min", tuple(trials), how) if trials else None


def _of_metric(known: Known, goal: str | None) -> Question | None:
    """Runs that evaluated the same metric."""
    of_name: dict[str, list[tuple[Summary, float]]] = defaultdict(list)
    for one, batch in known:
        if one.metric is not None and one.values.steps:
            of_name[one.metric].append((one, batch))
    if not of_name:
        return None
    name = max(of_name, key=lambda one: len(of_name[one]))
    trials = tuple(
        Trial(one.run_id, True, batch, one.lr, one.seed, one.values, one.status) for one, batch in of_name[name]
    )
    return Question(name, goal or goal_of(name), trials, f"{name} as it was evaluated")


def goal_of(metric: str) -> str:
    """Whether a metric of this name is better the smaller ("min") or the larger ("max") it is."""
    return "max" if RISING.search(metric) and not FALLING.search(metric) else "min"


def _of_loss(known: Known, goal: str | None) -> Question | None:
    """Runs with a training loss alone: of one step each, so smoothed."""
    trials = tuple(
        Trial(one.run_id, False, batch, one.lr, one.seed, smoothed(one.loss), one.status)
        for one, batch in known
        if one.loss.steps and not one.is_one_row
    )
    return Question(None, goal or "min", trials, "the training loss, averaged over 5 % of the steps to either side")


def store(
    connection: Connection,
    project: str,
    task: str,
    question: Question,
    targets: Sequence[float],
    facts: Mapping[str, object],
    between_runs: Mapping[str, object],
) -> tuple[str, list[Mapping[str, object]]]:
    """The sweep's id, and the server's fit for each target.

    Args:
        connection: To the server.
        project: Of the runs.
        task: Of the runs.
        question: What is asked.
        targets: Asked for; empty: proposed.
        facts: Unit, and what the sweep's details shall say.
        between_runs: The noise scale between the runs, or what is missing for it.

    Raises:
        TransportError: Without a server.
        ConfigError: Where the key may not.
    """
    sweep_id = source.sweep_id(project, task, question.metric)
    wanted = list(targets) or proposed_targets(question.settings, goal=question.goal)
    if question.metric == REACHED:
        wanted = [1.0]
    has_rates = all(trial.lr is not None for trial in question.trials)
    body = {
        "id": sweep_id,
        "project": project,
        "task": task,
        "name": f"imported: {task}"[:256],
        "metric": question.metric,
        "goal": question.goal,
        "targets": wanted,
        "unit": facts["unit"],
        "details": {
            "curves": question.how,
            "learning_rates": "as logged" if has_rates else "not known for all runs: entered as 1",
            **{name: value for name, value in facts.items() if name != "unit"},
        },
        "noise_scale_between_runs": between_runs,
    }
    answer = connection.request("POST", "/api/v1/sweeps", body)
    if answer.status >= 300:
        return sweep_id, [{"refusal": {"explanation": f"the server {answer}"}}]
    bodies = [_body(trial) for trial in question.trials if trial.curve.steps]
    for first in range(0, len(bodies), RUNS_AT_ONCE):
        answer = connection.request(
            "POST", f"/api/v1/sweeps/{sweep_id}/runs", {"runs": bodies[first : first + RUNS_AT_ONCE]}
        )
        if answer.status >= 300:
            return sweep_id, [{"refusal": {"explanation": f"the server {answer}"}}]
    if not bodies:
        return sweep_id, []
    query = urlencode([("target", target) for target in wanted])
    answer = connection.request("GET", f"/api/v1/sweeps/{sweep_id}/critical-batch?{query}")
    found = answer.body.get("targets")
    fits: list[Mapping[str, object]] = []
    if isinstance(found, list):
        fits = [one for one in found if isinstance(one, Mapping)]
    return sweep_id, fits or [{"refusal": {"explanation": f"the server {answer}"}}]


def _body(trial: Trial) -> dict[str, object]:
    common: dict[str, object] = {
        "batch_size": trial.batch,
        "lr": trial.lr if trial.lr is not None and trial.lr > 0 else UNKNOWN_RATE,
        "seed": trial.seed,
        "status": trial.status,
    }
    if trial.is_stored:
        return common | {"run_id": trial.run_id}
    every = -(-len(trial.curve.steps) // MAX_POINTS)
    steps, values = trial.curve.steps[::-1][::every][::-1], trial.curve.values[::-1][::every][::-1]
    # a run's step 0 is its first, after which one has been taken
    return common | {"id": trial.run_id, "steps": [step + 1 for step in steps], "values": values}
