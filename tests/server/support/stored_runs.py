"""Runs put straight into the tables, with the columns that ingestion would fill."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import httpx
from fastapi import FastAPI
from sqlalchemy import and_, case, func, update

from noisescale_server.services.recommendation import decisions
from noisescale_server.services.series.whole_run import WholeRuns
from noisescale_server.storage.platform.tables import Run
from noisescale_server.storage.runs import runs, trials
from noisescale_server.storage.runs.runs import NewRun

MISFIT = case(
    (
        and_(Run.noise_scale_state == "resolved", Run.noise_scale_value > 0, Run.latest_global_batch > 0),
        func.abs(func.ln(Run.latest_global_batch / Run.noise_scale_value)),
    )
)


async def store_run(app: FastAPI, *, project: str = "demo", task: str = "digits", **columns: Any) -> UUID:
    """The id of a new run with these columns."""
    run_id = columns.pop("id", None) or uuid4()
    async with app.state.sessions() as session, session.begin():
        await runs.create_if_absent(session, NewRun(id=run_id, project=project, task=task, example="image"))
        await session.execute(update(Run).where(Run.id == run_id).values(updated_at=datetime.now(UTC)))
        if "updated_at" in columns:
            columns = {"heard_at": columns["updated_at"]} | columns
        if columns:
            await session.execute(update(Run).where(Run.id == run_id).values(columns))
            await session.execute(update(Run).where(Run.id == run_id).values(misfit=MISFIT))
            await trials.file_anew(session, [run_id])
    return run_id


def resolved(value: float = 500.0, *, low: float = 400.0, high: float = 650.0, batch: float = 250.0) -> dict[str, Any]:
    """Columns of a run whose noise scale is resolved."""
    return {
        "noise_scale_state": "resolved",
        "noise_scale_value": value,
        "noise_scale_low": low,
        "noise_scale_high": high,
        "noise_scale_z": 7.5,
        "noise_scale_num_updates": 512,
        "noise_scale_num_blocks": 16,
        "latest_global_batch": batch,
        "example_efficiency": value / (value + batch),
        "latest_step": 900,
        "latest_examples": 225_000,
        "latest_loss": 0.31,
        "latest_lr": 0.1,
        "optimizer": "SGD",
        "first_step": 0,
        "window_is_stale": False,
    }


async def judge_all(app: FastAPI) -> None:
    """Do what every server does in turn, a few runs a second: keep the decision of each run that is not judged yet."""
    while True:
        async with app.state.sessions() as session:
            waiting = await decisions.of_a_round(session)
        if not waiting:
            return
        for run_id in waiting:
            async with app.state.sessions.begin() as session:
                await decisions.refresh(session, run_id, WholeRuns())


async def names_of_all_pages(client: httpx.AsyncClient, *, limit: int, **query: Any) -> list[str]:
    """Names of the listed runs, page after page."""
    names: list[str] = []
    cursor: str | None = None
    while True:
        page = await client.get(
            "/api/v1/runs", params={**query, "limit": limit} | ({"cursor": cursor} if cursor else {})
        )
        assert page.status_code == 200, page.text
        names += [run["name"] for run in page.json()["runs"]]
        cursor = page.json()["next_cursor"]
        if cursor is None:
            return names


def names(page: httpx.Response) -> Sequence[str]:
    """Names of the runs of one page."""
    assert page.status_code == 200, page.text
    return [run["name"] for run in page.json()["runs"]]
