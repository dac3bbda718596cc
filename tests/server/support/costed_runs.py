"""Runs with a course of loss and metrics by the clock, as a job would have sent them."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import httpx

from factories import STARTED_AT, make_batch, make_measurements, make_run, make_stream

LATE = 3600.0


async def costed_run(
    client: httpx.AsyncClient,
    *,
    accuracy: Sequence[float] = (),
    seconds: float = LATE,
    began: float = STARTED_AT,
    run_id: UUID | None = None,
    stream: dict[str, Any] | None = None,
    lrs: Sequence[float] = (0.1,),
    batches: Sequence[float] = (256.0,),
    steps: Sequence[int] = (),
    extra: dict[str, Sequence[float]] | None = None,
    **run: Any,
) -> UUID:
    """The id of a run that logs `accuracy` once in so many seconds, a row of steps each, from `began` on."""
    run_id = run_id or uuid4()
    logged = {"accuracy": list(accuracy), **{name: list(values) for name, values in (extra or {}).items()}}
    at = list(steps) or list(range(max(len(accuracy), 1)))
    rows = make_measurements(steps=at)
    rows["wall_time"] = [began + seconds * (place + 1) for place in range(len(at))]
    rows["lr"] = [lrs[min(place, len(lrs) - 1)] for place in range(len(at))]
    rows["global_batch"] = [batches[min(place, len(batches) - 1)] for place in range(len(at))]
    metrics: dict[str, list[Any]] = {"seq": [], "step": [], "wall_time": [], "name": [], "value": []}
    seq = 2 + len(at)
    for name, values in logged.items():
        for place, value in enumerate(values):
            for key, one in (("seq", seq), ("step", at[place]), ("name", name), ("value", value)):
                metrics[key].append(one)
            metrics["wall_time"].append(began + seconds * (place + 1))
            seq += 1
    parts = {"metrics": metrics} if metrics["seq"] else {}
    batch = make_batch(
        run_id=run_id, run=make_run(**run), stream=stream or make_stream(started_at=began), measurements=rows, **parts
    )
    (await client.post(f"/api/v1/streams/{uuid4()}/batches", json=batch)).raise_for_status()
    return run_id
