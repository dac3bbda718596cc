"""What was tried on one task: its sweep, all policies from all starts, and what was seen of runs half-way."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from noisescale_core.advice.parts.known_noise_scale import KnownNoiseScale
from noisescale_core.estimators.belief import Belief
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate, Reason, State
from noisescale_lab.reproduce.advice import sweep
from noisescale_lab.reproduce.advice.glimpses import Glimpse, glimpses
from noisescale_lab.reproduce.advice.replay import replay
from noisescale_lab.reproduce.advice.replays import AT_CONSTANT_RATE, POLICIES, all_starts
from noisescale_lab.reproduce.advice.run import Outcome, Start
from noisescale_lab.reproduce.advice.sweep import Reference
from noisescale_lab.reproduce.registry import ALL

SHARES = (0.1, 0.25, 0.5, 1.0)
"""Of a run, at which the product is asked."""

SCHEDULES = ("constant", "decaying")
"""Of the learning rate."""


@dataclass(frozen=True, slots=True)
class ReplayEffort:
    """How much is replayed.

    Attributes:
        policies: Names of those that are.
        sweep_seeds: Seeds of the sweep that everything is measured against.
        replay_seeds: Seeds of the replays, apart from the former.
    """

    policies: tuple[str, ...]
    sweep_seeds: tuple[int, ...]
    replay_seeds: tuple[int, ...]

    def of_schedule(self, schedule: str) -> dict[str, Callable[[], Any]]:
        """The policies that make sense at a schedule."""
        names = self.policies if schedule == "decaying" else [n for n in self.policies if n in AT_CONSTANT_RATE]
        return {name: POLICIES[name] for name in names}


@dataclass(frozen=True, slots=True)
class TaskAdvice:
    """All that was tried on a task.

    Attributes:
        task: Its name.
        reference: The sweep's answer.
        outcomes: How the runs ended, by schedule.
        looks: What was seen of runs that nobody advised, by schedule.
    """

    task: str
    reference: Reference
    outcomes: Mapping[str, Sequence[Outcome]]
    looks: Mapping[str, Sequence[Glimpse]]


def try_advice(name: str, effort: ReplayEffort, folder: Path) -> TaskAdvice:
    """Sweep, replay and look; each part is kept in a file of the folder, and read from there if it exists.

    Args:
        name: Of the task.
        effort: How much.
        folder: Of this task alone.
    """
    folder.mkdir(parents=True, exist_ok=True)
    task = ALL[name]()
    reference = sweep.complete(folder / "sweep.csv", [name], seeds=effort.sweep_seeds)[name]
    outcomes: dict[str, list[Outcome]] = {}
    looks: dict[str, list[Glimpse]] = {}
    for schedule in SCHEDULES:
        starts = all_starts(effort.replay_seeds, decays=schedule == "decaying")
        policies = effort.of_schedule(schedule)
        replayed = _kept(folder / f"policies-{schedule}.json", partial(replay, task, reference, starts, policies))
        outcomes[schedule] = [_outcome(row) for row in replayed]
        seen = _kept(folder / f"looks-{schedule}.json", partial(glimpses, task, reference, starts, SHARES))
        looks[schedule] = [_glimpse(row) for row in seen]
    return TaskAdvice(name, reference, outcomes, looks)


def _kept(file: Path, make: Callable[[], Sequence[Any]]) -> list[dict[str, Any]]:
    """Rows of a file, made and written first where there is none; a file is there whole or not at all."""
    if not file.exists():
        unfinished = file.with_suffix(".unfinished")
        unfinished.write_text(json.dumps([asdict(row) for row in make()]))
        unfinished.rename(file)
    rows: list[dict[str, Any]] = json.loads(file.read_text())
    return rows


def _outcome(row: Mapping[str, Any]) -> Outcome:
    return Outcome(**{**row, "start": Start(**row["start"])})


def _glimpse(row: Mapping[str, Any]) -> Glimpse:
    estimates = {name: _estimate(row[name]) for name in ("latest", "last_half")}
    return Glimpse(**{**row, **estimates, "start": Start(**row["start"]), "known": _known(row["known"])})


def _known(row: Mapping[str, Any] | None) -> KnownNoiseScale | None:
    if row is None:
        return None
    belief = row["belief"]
    return KnownNoiseScale(**{**row, "belief": Belief(**{**belief, "weights": tuple(belief["weights"])})})


def _estimate(row: Mapping[str, Any]) -> NoiseScaleEstimate:
    reason = None if row["reason"] is None else Reason(row["reason"])
    return NoiseScaleEstimate(**{**row, "state": State(row["state"]), "reason": reason})
