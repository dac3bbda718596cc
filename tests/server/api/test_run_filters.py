"""GET /api/v1/runs: each filter lets through what it says."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI

from stored_runs import names, resolved, store_run


@pytest.fixture(scope="module")
async def runs(shared_app: FastAPI) -> dict[str, UUID]:
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    small = resolved(100.0, low=90, high=110, batch=32.0)
    large = resolved(900.0, low=800, high=999, batch=512.0)
    return {
        "a": await store_run(shared_app, name="a", tags=["x", "y"], **small),
        "b": await store_run(shared_app, name="b_50%", tags=["x"], **large),
        "c": await store_run(shared_app, name="c", project="other", task="text", updated_at=long_ago),
        "d": await store_run(shared_app, name="d", archived=True, finish_status="finished"),
    }


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["a", "b_50%", "c"]),
        ("archived=true", ["d"]),
        ("project=demo", ["a", "b_50%"]),
        ("project=nothing", []),
        ("task=text", ["c"]),
        ("project=demo&task=text", []),
        ("status=crashed", ["c"]),
        ("status=running&status=crashed", ["a", "b_50%", "c"]),
        ("status=finished&archived=true", ["d"]),
        ("tag=x", ["a", "b_50%"]),
        ("tag=x&tag=y", ["a"]),
        ("q=B_5", ["b_50%"]),
        ("q=%25", ["b_50%"]),
        ("q=_", ["b_50%"]),
        ("batch_min=32&batch_max=32", ["a"]),
        ("batch_min=33", ["b_50%"]),
        ("noise_scale_max=100", ["a"]),
        ("noise_scale_min=100.5&noise_scale_max=1e6", ["b_50%"]),
    ],
)
async def test_each_filter_lets_through_what_it_says(
    shared_client: httpx.AsyncClient, runs: dict[str, UUID], query: str, found: list[str]
) -> None:
    page = await shared_client.get(f"/api/v1/runs?sort=name&{query}")

    assert names(page) == found
    assert page.json()["total"] == len(found)


async def test_ids_choose_runs(shared_client: httpx.AsyncClient, runs: dict[str, UUID]) -> None:
    page = await shared_client.get("/api/v1/runs", params={"ids": f"{runs['c']},{runs['a']},{uuid4()}", "sort": "name"})

    assert names(page) == ["a", "c"]
