"""Made-up runs, and what the REST API would say of them in the shapes of docs/rest.md."""

import math
import random
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

START = 1_790_000_000.0
HOSTILE = '<img src=x onerror="alert(1)">$\\href{javascript:alert(1)}{x}$ **b** =1+1'


@dataclass(frozen=True, slots=True)
class FakeRun:
    """What one made-up run is about."""

    number: int
    name: str
    noise_scale: float
    batch: int
    steps: int = 1200
    status: str = "finished"
    project: str = "demo"
    task: str = "digits"
    unit: str = "images"
    example: str = "image"
    units_per_example: int = 1
    optimizer: str = "AdamW"
    tags: tuple[str, ...] = ()
    resolved: bool = True
    gap: tuple[float, float] | None = None
    batch_doubled_at: float | None = None
    lr_dropped_at: float | None = None
    branched_at: float | None = None
    config: dict[str, Any] = field(default_factory=lambda: {"hidden": 64, "seed": 1, "dataset": "digits"})
    lost: int = 0
    tentative_until: float = 0.06
    metrics: tuple[str, ...] = ("eval_loss", "accuracy")
    kinds: tuple[str, ...] = ("simple",)
    measured: dict[str, Any] = field(default_factory=lambda: {"estimator": "micro_batches", "num_ranks": None})
    notices: tuple[tuple[str, str], ...] = ()
    is_calibrated: bool = False
    remarks: str = ""
    diverged_at: int | None = None

    @property
    def id(self) -> str:
        return f"00000000-0000-4000-8000-{self.number:012d}"


RUNS = (
    FakeRun(
        1,
        "gpt-350m-fineweb-s2",
        1490,
        512,
        steps=184_200,
        status="running",
        task="char-lm",
        unit="tokens",
        example="sequence",
        units_per_example=1024,
        tags=("baseline", "bf16"),
        gap=(0.53, 0.57),
        batch_doubled_at=0.22,
        lr_dropped_at=0.76,
        branched_at=12_000 / 184_200,
        kinds=("simple", "adam", "hessian"),
        measured={
            "estimator": "ranks_and_micro_batches",
            "num_ranks": 4,
            "measure_every": 10,
            "notes": ["left out: pos_embedding (a plain parameter)"],
        },
    ),
    FakeRun(
        2,
        "moe-1b3-fineweb-s7",
        9170,
        512,
        is_calibrated=True,
        steps=210_000,
        status="running",
        task="char-lm",
        unit="tokens",
        example="sequence",
        units_per_example=1024,
    ),
    FakeRun(
        3,
        "vit-b16-in21k-s5",
        2730,
        1024,
        steps=56_300,
        status="silent",
        tags=("aug",),
        lost=12,
        notices=(("heterogeneous_ranks", "Ranks see different data, so the noise scale is overstated: shuffle it."),),
    ),
    FakeRun(
        4,
        "ppo-arena-v3-s1",
        23_700,
        65_536,
        is_calibrated=True,
        steps=167_000,
        status="running",
        unit="observations",
        example="observation",
    ),
    FakeRun(5, "resnet50-in1k-s8", 3450, 4096, steps=112_000, optimizer="SGD"),
    FakeRun(
        6,
        "asr-conformer-l-s6",
        800,
        256,
        steps=6300,
        status="running",
        unit="utterances",
        example="utterance",
        resolved=False,
    ),
    FakeRun(7, "vae-svhn-s4", 37.6, 512, steps=32_900, optimizer="Adam"),
    FakeRun(
        8,
        "gpt-125m-fineweb-s7",
        665,
        128,
        steps=182_000,
        status="failed",
        unit="tokens",
        example="sequence",
        units_per_example=1024,
    ),
    FakeRun(9, HOSTILE, 900, 768, steps=4000, tags=(HOSTILE,), config={HOSTILE: HOSTILE}, metrics=(f"loss {HOSTILE}",)),
    FakeRun(10, "digits-mlp-b256", 96.1, 256, steps=1200, optimizer="SGD"),
)


