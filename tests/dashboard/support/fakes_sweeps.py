"""Made-up sweeps and branches, and what the REST API would say of them in the shapes of docs/rest.md."""

import math
import random
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from fakes_runs import HOSTILE, RUNS

LADDER = {3.30: (2_100.0, 0.46e6), 3.10: (3_900.0, 1.55e6), 2.95: (7_000.0, 4.7e6), 2.85: (12_500.0, 12.4e6)}
"""S_min in steps and E_min in sequences of each target."""


@dataclass(frozen=True, slots=True)
class FakeSweep:
    """What one made-up sweep is about.

    `diverged` are batch sizes without a curve; at `censored` the target was not reached; a `refused` sweep has the
    bound B_crit > `refused`.
    """

    number: int
    name: str
    ladder: dict[float, tuple[float, float]]
    batch_sizes: tuple[float, ...]
    task: str = "char-lm"
    unit: str = "sequences"
    metric: str | None = "val_loss"
    kind: str = "sweep"
    optimizer: str | None = "AdamW"
    edge: tuple[float, ...] = ()
    censored: tuple[float, ...] = ()
    diverged: tuple[float, ...] = ()
    refused: float | None = None
    findings: tuple[str, ...] = ()
    turns: bool = False
    between: dict[str, Any] | None = None
    followed: tuple[dict[str, Any], ...] = ()

    @property
    def id(self) -> str:
        return f"00000000-0000-4000-9000-{self.number:012d}"


SWEEPS = (
    FakeSweep(
        1, "gpt-125m-fineweb, AdamW", LADDER, tuple(2.0**k for k in range(4, 16)), edge=(16,), findings=("grid_edge",)
    ),
    FakeSweep(
        2,
        "digits, eight batch sizes",
        {0.3: (120.0, 120.0 * 9000)},
        (16, 32, 64, 128, 256, 512),
        task="digits",
        unit="images",
        metric=None,
        optimizer="SGD",
        refused=4100.0,
        censored=(512,),
        diverged=(1024,),
    ),
    FakeSweep(3, "branch of gpt-350m-fineweb-s2", {}, (), kind="branch", metric="held-out loss"),
    FakeSweep(4, HOSTILE, {0.5: (100.0, 25_600.0)}, (16, 64, 256, 1024, 4096), unit=HOSTILE[:40], metric=HOSTILE[:40]),
)


def interval(value: float, factor: float) -> dict[str, float]:
    return {"value": value, "low": value / factor, "high": value * factor, "level": 0.95}


def sweep_json(sweep: FakeSweep, *, with_runs: bool = False) -> dict[str, Any]:
    data = {
        "id": sweep.id,
        "project": "demo",
        "task": sweep.task,
        "name": sweep.name,
        "kind": sweep.kind,
        "run_id": RUNS[0].id if sweep.kind == "branch" else None,
        "metric": sweep.metric,
        "goal": "min",
        "targets": list(sweep.ladder),
        "unit": sweep.unit,
        "optimizer": sweep.optimizer,
        "details": branch_details() if sweep.kind == "branch" else {},
        "noise_scale_between_runs": sweep.between,
        "created_at": f"2026-11-{20 - sweep.number}T10:00:00Z",
        "num_runs": len(runs_json(sweep)),
        "of_the_future": 1,
    }
    return {**data, "runs": runs_json(sweep), "followed": list(sweep.followed)} if with_runs else data


def best_rate(sweep: FakeSweep, batch_size: float) -> float:
    _, (min_steps, min_examples) = list(sweep.ladder.items())[-1]
    exact = 2.4e-3 / (1 + min_examples / min_steps / batch_size) ** 0.5
    return float(2.0 ** (round(2 * math.log2(exact)) / 2))


def runs_json(sweep: FakeSweep) -> list[dict[str, Any]]:
    rows = []
    for batch_size in (*sweep.batch_sizes, *sweep.diverged):
        best = best_rate(sweep, batch_size)
        factors = (1, 2, 4) if batch_size in sweep.edge else (0.5, 1, 2)
        for factor in factors:
            rows += [
                {
                    "run_id": f"00000000-0000-4000-a000-{len(rows):012d}",
                    "is_stored": False,
                    "batch_size": batch_size,
                    "lr": best * factor,
                    "seed": seed,
                    "steps": [],
                    "values": [],
                    "status": "infeasible" if batch_size in sweep.diverged else "complete",
                }
                for seed in range(2)
            ]
    return rows


