"""What the REST API would say of comparisons over made-up tasks, sizes and runs, in the shapes of docs/rest.md."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fakes_runs import HOSTILE, FakeRun, series_json
from fakes_sweeps import SWEEPS, interval


@dataclass(frozen=True, slots=True)
class FakeTask:
    """A made-up task; numbers in its unit, None where they are not known."""

    task: str
    unit: str
    noise_scale: float | None
    critical_batch: float | None
    units_per_example: float = 1.0
    optimizer: str | None = "AdamW"
    left_out: str | None = None
    bound: float | None = None
    factor: float = 1.3


TASKS = (
    FakeTask("digits autoencoder", "images", 38, 34),
    FakeTask("digits MLP", "images", 140, 118, factor=1.25),
    FakeTask("CartPole A2C", "observations", 450, 540, factor=1.5),
    FakeTask("char transformer", "tokens", 6200, 5100, units_per_example=32),
    FakeTask("ResNet-50", "images", 21_000, 13_800),
    FakeTask("PPO arena", "observations", 22_000, 48_000, factor=1.6),
    FakeTask("GPT-350M", "tokens", 1.52e6, 1.41e6, units_per_example=1024),
    FakeTask(
        "iris softmax", "examples", 9, 14, left_out="S_min is below 5 steps, where the theory does not hold: sweep on."
    ),
    FakeTask("speech", "utterances", 800, None, left_out="All batch sizes lie below B_crit.", bound=4100),
    FakeTask(HOSTILE, "examples", None, 300, left_out="No window of its runs is resolved: measure longer runs."),
)
PUBLISHED = (
    ("MNIST", "images", (50, 20), (900, 200)),
    ("SVHN", "images", (300, 50), (4000, 500)),
    ("CIFAR10", "images", (400, 300), (2000, 900)),
    ("ImageNet (ResNet-50)", "images", (4000, 1000), (30_000, 15_000)),
    ("Autoencoder (SVHN)", "images", (2, 10), (2, 40)),
    ("VAE (SVHN)", "images", (10, 10), (10, 200)),
    ("Billion Word LM (LSTM)", "tokens", (1000, 700), (150_000, 100_000)),
    ("Dota 1v1 (PPO)", "observations", (1e5, 5e4), (3e5, 3e6)),
)
"""Table 1 of McCandlish et al. 2018: task, unit, (noise scale, B_crit) at the start and averaged."""


def point(value: float) -> dict[str, Any]:
    return {"form": "point", "value": value, "low": None, "high": None}


def comparison_json(tasks: Sequence[FakeTask] = TASKS) -> dict[str, Any]:
    scored = [one for one in tasks if one.left_out is None]
    return {
        "average": "run_average",
        "tasks": [task_json(one) for one in tasks],
        "statistics": statistics_json(len(scored), is_published=False) if len(scored) > 4 else None,
        "statistics_missing": None if len(scored) > 4 else f"{len(scored)} tasks have both numbers, and 5 are needed.",
        "orders": [],
        "published": {
            "tasks": published_json(),
            "statistics": [{"tasks": "point tasks", "statistics": statistics_json(8, is_published=True)}],
            "orders": orders_json(),
            "article_r_squared": 0.8,
        },
        "published_sweeps": [
            {"suite": "MLPerf Training", "workload": name, "version": "5.1.0", "critical_batch": interval(value, 1.2)}
            for name, value in (("bert", 2900.0), ("llama31_405b", 5018.0), ("resnet", 21_000.0), ("dlrm", 1.1e6))
        ],
        "of_the_future": 1,
    }


def task_json(one: FakeTask) -> dict[str, Any]:
    scale = None
    if one.noise_scale is not None:
        value = one.noise_scale / one.units_per_example
        scale = {"run_average": interval(value, one.factor), "start": interval(value / 6, one.factor)}
    batch = None if one.critical_batch is None else one.critical_batch / one.units_per_example
    both = one.noise_scale is not None and one.critical_batch is not None
    return {
        "project": "demo",
        "task": one.task,
        "family": None,
        "optimizer": one.optimizer,
        "unit": one.unit,
        "units_per_example": one.units_per_example,
        "noise_scale": scale,
        "run_ids": [],
        "source": "sweep",
        "sweep_id": SWEEPS[0].id,
        "metric": None,
        "goal": "min",
        "target": 0.5,
        "critical_batch": None if batch is None else interval(batch, 1.15),
        "critical_batch_bounds": None if one.bound is None else {"low": one.bound, "high": None, "level": 0.95},
        "kappa": interval((one.critical_batch or 0) / (one.noise_scale or 1), 1.5) if both else None,
        "findings": [],
        "explanation": None,
        "left_out": one.left_out,
    }


def statistics_json(num_tasks: int, *, is_published: bool) -> dict[str, Any]:
    """As of the made-up tasks, or those of Table 1's eight points."""

    def between(value: float, low: float, high: float) -> dict[str, float]:
        return {"value": value, "low": low, "high": high, "level": 0.95}

    if is_published:
        found = {
            "r_squared": between(0.7648, 0.28, 0.98),
            "slope": between(0.77, 0.54, 1.16),
            "r_squared_of_identity": between(0.69, 0.0, 0.91),
            "typical_kappa": between(0.58, 0.22, 8.9),
            "median_abs_log10_kappa": between(0.65, 0.3, 1.15),
            "rms_factor": between(7.2, 3.5, 12.0),
            "within_factor_2": between(0.25, 0.07, 0.59),
            "within_factor_3": between(0.375, 0.14, 0.69),
        }
    else:
        found = {
            "r_squared": between(0.99, 0.96, 1.0),
            "slope": between(1.01, 0.94, 1.08),
            "r_squared_of_identity": between(0.99, 0.95, 1.0),
            "typical_kappa": between(0.84, 0.66, 1.2),
            "median_abs_log10_kappa": between(0.08, 0.05, 0.18),
            "rms_factor": between(1.48, 1.16, 1.72),
            "within_factor_2": between(0.857, 0.49, 0.97),
            "within_factor_3": between(1.0, 0.65, 1.0),
        }
    decades = 5.2 if is_published else 4.6
    return {"num_tasks": num_tasks, **found, "decades_of_noise_scale": decades, "decades_of_critical_batch": decades}