def estimate_json(run: FakeRun) -> dict[str, Any]:
    rest = {"level": 0.95, "num_updates": 512, "num_blocks": 16}
    if not run.resolved:
        bound = round(run.noise_scale * 0.43)
        return {
            "state": "unresolved",
            "value": None,
            "low": bound,
            "high": None,
            "z": 1.2,
            "reason": "interval_unbounded",
            "reason_text": "no upper bound yet",
            "updates_needed": 9000,
            **rest,
        }
    value = run.noise_scale
    return {
        "state": "resolved",
        "value": value,
        "low": value / 1.32,
        "high": value * 1.31,
        "z": 5.1,
        "reason": None,
        "reason_text": None,
        **rest,
    }


def decision_json(run: FakeRun, preference: float = 0.5) -> dict[str, Any]:
    if not run.resolved:
        return {
            "decision": "insufficient_evidence",
            "batch_size": None,
            "low": None,
            "high": None,
            "reason": f"The noise scale is above {run.noise_scale * 0.43:.0f} {run.unit}; no upper bound can be given.",
        }
    best = round_batch(run.noise_scale * 4 ** (preference - 0.5))
    ratio = run.noise_scale / run.batch
    noun = run.unit if run.units_per_example == 1 else run.example + "s"
    if 0.5 <= run.batch / best <= 2:
        kind, reason = (
            "keep",
            "Within 2 × of the best batch for a balanced preference; a change would gain less than 3 %.",
        )
    elif ratio > 1:
        kind, reason = "increase", f"The noise scale is {ratio:.1f} × the batch of {run.batch} {noun}."
    else:
        kind, reason = "decrease", f"The batch of {run.batch} {noun} is {1 / ratio:.1f} × the noise scale."
    return {"decision": kind, "batch_size": best, "low": best / 1.4, "high": best * 1.4, "reason": reason,
            "probability": 0.93, "saving": 1 - 4 / (2 + ratio + 1 / ratio)}  # fmt: skip


def round_batch(batch: float) -> int:
    return min((k * 2**e for e in range(2, 18) for k in (4, 6)), key=lambda b: abs(math.log(b / batch)))


def efficiency_json(value: float | None) -> dict[str, Any]:
    if value is None:
        return {"value": None, "low": None, "high": None}
    return {"value": value, "low": value * 0.87, "high": min(1.0, value * 1.12)}


def run_json(run: FakeRun) -> dict[str, Any]:
    efficiency = run.noise_scale / (run.noise_scale + run.batch) if run.resolved else None
    now = datetime.now(UTC)
    updated = now if run.status == "running" else now - timedelta(minutes=run.number)
    return {
        "id": run.id,
        "project": run.project,
        "task": run.task,
        "name": run.name,
        "tags": list(run.tags),
        "config": run.config,
        "unit": run.unit,
        "example": run.example,
        "units_per_example": run.units_per_example,
        "num_devices": 8,
        "device": "H100",
        "usd_per_device_hour": 2.4,
        "family": None,
        "planned_steps": int(run.steps * 1.36),
        "archived": False,
        "status": run.status,
        "created_at": "2026-11-20T11:00:00Z",
        "updated_at": updated.isoformat(),
        "finished_at": None,
        "optimizer": run.optimizer,
        "estimator": "micro_batches",
        "lr": 6e-4,
        "loss_reduction": "mean_over_examples",
        "first_step": 0,
        "last_step": run.steps - 1,
        "examples": run.steps * run.batch,
        "global_batch": float(run.batch),
        "num_micro_batches": 8,
        **run.measured,
        "kinds": list(run.kinds),
        "remarks": run.remarks,
        "notices": [{"code": code, "text": text} for code, text in run.notices],
        "loss": round(2.847 + 0.01 * run.number, 3) if run.diverged_at is None else None,
        "noise_scale": {**estimate_json(run), "step": (run.diverged_at or run.steps) - 1},
        "divergence": divergence_json(run),
        "example_efficiency": efficiency_json(efficiency),
        "step_efficiency": efficiency_json(None if efficiency is None else 1 - efficiency),
        "decision": decision_json(run),
        "kappa": kappa_json(run),
    }


def divergence_json(run: FakeRun) -> dict[str, Any] | None:
    if run.diverged_at is None:
        return None
    text = f"Loss and gradients are not finite since step {run.diverged_at:,}."
    text += f" The noise scale is until step {run.diverged_at - 1:,}."
    return {"step": run.diverged_at, "loss": True, "gradients": True, "text": text}


