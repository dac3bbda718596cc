"""Published sweeps, fitted by the same code as one's own.

The facts are package data: data to the target by batch size in MLPerf's reference convergence points, from
github.com/mlcommons/logging (Apache-2.0).
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from noisescale_server.analysis.batch_sweep.fit import fit_sweep
from noisescale_server.analysis.batch_sweep.refusal import Refusal
from noisescale_server.analysis.batch_sweep.sweep import Repeats, SweepPoint
from noisescale_server.analysis.batch_sweep.sweep_fit import SweepFit

SOURCE = "MLCommons, reference convergence points, github.com/mlcommons/logging"
LICENCE = "Apache-2.0"


@dataclass(frozen=True, slots=True)
class PublishedPoint:
    """Repeats of one batch size.

    Attributes:
        batch_size: In the workload's examples.
        optimizer: As published, or None.
        seeds: Number of runs.
        to_target_mean: Mean data to the quality target, in the benchmark's progress unit.
        to_target_sd: Standard deviation over the runs.
    """

    batch_size: float
    optimizer: str | None
    seeds: int
    to_target_mean: float
    to_target_sd: float


@dataclass(frozen=True, slots=True)
class Workload:
    """One benchmark of one version.

    Attributes:
        suite: MLPerf Training or MLPerf HPC.
        name: The benchmark.
        version: Of the suite.
        points: By batch size.
    """

    suite: str
    name: str
    version: str
    points: tuple[PublishedPoint, ...]


@dataclass(frozen=True, slots=True)
class PublishedSweep:
    """A workload and what its sweep says.

    Attributes:
        workload: The facts.
        outcome: The fit or the refusal. Counts are in the benchmark's own progress unit (epochs, samples or tokens),
            which scales E_min and S_min and leaves B_crit in examples as it is.
    """

    workload: Workload
    outcome: SweepFit | Refusal


def workloads() -> tuple[Workload, ...]:
    """Every workload that ships with this release."""
    text = files("noisescale_server").joinpath("data", "mlperf_convergence.json").read_text(encoding="utf-8")
    return tuple(_workload(row) for row in json.loads(text)["workloads"])


@lru_cache(maxsize=4)
def published_sweeps(level: float = 0.95) -> tuple[PublishedSweep, ...]:
    """Every workload with its fit or refusal; computed once a process."""
    return tuple(PublishedSweep(workload, fit_workload(workload, level=level)) for workload in workloads())


def fit_workload(workload: Workload, *, level: float = 0.95) -> SweepFit | Refusal:
    """The fit of one workload: data to the target divided by the batch size is taken as steps."""
    points = [
        SweepPoint(
            point.batch_size,
            Repeats.from_moments(
                count=point.seeds,
                mean=point.to_target_mean / point.batch_size,
                sd=point.to_target_sd / point.batch_size,
            ),
        )
        for point in workload.points
    ]
    return fit_sweep(points, level=level, counts_steps=False)


def _workload(row: dict[str, Any]) -> Workload:
    points = tuple(PublishedPoint(**point) for point in row["points"])
    return Workload(row["suite"], row["workload"], row["version"], points)