def published_json() -> list[dict[str, Any]]:
    common = {"source": "McCandlish et al. 2018", "source_address": "", "evidence": "table", "note": None}
    points = [
        {"task": task, "unit": unit, "form": "point", **common, "noise_scale": point(average[0]),
         "critical_batch": point(average[1]), "noise_scale_at_start": point(start[0]),
         "critical_batch_at_start": point(start[1])}
        for task, unit, start, average in PUBLISHED
    ]  # fmt: skip
    atari = {
        "task": "Atari (7 games, A2C)", "unit": "observations", "form": "range", **common,
        "noise_scale": {"form": "range", "value": None, "low": 1000.0, "high": 20_000.0},
        "critical_batch": {"form": "range", "value": None, "low": 400.0, "high": 8000.0},
        "noise_scale_at_start": None, "critical_batch_at_start": None,
    }  # fmt: skip
    dota = {
        "task": "Dota 5v5 (PPO)", "unit": "observations", "form": "lower_bound", **common,
        "noise_scale": point(2.4e7), "critical_batch": {"form": "lower_bound", "value": None, "low": 8e6, "high": None},
        "noise_scale_at_start": point(1e5), "critical_batch_at_start": None,
    }  # fmt: skip
    return [*points, atari, dota]


def orders_json() -> list[dict[str, Any]]:
    def rung(task: str, low: float, high: float | None) -> dict[str, Any]:
        return {"task": task, "low": low, "high": high}

    images = [rung("MNIST", 900, 900), rung("SVHN", 4000, 4000), rung("ImageNet (ResNet-50)", 3e4, 3e4)]
    play = [
        rung("Atari (7 games, A2C)", 1000, 2e4),
        rung("Dota 1v1 (PPO)", 3e5, 3e5),
        rung("Dota 5v5 (PPO)", 2.4e7, 2.4e7),
    ]
    batches = [rung("Dota 1v1 (PPO)", 3e6, 3e6), rung("Dota 5v5 (PPO)", 8e6, None)]

    def order(chain: str, quantity: str, rungs: list[dict[str, Any]], low: float, high: float | None) -> dict[str, Any]:
        return {
            "chain": chain, "quantity": quantity, "rungs": rungs, "holds": True, "factor_low": low, "factor_high": high
        }  # fmt: skip

    return [
        order("image classification", "noise_scale", images, 33.3, 33.3),
        order("reinforcement learning", "noise_scale", play, 1200, 24_000),
        order("reinforcement learning", "critical_batch", batches, 2.7, None),
    ]


