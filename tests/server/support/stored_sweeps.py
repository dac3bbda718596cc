"""Sweeps of runs that are stored."""

from typing import Any
from uuid import UUID, uuid4

import httpx


async def store_sweep(client: httpx.AsyncClient, name: str, trials: dict[UUID, float], **fields: Any) -> UUID:
    """A sweep of stored runs, by their batch sizes."""
    sweep_id = uuid4()
    body = {"id": str(sweep_id), "project": "demo", "task": "digits", "name": name, **fields}
    created = await client.post("/api/v1/sweeps", json=body)
    assert created.status_code == 201, created.text
    runs = [
        {"run_id": str(run_id), "batch_size": batch, "lr": 0.1, "seed": 0, "status": "complete"}
        for run_id, batch in trials.items()
    ]
    attached = await client.post(f"/api/v1/sweeps/{sweep_id}/runs", json={"runs": runs})
    assert attached.status_code < 300, attached.text
    return sweep_id
