"""GET /api/v1/hindsight: stated odds against what came true, by the sweeps of a project."""

from typing import Any
from uuid import uuid4

import httpx

from calibrating_sweeps import planted_sweep


async def account(client: httpx.AsyncClient, project: str) -> dict[str, Any]:
    found: dict[str, Any] = (
        (await client.get("/api/v1/hindsight", params={"project": project})).raise_for_status().json()
    )
    return found


async def test_runs_of_a_sweep_are_judged_by_its_critical_batch(shared_client: httpx.AsyncClient) -> None:
    """B_crit 256, noise scale 128, batch 256: at its own price that is the best batch."""
    project = f"hindsight {uuid4()}"
    await planted_sweep(shared_client, project=project, task="one")

    found = await account(shared_client, project)

    assert found["num_runs"] == 3
    assert [one["share"] for one in found["records"]] == [0.1, 0.25, 0.5]
    assert {one["num_answers"] for one in found["records"]} == {15}
    for one in found["records"]:
        # the batch in use costs nothing more where a step is worth a critical batch, and B = r knows that too
        assert one["regret"] < one["regret_kept"]
        assert 0 <= one["decided"] <= 1
    assert sum(one["num_answers"] for one in found["bins"]) <= 45
    for one in found["bins"]:
        assert one["low"] <= one["said"] <= one["high"]
        assert one["came_true_low"] <= one["came_true"] <= one["came_true_high"]


async def test_a_project_without_sweeps_has_no_record(shared_client: httpx.AsyncClient) -> None:
    assert await account(shared_client, f"nothing {uuid4()}") == {"num_runs": 0, "bins": [], "records": []}