SIZES = {"gpt-30m": 3e7, "gpt-125m": 1.25e8, "gpt-350m": 3.5e8, "gpt-1.3b": 1.3e9}


def sized_tasks_json(size_key: str) -> dict[str, Any]:
    tasks = [
        {"project": "demo", "task": "gpt-fineweb", "num_runs": 4, "num_sizes": 4},
        {"project": "demo", "task": HOSTILE, "num_runs": 3, "num_sizes": 2},
    ]
    return {"size_key": size_key, "tasks": tasks if size_key == "num_parameters" else []}


def model_sizes_json(size_key: str) -> dict[str, Any]:
    runs = []
    for place, (name, size) in enumerate(SIZES.items()):
        best = (3.35, 3.02, 2.80, 2.58)[place]
        loss = [4.6 + (best - 4.6) * k / 23 for k in range(24)]
        wobble = [1 + 0.08 * math.sin(5 * k + place) for k in range(24)]
        runs.append(
            {
                "run_id": f"00000000-0000-4000-b000-{place:012d}",
                "name": name,
                "size": size,
                "loss": loss,
                "noise_scale": [4.6e10 * one**-11.2 * shake for one, shake in zip(loss, wobble, strict=True)],
                "learning_rate": [1e-3] * 24,
                "batch_size": [512.0] * 24,
                "is_warm": [k < 21 for k in range(24)],
            }
        )
    effect = {
        "factor_per_decade": {"value": 1.04, "low": 0.93, "high": 1.17, "level": 0.95},
        "loss_power": interval(11.2, 1.1),
        "interaction": {"value": 0.2, "low": -0.4, "high": 0.7, "level": 0.95},
        "verdict": "no_effect_seen",
        "explanation": "No: ×1.04 per 10 × size at equal loss, 0.93 – 1.17.",
        "common_low": 3.35,
        "common_high": 4.6,
        "num_runs": 4,
        "num_sizes": 4,
        "num_windows": 84,
    }
    return {
        "size_key": size_key, "level": 0.95, "runs": runs, "effect": effect, "has_common_losses": True, "reason": None
    }  # fmt: skip


def compared_runs_json(runs: Sequence[FakeRun], missing: Sequence[str], x: str, points: int) -> dict[str, Any]:
    rows = [aligned_json(run, x, points) for run in runs]
    return {
        "x": x,
        "runs": rows,
        "missing": list(missing),
        "ratios": [ratio_json(row, rows[0], runs[place + 1], runs[0]) for place, row in enumerate(rows[1:])],
    }


def aligned_json(run: FakeRun, x: str, points: int) -> dict[str, Any]:
    series = series_json(run, points=points, first=0, last=run.steps - 1)
    columns = series["points"]
    start = min(columns["wall_time"])
    along = {
        "step": columns["step"],
        "units": [n * run.units_per_example for n in columns["examples"]],
        "time": [moment - start for moment in columns["wall_time"]],
        "loss": columns["loss"],
    }

    def shares(name: str) -> list[float | None]:
        pairs = zip(columns[name], columns["global_batch"], strict=True)
        return [None if scale is None else scale / (scale + batch) for scale, batch in pairs]

    names = ("step", "examples", "wall_time", "value", "low", "high", "state", "loss", "global_batch")
    return {
        "run_id": run.id,
        "unit": run.unit,
        "units_per_example": run.units_per_example,
        "window_steps": 12,
        "points": {
            "x": along[x],
            **{name: columns[name] for name in names},
            "loss_min": columns["loss"],
            "loss_max": columns["loss"],
            "example_efficiency": shares("value"),
            "example_efficiency_low": shares("low"),
            "example_efficiency_high": shares("high"),
        },
    }


def ratio_json(row: dict[str, Any], base: dict[str, Any], run: FakeRun, first: FakeRun) -> dict[str, Any]:
    """As if the ratio were the same all along, over the shorter of the two."""
    value = run.noise_scale / first.noise_scale
    both = run.resolved and first.resolved
    last = min(max(row["points"]["x"]), max(base["points"]["x"]))
    x = [one for one in row["points"]["x"] if one <= last] if both else []
    return {
        "run_id": row["run_id"],
        "to_run_id": base["run_id"],
        "x": x,
        "value": [value] * len(x),
        "low": [value / 1.4] * len(x),
        "high": [value * 1.4] * len(x),
        "is_resolved": [place > len(x) // 10 for place in range(len(x))],
        "mean": interval(value, 1.4) if both else None,
    }
