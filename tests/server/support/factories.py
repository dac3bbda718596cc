"""Payloads of the wire format, all keyword, all defaulted; numbers come from a seed."""

import random
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

STARTED_AT = 1_790_000_000.0

ESTIMATE_SUMS = (
    "sum_trace_cov",
    "sum_grad_sq_norm",
    "sum_trace_cov_sq",
    "sum_grad_sq_norm_sq",
    "sum_trace_cov_grad_sq_norm",
)


def make_run(*, project: str = "demo", **changes: Any) -> dict[str, Any]:
    """Body of POST /api/v1/runs, and `run.run` of the wire format."""
    return {"project": project, "task": "digits", "unit": "images", "planned_steps": 1200, **changes}


def make_stream(*, started_at: float = STARTED_AT, **changes: Any) -> dict[str, Any]:
    """`run.stream` of the wire format."""
    return {
        "estimator": "micro_batches",
        "kind": "simple",
        "unit": "images",
        "units_per_example": 1.0,
        "loss_reduction": "mean_over_examples",
        "optimizer": "SGD",
        "batch_size_source": "argument",
        "rank": 0,
        "host": "worker-1",
        "client_version": "0.1.0",
        "started_at": started_at,
        **changes,
    }


def make_measurements(
    *,
    first_seq: int = 2,
    steps: Sequence[int] = range(4),
    log_every: int = 1,
    noise_scale: float = 100.0,
    global_batch: float = 256.0,
    lr: float = 0.1,
    seed: int = 0,
) -> dict[str, list[Any]]:
    """A row for each of `steps`, of `log_every` updates; tr Σ̂ about `noise_scale`, |G|²^ about 1, widely spread."""
    rng = random.Random(f"{seed} {first_seq} {noise_scale}")
    updates = [
        [(rng.gauss(noise_scale, 0.1 * noise_scale), rng.gauss(1.0, 0.5)) for _ in range(log_every)] for _ in steps
    ]
    losses = [[rng.uniform(1.0, 2.0) for _ in range(log_every)] for _ in steps]
    return {
        "seq": list(range(first_seq, first_seq + len(steps))),
        "step": list(steps),
        "num_updates": [log_every for _ in steps],
        "wall_time": [STARTED_AT + step for step in steps],
        "examples": [round((step + 1) * global_batch) for step in steps],
        "micro_batch_size": [global_batch / 8 for _ in steps],
        "num_micro_batches": [8 for _ in steps],
        "global_batch": [global_batch for _ in steps],
        "sum_trace_cov": [sum(x for x, _ in row) for row in updates],
        "sum_grad_sq_norm": [sum(y for _, y in row) for row in updates],
        "sum_trace_cov_sq": [sum(x * x for x, _ in row) for row in updates],
        "sum_grad_sq_norm_sq": [sum(y * y for _, y in row) for row in updates],
        "sum_trace_cov_grad_sq_norm": [sum(x * y for x, y in row) for row in updates],
        "sum_loss": [sum(row) for row in losses],
        "num_loss": [log_every for _ in steps],
        "lr": [lr for _ in steps],
        "flags": [0 for _ in steps],
    }


def with_path(
    rows: dict[str, list[Any]],
    *,
    octaves: float = 0.0,
    start: int = 0,
    momentum: float = 0.0,
    every: int = 1,
    variance: float = 0.0,
) -> dict[str, list[Any]]:
    """The rows with updates of length 1 and a path whose ratio is so many octaves; news at every so many rows.

    The row of a step was logged before its update, so it knows of those before.
    """
    known = [step for step in rows["step"] if step > start and (step - start) % every == 0]
    place = {step: number for number, step in enumerate(known)}
    is_new = [step in place for step in rows["step"]]
    distances = [(step - start) / 4.0**octaves for step in rows["step"]]

    def column(value: Any) -> list[Any]:
        values = value if isinstance(value, list) else [value] * len(is_new)
        return [one if new else None for one, new in zip(values, is_new, strict=True)]

    return rows | {
        "num_path_updates": [every if new else 0 for new in is_new],
        "sum_update_sq_norm": column(float(every)),
        "update_sq_norm_variance": column(variance),
        "path_sq_distance": column(distances),
        "path_start": column(start),
        "momentum": column(momentum),
    }