def critical_batch_json(sweep: FakeSweep, targets: list[float]) -> dict[str, Any]:
    rows = [target_json(sweep, target) for target in targets or sweep.ladder]
    return {
        "sweep_id": sweep.id,
        "metric": sweep.metric,
        "goal": "min",
        "unit": sweep.unit,
        "level": 0.95,
        "targets": rows,
    }


def target_json(sweep: FakeSweep, target: float) -> dict[str, Any]:
    # a target that is not the sweep's own is like its first one
    min_steps, min_examples = sweep.ladder.get(target) or next(iter(sweep.ladder.values()))
    critical = min_examples / min_steps
    rng = random.Random(f"{sweep.number} {target}")
    points, residuals = [], []
    for batch_size in sweep.batch_sizes:
        error = rng.gauss(0, 0.045)
        steps = min_steps * (1 + critical / batch_size) * math.exp(error)
        is_reached = batch_size not in sweep.censored
        residuals += [{"batch_size": batch_size, "log_ratio": error}] if is_reached else []
        points.append(
            {
                "batch_size": batch_size,
                "lr": best_rate(sweep, batch_size),
                "num_learning_rates": 3,
                "num_runs": 2,
                "is_at_grid_edge": batch_size in sweep.edge,
                "outcome": "reached" if is_reached else "not_reached",
                "steps": steps if is_reached else None,
                "low": steps / 1.05,
                "high": steps * 1.03 if is_reached else None,
                "examples": steps * batch_size if is_reached else None,
            }
        )
    fit = None if sweep.refused else fit_json(sweep, min_steps, min_examples, residuals)
    return {
        "target": target,
        "points": points,
        "fit": fit,
        "refusal": refusal_json(sweep) if sweep.refused else None,
        "regimes": slopes([p for p in points if p["steps"]]),
        "curve": curve(sweep, min_steps, critical) if fit else [],
    }


def fit_json(sweep: FakeSweep, min_steps: float, min_examples: float, residuals: list[Any]) -> dict[str, Any]:
    return {
        "min_steps": interval(min_steps, 1.06),
        "min_examples": interval(min_examples, 1.08),
        "critical_batch": interval(min_examples / min_steps, 1.18),
        "scatter": 0.05,
        "noise_level": "batch_sizes",
        "rms": 0.045,
        "residuals": residuals,
        "turn": turn_json() if sweep.turns else None,
        "lack_of_fit": {
            "findings": list(sweep.findings),
            "exponent": {"value": 0.98, "low": 0.91, "high": 1.06, "level": 0.95},
            "misfit_probability": None,
            "unequal_noise_probability": None,
            "grid_edge_batch_sizes": list(sweep.edge),
        },
    }


def turn_json() -> dict[str, Any]:
    return {
        "best_batch": {"value": 192.0, "low": None, "high": 263.0, "level": 0.95},
        "rise": 0.08,
        "probability": 0.012,
        "batch_sizes": [64.0, 128.0],
        "start": 16.6,
        "power": 1.5,
        "explanation": "Examples to the target are fewest at a batch of about 192. Left out of B_crit.",
    }


def refusal_json(sweep: FakeSweep) -> dict[str, Any]:
    return {
        "reason": "all_batch_sizes_below_critical",
        "explanation": "Steps fall in proportion up to the largest batch size: B_crit is above 4,100. Add larger ones.",
        "critical_batch": {"low": sweep.refused, "high": None, "level": 0.95},
        "min_steps": None,
        "min_examples": {"low": 1.0e6, "high": 1.2e6, "level": 0.95},
    }


