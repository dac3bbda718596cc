"""Published sweeps, fitted by the same code as one's own.

The facts are package data: data to the target by batch size in MLPerf's reference convergence points, from
github.com/mlcommons/logging (Apache-2.0); and sweeps and critical batches of language models, each with its source, of
which only those are given out that were read there or computed from it.
"""

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from typing import Any

from noisescale_server.analysis.sweeps.batch_sweep.fit import fit_sweep
from noisescale_server.analysis.sweeps.fitting.refusal import Refusal
from noisescale_server.analysis.sweeps.fitting.sweep_fit import SweepFit
from noisescale_server.analysis.sweeps.points.sweep import Repeats, SweepPoint

SOURCE = "MLCommons, reference convergence points, github.com/mlcommons/logging"
LICENCE = "Apache-2.0"

MLPERF = "mlperf_convergence.json"
LANGUAGE_MODELS = "language_model_batch_sizes.json"


@dataclass(frozen=True, slots=True)
class PublishedPoint:
    """Repeats of one batch size.

    Attributes:
        batch_size: In the workload's examples.
        optimizer: As published, or None.
        seeds: Number of runs.
        to_target_mean: Mean data to the quality target, in the workload's unit.
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
        suite: MLPerf Training, MLPerf HPC, or a paper.
        name: The benchmark, or what was trained.
        version: Of the suite, or the target.
        points: By batch size.
        unit: What data to the target are counted in: epochs, samples, tokens or sequences.
        source: Where the numbers stand.
        tokens_per_example: Of a language model; None where examples are no sequences of one length.
    """

    suite: str
    name: str
    version: str
    points: tuple[PublishedPoint, ...]
    unit: str
    source: str = f"{SOURCE}, {LICENCE}"
    tokens_per_example: int | None = None


@dataclass(frozen=True, slots=True)
class PublishedModelBatch:
    """A critical batch of a language model without its sweep.

    Attributes:
        task: What was trained on.
        num_parameters: As published.
        optimizer: As published.
        tokens: To the target at a small batch.
        critical_batch_tokens: B_crit.
        definition: What "critical" means here.
        source: Where it was published.
        evidence: How the number was made.
    """

    task: str
    num_parameters: str
    optimizer: str
    tokens: float
    critical_batch_tokens: float
    definition: str
    source: str
    evidence: str


@dataclass(frozen=True, slots=True)
class PublishedSweep:
    """A workload and what its sweep says.

    Attributes:
        workload: The facts.
        outcome: The fit or the refusal. Counts are in the workload's unit, which scales E_min and S_min and
            leaves B_crit in examples as it is.
    """

    workload: Workload
    outcome: SweepFit | Refusal


def workloads() -> tuple[Workload, ...]:
    """Every workload that ships with this release: MLPerf's, then language models'."""
    of_models = _facts(LANGUAGE_MODELS)
    return (
        *(_workload(row) for row in _facts(MLPERF)["workloads"]),
        *(_language_model(row, of_models["sources"]) for row in of_models["sweeps"]),
    )


@lru_cache(maxsize=1)
def published_critical_batches() -> tuple[PublishedModelBatch, ...]:
    """The critical batches of language models that are verified."""
    facts = _facts(LANGUAGE_MODELS)
    return tuple(
        PublishedModelBatch(
            task=row["task"],
            num_parameters=row["num_parameters"],
            optimizer=row["optimizer"],
            tokens=row["tokens_at_target_min"],
            critical_batch_tokens=row["critical_batch_tokens"],
            definition=row["definition"],
            source=facts["sources"][row["source"]],
            evidence=row["evidence"],
        )
        for row in facts["critical_batch_points"]
        if row["verified"]
    )


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
    unit = row["unit"]
    if unit == "steps":
        # of a batch each: what the others call samples
        points, unit = tuple(_in_samples(point) for point in points), "samples"
    return Workload(row["suite"], row["workload"], row["version"], points, unit)


def _in_samples(point: PublishedPoint) -> PublishedPoint:
    mean, sd = (point.batch_size * value for value in (point.to_target_mean, point.to_target_sd))
    return replace(point, to_target_mean=mean, to_target_sd=sd)


def _language_model(row: dict[str, Any], sources: dict[str, str]) -> Workload:
    """The best run of each batch size, none repeated; data to the target are sequences."""
    pairs = zip(row["batch_size_sequences"], row["steps_to_target"], strict=True)
    points = tuple(PublishedPoint(size, row["optimizer"], 1, size * steps, 0.0) for size, steps in pairs)
    source = sources[row["source"]]
    return Workload(
        suite=source.split(",")[0],
        name=f"{row['task']}, {row['num_parameters']}",
        version=f"loss {row['target']['value']:g}",
        points=points,
        unit="sequences",
        source=f"{source}; {row['evidence']}",
        tokens_per_example=row["sequence_length"],
    )


def _facts(name: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(files("noisescale_server").joinpath("data", name).read_text(encoding="utf-8"))
    return facts