def with_promise(
    rows: dict[str, list[Any]], *, each: float = 0.01, share: float = 0.5, every: int = 16, error: float = 0.0
) -> dict[str, list[Any]]:
    """The rows with updates that promise so much each, and losses that fall by a share of it.

    News come at every so many rows, of the updates before.
    """
    counts = [every if step and step % every == 0 else 0 for step in rows["step"]]
    return rows | {
        "num_promised_updates": counts,
        "sum_promised_fall": [each * count if count else None for count in counts],
        "promised_fall_variance": [(error * each * count) ** 2 if count else None for count in counts],
        "sum_loss": [20.0 - share * each * step for step in rows["step"]],
        "num_loss": [1 for _ in rows["step"]],
    }


def without_estimates(
    measurements: dict[str, list[Any]], rows: Sequence[int], *, flags: int = 4
) -> dict[str, list[Any]]:
    """The same rows, those named holding no estimate, for the reason that `flags` says."""
    changed = {name: list(column) for name, column in measurements.items()}
    for row in rows:
        for name in ESTIMATE_SUMS:
            changed[name][row] = None
        changed["flags"][row] |= flags
    return changed


def make_groups(
    *, seq: int, step: int, names: Sequence[str] = ("blocks.0", "head"), num_updates: int = 10, seed: int = 0
) -> dict[str, Any]:
    """One group record: sums of `num_updates` updates a layer."""
    rng = random.Random(f"groups {seed} {seq}")
    x = [num_updates * rng.gauss(50.0, 5.0) for _ in names]
    y = [num_updates * rng.gauss(0.5, 0.05) for _ in names]
    return {
        "seq": seq,
        "step": step,
        "wall_time": STARTED_AT + step,
        "names": list(names),
        "num_updates": [num_updates for _ in names],
        "sum_trace_cov": x,
        "sum_grad_sq_norm": y,
        "sum_trace_cov_sq": [1.1 * value * value / num_updates for value in x],
        "sum_grad_sq_norm_sq": [1.1 * value * value / num_updates for value in y],
        "sum_trace_cov_grad_sq_norm": [a * b / num_updates for a, b in zip(x, y, strict=True)],
    }


def make_batch(
    *,
    run_id: UUID | str | None = None,
    first_seq: int = 1,
    last_seq: int | None = None,
    crc32: int = 1,
    with_run: bool | None = None,
    run: dict[str, Any] | None = None,
    stream: dict[str, Any] | None = None,
    measurements: dict[str, list[Any]] | None = None,
    **parts: Any,
) -> dict[str, Any]:
    """Body of POST /api/v1/streams/{id}/batches.

    A batch from record 1 starts with a `run` record; without any part given it holds four measurements.
    """
    body: dict[str, Any] = {
        "proto": 1,
        "run_id": str(run_id or uuid4()),
        "first_seq": first_seq,
        "crc32": crc32,
        "sent_at": "2026-11-20T13:02:40.112Z",
    }
    if with_run if with_run is not None else first_seq == 1:
        body["run"] = {"seq": first_seq, "run": run or make_run(), "stream": stream or make_stream()}
    if measurements is None and not parts:
        measurements = make_measurements(first_seq=first_seq + ("run" in body), steps=range(4))
    if measurements is not None:
        body["measurements"] = measurements
    body |= parts
    body["last_seq"] = last_seq if last_seq is not None else _last_seq(body)
    return body


def _last_seq(body: dict[str, Any]) -> int:
    """The highest record number in the body."""
    numbers = [body["first_seq"]]
    for part in ("run", "finish"):
        if part in body:
            numbers.append(body[part]["seq"])
    for part in ("measurements", "metrics"):
        numbers += body.get(part, {}).get("seq", [])
    numbers += [record["seq"] for record in body.get("groups", [])]
    numbers += [lost["to"] for lost in body.get("lost", [])]
    return max(numbers)