def slopes(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for one, other in pairwise(points):
        slope = math.log(other["steps"] / one["steps"]) / math.log(other["batch_size"] / one["batch_size"])
        regime = "perfect" if slope <= -0.9 else "maximal" if slope >= -0.1 else "diminishing"
        found.append(
            {
                "from_batch_size": one["batch_size"],
                "to_batch_size": other["batch_size"],
                "slope": slope,
                "regime": regime,
            }
        )
    return found


def curve(sweep: FakeSweep, min_steps: float, critical: float) -> list[dict[str, float]]:
    low, high = sweep.batch_sizes[0] / 4, sweep.batch_sizes[-1] * 4
    sizes = [low * (high / low) ** (k / 32) for k in range(33)]
    steps = [min_steps * (1 + critical / size) for size in sizes]
    return [
        {"batch_size": size, "steps": s, "low": s / 1.08, "high": s * 1.08}
        for size, s in zip(sizes, steps, strict=True)
    ]


def plan_json(sweep: FakeSweep, target: float, ratio: float) -> dict[str, Any]:
    proposals = [
        {
            "batch_size": 512.0,
            "learning_rates": [1.4e-3],
            "num_seeds": 3,
            "steps": 38_000.0,
            "examples": 5.8e7,
            "reason": "near the bend, where B_crit is decided",
        },
        {
            "batch_size": 16.0,
            "learning_rates": [1e-4, 7e-5],
            "num_seeds": 1,
            "steps": 820_000.0,
            "examples": 3.4e7,
            "reason": "its best learning rate was the last one tried",
        },
    ]
    return {
        "sweep_id": sweep.id,
        "unit": sweep.unit,
        "level": 0.95,
        "plan": {
            "target": target,
            "wanted_ratio": ratio,
            "present_ratio": None if sweep.refused else 1.39,
            "expected_ratio": None if sweep.refused else 1.29,
            "proposals": proposals,
            "examples": 9.2e7,
            "explanation": "These runs are expected to narrow the interval from × 1.39 to × 1.29.",
        },
    }


def quality_json(sweep: FakeSweep) -> dict[str, Any]:
    rng = random.Random(sweep.number)
    comparisons = []
    for budget, at, slope in (
        ("equal_steps", 4000, -0.02),
        ("equal_examples", 6.4e5, 0.03),
        ("large_budget", None, 0.001),
    ):
        points = []
        for place, batch_size in enumerate(sweep.batch_sizes):
            value = slope * place + rng.gauss(0, 0.003)
            points.append(
                {
                    "batch_size": batch_size,
                    "lr": best_rate(sweep, batch_size),
                    "num_seeds": 2,
                    "mean": 2.9 + value,
                    "standard_error": 0.003,
                    "is_still_improving": budget == "large_budget",
                    "difference": {"value": value, "low": value - 0.01, "high": value + 0.01} if place else None,
                }
            )
        comparisons.append(
            {
                "budget": budget,
                "at": at,
                "points": points,
                "verdict": {"equal_steps": "better", "equal_examples": "worse"}.get(budget, "open"),
                "explanation": f"The largest batch size ends {'better' if slope < 0 else 'worse'} than the smallest.",
            }
        )
    return {"sweep_id": sweep.id, "metric": sweep.metric, "goal": "min", "level": 0.95, "comparisons": comparisons}


def branch_details() -> dict[str, Any]:
    def arm(batch_size: int, difference: float | None, verdict: str | None) -> dict[str, Any]:
        limits = None if difference is None else (difference - 0.006, difference + 0.006)
        return {
            "batch_size": batch_size,
            "lr": 6e-4 * (batch_size / 512) ** 0.5,
            "num_steps": 65536 // batch_size,
            "seconds": 40.0,
            "loss": 2.85 + (difference or 0),
            "num_held_out_batches": 16,
            "difference": difference,
            "low": limits[0] if limits else None,
            "high": limits[1] if limits else None,
            "level": 0.95 if limits else None,
            "verdict": verdict,
        }

    diverged = {**arm(8192, None, "worse"), "loss": None}
    return {
        "meaning": "Batch 1,024 is as good as every smaller one per example (within 0.01), batch 4,096 is worse: here "
        "the local critical batch lies between them.",
        "margin": 0.01,
        "before": 2.862,
        "step": 12_000,
        "noise_scale": {**interval(1490, 1.3), "state": "resolved"},
        "kappa": {"low": 0.69, "high": 2.75},
        "local_critical_batch": {"low": 1024, "high": 4096},
        "cost": {"steps": 272, "examples": 327_680, "seconds": 214.0, "usd": 0.57},
        "arms": [
            arm(512, None, None),
            arm(1024, 0.001, "as_good"),
            arm(2048, 0.008, "open"),
            arm(4096, 0.031, "worse"),
            diverged,
        ],
    }


def hindsight_json() -> dict[str, Any]:
    """As GET /hindsight answers."""
    bins = [
        {"low": low, "high": low + 0.1, "num_answers": 40, "said": low + 0.05, "came_true": low + 0.02,
         "came_true_low": low - 0.1, "came_true_high": low + 0.1}
        for low in (0.5, 0.6, 0.7, 0.8, 0.9)
    ]  # fmt: skip
    records = [
        {"share": share, "num_answers": 60, "decided": 0.8, "right": 0.9, "regret": 0.02, "regret_kept": 0.5,
         "regret_of_price": 0.11}
        for share in (0.1, 0.25, 0.5)
    ]  # fmt: skip
    return {"num_runs": 12, "bins": bins, "records": records}


def published_json() -> dict[str, Any]:
    def points(min_examples: float, critical: float, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
        return [
            {
                "batch_size": size,
                "optimizer": "lamb",
                "seeds": 20,
                "to_target_mean": min_examples * (1 + size / critical),
                "to_target_sd": 0.03 * min_examples,
            }
            for size in sizes
        ]

    bert, dlrm = (256, 1024, 4096, 16384), (32768, 65536, 71680)
    fitted = fit_json(SWEEPS[0], 2.4e6 / 9000, 2.4e6, [{"batch_size": float(size), "log_ratio": 0.01} for size in bert])
    refused = {
        "reason": "all_batch_sizes_below_critical",
        "explanation": "B_crit is above 210,000: only a bound is known.",
        "critical_batch": {"low": 210_000.0, "high": None, "level": 0.95},
        "min_steps": None,
        "min_examples": None,
    }
    misfit = {
        "reason": "misfit",
        "explanation": "The curve misses the points by more than repeats allow.",
        "critical_batch": None,
        "min_steps": None,
        "min_examples": None,
    }
    rows = [
        {
            "suite": "MLPerf Training",
            "workload": "bert",
            "version": "5.1.0",
            "source": "MLCommons, reference convergence points, Apache-2.0",
            "unit": "samples",
            "tokens_per_example": None,
            "has_room_for_turn": False,
            "points": points(2.4e6, 9000, bert),
            "fit": fitted,
            "refusal": None,
        },
        {
            "suite": "MLPerf Training",
            "workload": "dlrm",
            "version": "2.1.0",
            "source": "MLCommons, reference convergence points, Apache-2.0",
            "unit": "epochs",
            "tokens_per_example": None,
            "has_room_for_turn": False,
            "points": points(0.7, 1e6, dlrm),
            "fit": None,
            "refusal": refused,
        },
        {
            "suite": "MLPerf HPC",
            "workload": "oc20",
            "version": "3.0.0",
            "source": "MLCommons, reference convergence points, Apache-2.0",
            "unit": "epochs",
            "tokens_per_example": None,
            "has_room_for_turn": False,
            "points": points(30, 900, (256, 512, 2048)),
            "fit": None,
            "refusal": misfit,
        },
        {
            "suite": "Zhang et al. 2024",
            "workload": "C4 language modelling, 302M",
            "version": "loss 3.07",
            "source": "Zhang et al. 2024, arXiv:2410.21676",
            "unit": "sequences",
            "tokens_per_example": 512,
            "has_room_for_turn": False,
            "points": points(1.1e7, 5000, (64, 256, 1024, 4096)),
            "fit": fit_json(replace(SWEEPS[0], turns=True), 2200.0, 1.1e7, []),
            "refusal": None,
        },
    ]
    return {
        "sweeps": rows,
        "critical_batches": [
            {
                "task": "web-text language modelling",
                "num_parameters": "215M",
                "optimizer": "AdamW",
                "tokens": 1.76e10,
                "critical_batch_tokens": 2.58e6,
                "definition": "E_min / S_min",
                "source": "Li et al. 2025, arXiv:2503.04715",
                "evidence": "computed from the authors' published table of runs",
            }
        ],
        "total": len(rows),
        "source": "MLCommons, reference convergence points, Apache-2.0",
        "licence": "Apache-2.0",
    }
