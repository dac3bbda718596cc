"""What one task has given, as it is kept in a file, sent, and drawn."""

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noisescale.errors import ConfigError
from noisescale.reproduce.claim.critical_fit import CriticalFit
from noisescale.reproduce.claim.noise_over_run import NoiseWindow

VERSION = 1


@dataclass(frozen=True, slots=True)
class TunedRun:
    """The best learning rate at one batch size, and the noise scale along runs with it.

    Attributes:
        batch: In examples.
        lr: Learning rate.
        steps: To each target, from easy to hard; None where this rate has not met it.
        num_watched: Seeds that were watched.
        windows: Along the run.
    """

    batch: int
    lr: float
    steps: tuple[float | None, ...]
    num_watched: int
    windows: tuple[NoiseWindow, ...]


@dataclass(frozen=True, slots=True)
class TargetResult:
    """One target of a task; noise scales are in examples.

    Attributes:
        target: Evaluation loss.
        points: Batch size and fewest steps over all rates tried there.
        fit: None with fewer than three batch sizes.
        exclusion: Why it does not count in the figures; None where it does.
        near_critical: Mean over steps along the tuned run nearest B_crit.
        ideal_steps: The same with the weights of ideal steps.
        all_batches: Geometric mean over the tuned runs at all batch sizes of their means over steps.
        exact_near_critical: `near_critical` from every single example's gradient.
    """

    target: float
    points: tuple[tuple[int, float], ...]
    fit: CriticalFit | None
    exclusion: str | None
    near_critical: float | None
    ideal_steps: float | None
    all_batches: float | None
    exact_near_critical: float | None


@dataclass(frozen=True, slots=True)
class TaskResult:
    """All of one task.

    Attributes:
        task: Its name.
        unit: What its examples are.
        optimizer: "sgd" or "adam".
        group: "listed", "label_noise" or "own".
        effort: "quick" or "full".
        seed: The first of the seeds.
        num_seeds: Repeats of each setting.
        num_runs: Trainings of the sweep.
        seconds: Wall time.
        runs: One a batch size that met the hardest target.
        targets: From easy to hard.
        sweep_id: On the server; None without one.
    """

    task: str
    unit: str
    optimizer: str
    group: str
    effort: str
    seed: int
    num_seeds: int
    num_runs: int
    seconds: float
    runs: tuple[TunedRun, ...]
    targets: tuple[TargetResult, ...]
    sweep_id: str | None = None


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
        return TaskResult(**content)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{path} holds no result of a task ({error!r}): delete it, and the task runs again"
        ) from error


def _run(content: Mapping[str, Any]) -> TunedRun:
    windows = tuple(NoiseWindow(**one) for one in content["windows"])
    return TunedRun(**{**content, "steps": tuple(content["steps"]), "windows": windows})


def _target(content: Mapping[str, Any]) -> TargetResult:
    points = tuple((int(batch), float(steps)) for batch, steps in content["points"])
    fit = None if content["fit"] is None else CriticalFit(**content["fit"])
    return TargetResult(**{**content, "points": points, "fit": fit})
