"""A sweep with a planted B_crit and stored runs of a planted noise scale, so that κ is known."""

from typing import Any

import httpx

from compared_tasks import stored_run
from sweep_curves import BATCH_SIZES, TARGET, curve

NOISE_SCALE = 128.0
"""Of every stored run; B_crit of the planted sweep is 256, so κ is 2."""


async def planted_sweep(
    client: httpx.AsyncClient, *, project: str, task: str, run: dict[str, Any] | None = None, scale: float = 1.0
) -> tuple[str, list[str]]:
    """A sweep with curves at five batch sizes and three stored runs at the best rate of one; ids of sweep and runs."""
    body = {"project": project, "task": task, "targets": [TARGET], "optimizer": "SGD"}
    sweep_id = (await client.post("/api/v1/sweeps", json=body)).json()["id"]
    runs = [
        await stored_run(client, project=project, task=task, run=run, noise_scale=NOISE_SCALE, seed=seed)
        for seed in range(3)
    ]
    curves = [curve(size, seed=seed, noise=0.03) for size in BATCH_SIZES for seed in range(3)]
    for one in curves:
        one["batch_size"] *= scale
    given = [{"run_id": one, "batch_size": 256 * scale, "lr": 0.1, "seed": 9 + place} for place, one in enumerate(runs)]
    answer = await client.post(f"/api/v1/sweeps/{sweep_id}/runs", json={"runs": [*curves, *given]})
    assert answer.status_code == 200, answer.text
    return sweep_id, runs
