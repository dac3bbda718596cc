"""`noisescale.sweep`: steps to a target at several batch sizes, each at its own best learning rate."""

import functools
import json
import math
import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from noisescale.config import Config
from noisescale.guard import announce, warnings_alone
from noisescale.options import Delivery, inside, takes_older
from noisescale_core.errors import ConfigError
from noisescale_lab.sweep.question import Question, seeds_of, targets_of
from noisescale_lab.sweep.rate_search import BestRate, Score, best_of, search
from noisescale_lab.sweep.result import SweepResult, cost_of, points_of, score
from noisescale_lab.sweep.server import Labels, SweepServer
from noisescale_lab.sweep.training import Limits, Train, run_trial
from noisescale_lab.sweep.trial import Goal, Setting, Trial

VERSION = 1

PATIENCE = 1.3
"""A setting that needs 1.3 times the steps of the best one so far is not the best, and is stopped there."""

SLACK = 3.0
"""Halving the batch takes at most twice the steps, by theory; a run is given three times that before it is stopped."""


# The trials of a sweep in a small JSON file, so that an interrupted sweep goes on where it was.


class StateFile:
    """Trials by their setting; written anew after each, and renamed, so that a crash leaves the file before it.

    Attributes:
        sweep_id: UUID of the sweep, the same when it goes on.

    Args:
        path: Of the file; None: nothing is kept beyond the process.
        question: What the sweep asks.

    Raises:
        ConfigError: If the file belongs to another question or is no state file.
    """

    def __init__(self, path: str | os.PathLike[str] | None, question: Question) -> None:
        self.sweep_id = str(uuid.uuid4())
        self._path = None if path is None else Path(path)
        self._question = question.to_json()
        self._trials: dict[Setting, Trial] = {}
        if self._path is not None and self._path.exists():
            self._load(self._path)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials in the order in which they ran."""
        return tuple(self._trials.values())

    def find(self, setting: Setting) -> Trial | None:
        """The finished trial of this setting, or None; one that a budget cut short is not finished."""
        trial = self._trials.get(setting)
        return None if trial is None or trial.status == "incomplete" else trial

    def add(self, trial: Trial) -> None:
        """Keep a trial."""
        self._trials[trial.setting] = trial
        if self._path is None:
            return
        content = {
            "version": VERSION,
            "sweep_id": self.sweep_id,
            "question": self._question,
            "trials": [each.to_json() for each in self._trials.values()],
        }
        beside = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        beside.write_text(json.dumps(content))
        beside.replace(self._path)

    def _load(self, path: Path) -> None:
        try:
            content = json.loads(path.read_text())
            version, question, trials = content["version"], content["question"], content["trials"]
            self.sweep_id = str(uuid.UUID(content["sweep_id"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"state_file {path} is not one of a sweep ({error!r}): name another") from error
        if version != VERSION or question != self._question:
            changed = sorted(name for name in self._question if question.get(name) != self._question[name])
            raise ConfigError(
                f"state_file {path} belongs to a sweep with other {', '.join(changed) or 'version'}: name another file"
            )
        for trial in map(Trial.from_json, trials):
            self._trials[trial.setting] = trial


class _BudgetSpent(Exception):
    """No example is left."""


class _Conductor:
    """Runs the trials that a search asks for, each once.

    Args:
        train: The user's training.
        question: What is asked.
        state: Trials that ran already, and where new ones go.
        server: Is sent each new trial.
        progress: Is told each new trial.
    """

    def __init__(
        self,
        train: Train,
        question: Question,
        state: StateFile,
        server: SweepServer,
        progress: Callable[[str], None],
    ) -> None:
        self._train = train
        self._question = question
        self._state = state
        self._server = server
        self._progress = progress
        self._fewest_steps = math.inf

    def tune_all(self) -> bool:
        """Every batch size from the largest on, each started from its neighbour; False if the budget ended it."""
        start, cap = self._question.first_learning_rate, float(self._question.max_steps)
        previous: int | None = None
        try:
            for batch_size in sorted(self._question.batch_sizes, reverse=True):
                if previous is not None:
                    start *= math.sqrt(batch_size / previous)
                best = self._tune(batch_size, start, cap)
                start, previous = best.lr, batch_size
                cap = self._cap_below(batch_size, best)
        except _BudgetSpent:
            return False
        return True

    def _tune(self, batch_size: int, start: float, cap: float) -> BestRate:
        self._fewest_steps = math.inf
        at = functools.partial(self._score, batch_size, cap)
        rates = self._question.learning_rates
        return search(at, start) if rates is None else best_of(at, rates)

    def _cap_below(self, batch_size: int, best: BestRate) -> float:
        """Steps that the next smaller batch size gets at most."""
        smaller = [size for size in self._question.batch_sizes if size < batch_size]
        if not smaller or math.isinf(best.score[0]):
            return float(self._question.max_steps)
        return min(float(self._question.max_steps), math.ceil(SLACK * best.score[0] * batch_size / max(smaller)))

    def _score(self, batch_size: int, cap: float, lr: float) -> Score:
        setting = Setting(batch_size, lr)
        trial = self._state.find(setting) or self._run(setting, min(cap, PATIENCE * self._fewest_steps))
        found = score(trial, self._question)
        self._fewest_steps = min(self._fewest_steps, found[0])
        return found

    def _run(self, setting: Setting, most_steps: float) -> Trial:
        budget = math.inf if self._question.budget is None else self._question.budget
        finished = [trial for trial in self._state.trials if trial.setting != setting]
        left = budget - sum(trial.examples for trial in finished)
        if left <= 0:
            raise _BudgetSpent
        limits = Limits(self._question.hardest, self._question.goal, most_steps, left)
        with warnings_alone():  # fifty runs would each say what they watch and what they found
            trial = run_trial(
                self._train,
                setting,
                self._question.seeds,
                limits,
                metric=self._question.metric,
                read_run=self._server.metric_of,
            )
        self._state.add(trial)
        self._server.send(self._state.sweep_id, trial)
        self._progress(_said(trial, self._question))
        if trial.status == "incomplete":
            raise _BudgetSpent
        return trial


@takes_older(
    {
        **inside("labels", Labels, "name", "unit", "optimizer", "project", "task"),
        **inside("delivery", Delivery, "url", "api_key"),
    }
)
def sweep(
    train: Train,
    batch_sizes: Sequence[int],
    *,
    target: float | Sequence[float],
    metric: str | None = None,
    goal: Goal = "min",
    learning_rates: Literal["auto"] | Sequence[float] = "auto",
    first_learning_rate: float = 0.1,
    seeds: int | Sequence[int] = 4,
    max_steps: int = 10_000,
    budget: float | None = None,
    state_file: str | os.PathLike[str] | None = None,
    labels: Labels | None = None,
    delivery: Delivery | None = None,
    mode: Literal["online", "offline", "disabled"] | None = None,
    progress: Callable[[str], None] = announce,
) -> SweepResult:
    """Steps to a target at each batch size, at its own best learning rate, and the critical batch size fitted to them.

    The learning rate is searched at each batch size by a grid of factor 2, refined, the largest batch size first. All
    seeds of a setting run in step with each other, the metric is averaged over them and then crossed, and a setting
    stops at the target, or when it is 1.3 times slower than the best so far.

    Args:
        train: `train(batch_size, lr, seed)` yields (optimizer steps so far, metric) at each evaluation, at the same
            steps for every seed; best on a geometric grid of steps. Equal seeds should draw equal examples in equal
            order at every batch size and learning rate. As many trainings as seeds are in memory at a time. Or it
            logs `metric` into a run of its own, and yields that run after each evaluation, or returns the run or its
            id at its end; a training that returns is not stopped early.
        batch_sizes: In examples, at least three different ones for a fit.
        target: Value of the metric, or several.
        metric: Its name, by which runs are read; for people only where `train` yields it; None: the loss.
        goal: "min" where the metric falls to its target, "max" where it rises.
        learning_rates: "auto", or those to try at every batch size.
        first_learning_rate: Where "auto" starts, at the largest batch size.
        seeds: How many repeats, or their seeds. Small convex tasks need 10 to 32, small networks 4 to 6.
        max_steps: Longest training.
        budget: Most examples of all trainings together; what is found by then is the result.
        state_file: JSON file from which an interrupted sweep goes on.
        labels: What the sweep is called, and what it trains.
        delivery: Where the trials go, and as whom; None: as the environment says.
        mode: "offline" or "disabled": nothing is sent, so there are steps to the target and no fit.
        progress: Is told each trial, and the result.

    Returns:
        The steps at each batch size and, where a server answers, the fit; the training's own errors pass through.

    Raises:
        ConfigError: For a wrong argument, evaluations that are none, or a state file of another sweep.
    """
    if isinstance(learning_rates, str) and learning_rates != "auto":
        raise ConfigError(f"learning_rates must be 'auto' or a list of numbers, got {learning_rates!r}")
    question = Question(
        batch_sizes=tuple(batch_sizes),
        targets=targets_of(target, goal),
        goal=goal,
        metric=metric,
        seeds=seeds_of(seeds),
        learning_rates=None if isinstance(learning_rates, str) else tuple(learning_rates),
        first_learning_rate=first_learning_rate,
        max_steps=max_steps,
        budget=budget,
    )
    called, sent = labels or Labels(), delivery or Delivery()
    config = Config.from_env(project=called.project, task=called.task, url=sent.url, api_key=sent.api_key, mode=mode)
    state, server = StateFile(state_file, question), SweepServer(config)
    try:
        server.begin(state.sweep_id, question, called)
        is_complete = _Conductor(train, question, state, server, progress).tune_all()
        server.send_again(state.sweep_id, question, called, state.trials)
        result = SweepResult(
            sweep_id=state.sweep_id,
            question=question,
            points=points_of(question, state.trials),
            trials=state.trials,
            cost=cost_of(state.trials),
            is_complete=is_complete,
        )
        result = _with_fit(result, server)
    finally:
        server.close()
    progress(str(result))
    return result


def _with_fit(result: SweepResult, server: SweepServer) -> SweepResult:
    found = server.critical_batches(result.sweep_id)
    if found:
        return replace(result, critical_batches=found)
    reason = f"No fit: it is made by the server, with scipy, and {server.problem or 'it gave none'}."
    return replace(result, without_fit=f"{reason} `noisescale up` starts one; the same call sends everything again.")


def _said(trial: Trial, question: Question) -> str:
    steps, last = score(trial, question)
    setting = f"batch {trial.setting.batch_size:,}, learning rate {trial.setting.lr:.4g}"
    if trial.status == "infeasible":
        return f"{setting}: diverged after {trial.last_step:,} steps"
    if math.isinf(steps):
        metric = question.metric or "loss"
        return f"{setting}: not reached in {trial.last_step:,} steps, {metric} {question.sign * last:.4g}"
    return f"{setting}: {steps:,.1f} steps"