def kappa_json(run: FakeRun) -> dict[str, Any]:
    """×/÷ 1.3 (one standard deviation) where it is calibrated, else the published spread."""
    value, reach = (0.97, 1.67) if run.is_calibrated else (1.0, 50.7)
    measurements = 3 if run.is_calibrated else 0
    return {"value": value, "low": value / reach, "high": value * reach, "level": 0.95, "measurements": measurements}


def series_json(
    run: FakeRun, *, points: int = 500, first: int = 0, last: int | None = None, kind: str = "simple"
) -> dict[str, Any]:
    if kind != "simple":
        run = replace(run, noise_scale=4 * run.noise_scale)
    end = run.steps - 1 if last is None else last
    num = max(2, min(points, end - first + 1))
    dice = random.Random(run.number)
    steps = [first + round(i * (end - first) / (num - 1)) for i in range(num)]
    wander = [0.0]
    for _ in steps[1:]:
        wander.append(0.93 * wander[-1] + dice.gauss(0, 0.03))
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for step, noise in zip(steps, wander, strict=True):
        _add_point(columns, run, step, noise - wander[-1] * step / run.steps, dice)
    columns["x"] = columns["step"]
    events = []
    if run.batch_doubled_at:
        events.append(
            {"step": round(run.batch_doubled_at * run.steps), "kind": "batch", "from": run.batch / 2, "to": run.batch}
        )
    if run.lr_dropped_at:
        events.append({"step": round(run.lr_dropped_at * run.steps), "kind": "lr", "from": 6e-4, "to": 2e-4})
    if run.branched_at:
        events.append({"step": round(run.branched_at * run.steps), "kind": "branch"})
    return {
        "run_id": run.id,
        "kind": kind,
        "unit": run.unit,
        "units_per_example": run.units_per_example,
        "x": "step",
        "from": first,
        "to": end,
        "level": 2,
        "steps_per_block": 32,
        "steps_per_point": max(1, (end - first + 1) // num),
        "window_steps": max(8, run.steps // 100),
        "widened": False,
        "num_points": num,
        "points": columns,
        "latest": estimate_json(run),
        "run_average": estimate_json(run),
        "events": [event for event in events if first <= event["step"] <= end],
    }


COLUMNS = (
    "x",
    "step",
    "examples",
    "wall_time",
    "num_updates",
    "value",
    "low",
    "high",
    "state",
    "reason",
    "z",
    "trace_cov",
    "trace_cov_se",
    "grad_sq_norm",
    "grad_sq_norm_se",
    "trace_cov_min",
    "trace_cov_max",
    "grad_sq_norm_min",
    "grad_sq_norm_max",
    "value_min",
    "value_max",
    "loss",
    "loss_min",
    "loss_max",
    "global_batch",
    "lr",
    "flags",
)


def _add_point(columns: dict[str, list[Any]], run: FakeRun, step: int, noise: float, dice: random.Random) -> None:
    part = step / run.steps
    grown = (1 + step / (0.005 * run.steps)) ** 0.56 / (1 + 200) ** 0.56
    value = run.noise_scale * grown * math.exp(noise)
    if run.lr_dropped_at and part < run.lr_dropped_at:
        value *= 0.78
    batch = run.batch / 2 if run.batch_doubled_at and part < run.batch_doubled_at else run.batch
    signal = 0.9 * (1 + step / (0.005 * run.steps)) ** -0.78 * math.exp(dice.gauss(0, 0.05))
    is_open = not run.resolved or (run.gap is not None and run.gap[0] < part < run.gap[1])
    state = "unresolved" if is_open else "tentative" if part < run.tentative_until else "resolved"
    loss = 2.55 + 6.2 * (1 + step / (0.002 * run.steps)) ** -0.46 + dice.gauss(0, 0.006)
    row = {
        "step": step,
        "examples": step * run.batch,
        "wall_time": START + step * 0.62,
        "num_updates": 32,
        "value": None if is_open else value,
        "low": value * 0.72 if is_open else value / 1.25,
        "high": None if is_open else value * 1.32,
        "state": state,
        "reason": "interval_unbounded" if is_open else None,
        "z": 2.0 if is_open else 6.0,
        "trace_cov": signal * value,
        "trace_cov_se": 0.03 * signal * value,
        "grad_sq_norm": signal,
        "grad_sq_norm_se": 0.08 * signal,
        "trace_cov_min": signal * value * 0.7,
        "trace_cov_max": signal * value * 1.4,
        "grad_sq_norm_min": signal * 0.5,
        "grad_sq_norm_max": signal * 1.6,
        "value_min": None if is_open else value * 0.7,
        "value_max": None if is_open else value * 1.4,
        "loss": loss,
        "loss_min": loss - 0.03,
        "loss_max": loss + 0.05,
        "global_batch": float(batch),
        "lr": 2e-4 if run.lr_dropped_at and part > run.lr_dropped_at else 6e-4,
        "flags": 0,
    }
    for name, item in row.items():
        columns[name].append(item)


def groups_json(run: FakeRun, points: int) -> dict[str, Any]:
    dice = random.Random(run.number + 100)
    names = ["embedding", *(f"blocks.{i:02d}" for i in range(0, 24, 3)), HOSTILE if run.name == HOSTILE else "lm_head"]
    steps = [round(i * (run.steps - 1) / (points - 1)) for i in range(points)]
    groups = []
    for rank, name in enumerate(names):
        level = run.noise_scale * (0.4 + 0.25 * rank)
        values = [
            None
            if dice.random() < 0.03 or (run.gap and run.gap[0] < s / run.steps < run.gap[1])
            else level * (0.1 + s / run.steps) ** 0.5 * math.exp(dice.gauss(0, 0.08))
            for s in steps
        ]
        is_open = rank == 2 or not run.resolved
        groups.append(
            {
                "name": name,
                "estimate": {
                    **estimate_json(run),
                    "value": None if is_open else level,
                    "low": level * 0.6 if is_open else level / 1.2,
                    "high": None if is_open else level * 1.3,
                    "state": "unresolved" if is_open else "resolved",
                },
                "trace_cov": level * 0.02,
                "trace_cov_se": level * 0.001,
                "grad_sq_norm": 0.02,
                "grad_sq_norm_se": 0.012 if rank == 1 else 0.002,
                "series": {
                    "step": steps,
                    "value": values,
                    "low": [None if v is None else v / 1.3 for v in values],
                    "high": [None if v is None else v * 1.3 for v in values],
                    "state": ["unresolved" if v is None else "resolved" for v in values],
                    "trace_cov": [None if v is None else v * 0.02 for v in values],
                    "trace_cov_se": [None if v is None else v * 0.001 for v in values],
                    "grad_sq_norm": [-0.001 if v is None else 0.02 for v in values],
                    "grad_sq_norm_se": [0.002 for _ in values],
                },
            }
        )
    return {"groups": groups, "from": 0, "to": run.steps - 1, "next_cursor": None}


def metrics_json(run: FakeRun, num: int = 12) -> dict[str, Any]:
    steps = [round((i + 0.5) * run.steps / num) for i in range(num)]
    metrics = []
    for name in run.metrics:
        fallen = [(1 + step / (0.002 * run.steps)) ** -0.46 for step in steps]
        values = [2.7 + 6.2 * f if "loss" in name else 1 - f for f in fallen]
        times = [START + step * 0.62 + 5 for step in steps]
        metrics.append({"name": name, "step": steps, "value": values, "min": values, "max": values, "wall_time": times})
    return {"names": list(run.metrics), "metrics": metrics}


def streams_json(run: FakeRun) -> dict[str, Any]:
    half = run.steps // 2
    lost = [{"from": 151, "to": 150 + run.lost, "reason": "memory_full"}] if run.lost else []
    common = {"run_id": run.id, "num_rejected": 0, "started_at": "2026-11-20T11:00:00Z", "finished_at": None}
    return {
        "streams": [
            {
                **common,
                "stream_id": "a" * 32,
                "acked_seq": half,
                "num_stored": half - run.lost,
                "num_lost": run.lost,
                "first_step": 0,
                "last_step": half,
                "num_live_ranges": 1,
                "live_steps": [[0, half - 1]],
                "num_lost_ranges": len(lost),
                "lost": lost,
            },
            {
                **common,
                "stream_id": "b" * 32,
                "acked_seq": half,
                "num_stored": half,
                "num_lost": 0,
                "first_step": half,
                "last_step": run.steps - 1,
                "num_live_ranges": 1,
                "live_steps": [[half, run.steps - 1]],
                "num_lost_ranges": 0,
                "lost": [],
            },
        ],
        "next_cursor": None,
    }
