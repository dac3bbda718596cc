"""Tasks with a planted sweep and stored runs of a planted noise scale, on a server."""

from typing import Any
from uuid import uuid4

import httpx

from factories import make_batch, make_measurements, make_run, make_stream
from sweep_curves import BATCH_SIZES, CRITICAL_BATCH, TARGET, curve, exact_steps


async def stored_run(
    client: httpx.AsyncClient, *, project: str, task: str, run: dict[str, Any] | None = None, **rows: Any
) -> str:
    """The id of a run of the task with rows as `rows_of` makes them."""
    run_id = str(uuid4())
    described = make_run(project=project, task=task, **(run or {}))
    batch = make_batch(run_id=run_id, run=described, stream=make_stream(), measurements=rows_of(**rows))
    answer = await client.post(f"/api/v1/streams/{uuid4()}/batches", json=batch)
    assert answer.status_code == 200, answer.text
    return run_id


def rows_of(
    *, noise_scale: float = 100.0, later: float | None = None, num_steps: int = 240, **changes: Any
) -> dict[str, Any]:
    """Rows whose training loss meets 0.5 after 200 steps, and whose noise scale is `later` from there on."""
    rows = make_measurements(steps=range(num_steps), noise_scale=noise_scale, **changes)
    rows["sum_loss"] = [TARGET * ((step + 1) / exact_steps(CRITICAL_BATCH)) ** -0.3 for step in range(num_steps)]
    for place in range(200, num_steps if later is not None else 200):
        for name, power in (("sum_trace_cov", 1), ("sum_trace_cov_sq", 2), ("sum_trace_cov_grad_sq_norm", 1)):
            rows[name][place] *= (later / noise_scale) ** power
    return rows


async def planted_task(
    client: httpx.AsyncClient, task: str, *, project: str, noise_scale: float | None, scale: float = 1.0, **sweep: Any
) -> tuple[str, str | None]:
    """A sweep whose B_crit is 256 × `scale`, with a stored run at that batch size; ids of both."""
    curves = [curve(size, seed=seed, noise=0.03) for size in BATCH_SIZES for seed in range(3)]
    for one in curves:
        one["batch_size"] *= scale
    given: list[dict[str, Any]] = list(curves)
    run_id = None
    if noise_scale is not None:
        run_id = await stored_run(client, project=project, task=task, noise_scale=noise_scale)
        given.append({"run_id": run_id, "batch_size": 256 * scale, "lr": 0.1, "seed": 9})
    body = {"project": project, "task": task, "targets": [TARGET], "optimizer": "SGD", **sweep}
    sweep_id = (await client.post("/api/v1/sweeps", json=body)).json()["id"]
    answer = await client.post(f"/api/v1/sweeps/{sweep_id}/runs", json={"runs": given})
    assert answer.status_code == 200, answer.text
    return sweep_id, run_id
