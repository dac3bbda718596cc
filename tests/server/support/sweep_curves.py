"""Curves of planted sweeps, as they are sent to the server."""

import math
import random
from typing import Any

import httpx

MIN_STEPS, CRITICAL_BATCH, TARGET = 100.0, 256.0, 0.5
BATCH_SIZES = (16, 64, 256, 1024, 4096)
RATES = (0.05, 0.1, 0.2)
GRID = sorted({round(1.05**k) for k in range(220)})


def exact_steps(batch_size: float) -> float:
    return MIN_STEPS * (1 + CRITICAL_BATCH / batch_size)


def curve(batch_size: float, *, lr: float = 0.1, seed: int = 0, noise: float = 0.0, **changes: Any) -> dict[str, Any]:
    """A loss that falls as a power of the step and meets the target after the steps of theory, later at other rates."""
    rng = random.Random(f"{batch_size} {lr} {seed}")
    steps = exact_steps(batch_size) * (1 + 2 * math.log2(lr / 0.1) ** 2) * math.exp(noise * rng.gauss(0, 1))
    ends = next(place for place, step in enumerate(GRID) if step > 1.3 * exact_steps(batch_size))
    values = [TARGET * (step / steps) ** -0.3 for step in GRID[:ends]]
    run = {"batch_size": batch_size, "lr": lr, "seed": seed, "steps": GRID[:ends], "values": values}
    return {**run, **changes}


TURN = {16: 1.45, 32: 1.2}
"""Times the steps of theory: examples are fewest at 64, and 30 % more at 16."""


def turning_curves() -> list[dict[str, Any]]:
    """Three seeds at each of seven batch sizes an octave apart, of which the smallest need more examples again."""
    curves = []
    for size in (16, 32, 64, 128, 256, 512, 1024):
        for seed in range(3):
            one = curve(size, seed=seed, noise=0.02)
            curves.append(one | {"steps": [round(step * TURN.get(size, 1.0)) for step in one["steps"]]})
    return curves


async def sweep_of(client: httpx.AsyncClient, *runs: dict[str, Any], **changes: Any) -> str:
    sweep = {"project": "demo", "task": "planted", "targets": [TARGET], **changes}
    sweep_id = (await client.post("/api/v1/sweeps", json=sweep)).json()["id"]
    answer = await client.post(f"/api/v1/sweeps/{sweep_id}/runs", json={"runs": list(runs)})
    assert answer.status_code == 200, answer.text
    return sweep_id
