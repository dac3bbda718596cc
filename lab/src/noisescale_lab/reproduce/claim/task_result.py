"""What one task has given, as it is kept in a file, sent, and drawn."""

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noisescale_core.errors import ConfigError
from noisescale_lab.reproduce.claim.critical_fit import CriticalFit
from noisescale_lab.reproduce.claim.noise_over_run import NoiseWindow
from noisescale_lab.sweep.trial import Goal

VERSION = 3


@dataclass(frozen=True, slots=True)
class TunedRun:
    """The best learning rate at one batch size, and the noise scale along runs with it.

    Attributes:
        batch: In examples.
        lr: Learning rate.
        steps: To each target, from easy to hard; None where this rate has not met it.
        curve: Steps and the metric, averaged over seeds.
        num_watched: Seeds that were watched.
        windows: Along the run, all of one length.
        spans: The same with windows that are not clear joined to their neighbours, which averages are made of.
    """

    batch: int
    lr: float
    steps: tuple[float | None, ...]
    curve: tuple[tuple[int, float], ...]
    num_watched: int
    windows: tuple[NoiseWindow, ...]
    spans: tuple[NoiseWindow, ...]


@dataclass(frozen=True, slots=True)
class TargetResult:
    """One target of a task; batch sizes and noise scales are in examples.

    Attributes:
        target: Value of the metric.
        points: Batch size and fewest steps over all rates tried there.
        fit: None with fewer than three batch sizes.
        exclusion: Why it does not count in the figures; None where it does.
        near_critical: Mean over steps along the tuned run nearest B_crit.
        near_interval: Of it, the scatter of the measuring alone.
        ideal_steps: The same with the weights of ideal steps.
        all_batches: Geometric mean over the tuned runs at all batch sizes of their means over steps, where at least
            half of those are resolved.
        exact_near_critical: `near_critical` from every single example's gradient.
    """

    target: float
    points: tuple[tuple[int, float], ...]
    fit: CriticalFit | None
    exclusion: str | None
    near_critical: float | None
    near_interval: tuple[float, float] | None
    ideal_steps: float | None
    all_batches: float | None
    exact_near_critical: float | None


@dataclass(frozen=True, slots=True)
class AdaptiveBatch:
    """Costs to the hardest target, steps plus examples ÷ B_crit, over that of the constant run.

    Attributes:
        smallest: Batch size of the schedule, examples.
        largest: The same.
        foreseen: What the schedule's stages cost by the theory.
        measured: What the run with the schedule cost; None where it did not meet the target.
    """

    smallest: int
    largest: int
    foreseen: float
    measured: float | None


@dataclass(frozen=True, slots=True)
class TaskResult:
    """All of one task.

    Attributes:
        task: Its name.
        unit: What people count in.
        units_per_example: Units that make one example.
        goal: Whether the metric falls to its targets or rises to them.
        optimizer: "sgd" or "adam".
        group: "listed", "label_noise", "own", or "size", which is in no figure.
        effort: "quick" or "full".
        seed: The first of the seeds.
        num_seeds: Repeats of each setting.
        num_runs: Trainings of the sweep.
        seconds: Wall time.
        runs: One a batch size that met the hardest target.
        targets: From easy to hard.
        adaptive: A batch size that follows the noise scale; None where there was none to follow.
        sweep_id: On the server; None without one.
    """

    task: str
    unit: str
    units_per_example: int
    goal: Goal
    optimizer: str
    group: str
    effort: str
    seed: int
    num_seeds: int
    num_runs: int
    seconds: float
    runs: tuple[TunedRun, ...]
    targets: tuple[TargetResult, ...]
    adaptive: AdaptiveBatch | None = None
    sweep_id: str | None = None

    def in_units(self, examples: float) -> float:
        """A number of examples in the unit that people count in."""
        return examples * self.units_per_example


def run_nearest_critical(result: TaskResult) -> TunedRun | None:
    """The watched run whose batch size is nearest the B_crit of the hardest target."""
    fitted = result.targets[-1].fit
    if fitted is None:
        return None
    return min(result.runs, key=lambda run: abs(math.log(run.batch / fitted.critical_batch)), default=None)


def write(result: TaskResult, path: Path) -> None:
    """Keep a result; a crash leaves the file as it was before."""
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    beside.write_text(json.dumps({"version": VERSION} | dataclasses.asdict(result), indent=1))
    beside.replace(path)


def read(path: Path) -> TaskResult:
    """A result that was kept.

    Raises:
        ConfigError: If the file is none.
    """
    try:
        content = json.loads(path.read_text())
        if content.pop("version") != VERSION:
            raise ValueError("of another version")
        content["runs"] = tuple(_run(one) for one in content["runs"])
        content["targets"] = tuple(_target(one) for one in content["targets"])
        if content["adaptive"] is not None:
            content["adaptive"] = AdaptiveBatch(**content["adaptive"])
        return TaskResult(**content)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{path} holds no result of a task ({error!r}): delete it, and the task runs again"
        ) from error


def _run(content: Mapping[str, Any]) -> TunedRun:
    windows, spans = (tuple(NoiseWindow(**one) for one in content[name]) for name in ("windows", "spans"))
    curve = tuple((int(step), float(value)) for step, value in content["curve"])
    return TunedRun(**{**content, "steps": tuple(content["steps"]), "curve": curve, "windows": windows, "spans": spans})


def _target(content: Mapping[str, Any]) -> TargetResult:
    points = tuple((int(batch), float(steps)) for batch, steps in content["points"])
    fit = None if content["fit"] is None else CriticalFit(**content["fit"])
    near = None if content["near_interval"] is None else tuple(content["near_interval"])
    return TargetResult(**{**content, "points": points, "fit": fit, "near_interval": near})
