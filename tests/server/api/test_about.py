"""GET /api/v1/server: version, database, and what each project has stored."""

import re
from importlib.metadata import version
from typing import Any
from uuid import uuid4

import httpx

from factories import make_batch, make_measurements, make_run


async def send(client: httpx.AsyncClient, project: str, num_steps: int) -> None:
    batch = make_batch(
        run_id=uuid4(), run=make_run(project=project), measurements=make_measurements(steps=range(num_steps))
    )
    answer = await client.post(f"/api/v1/streams/{uuid4()}/batches", json=batch)
    assert answer.status_code == 200, answer.text


async def test_each_project_says_its_runs_its_records_and_its_part_of_the_database(client: httpx.AsyncClient) -> None:
    await send(client, "large", 300)
    await send(client, "large", 100)
    await send(client, "small", 100)

    answer = await client.get("/api/v1/server")

    found: dict[str, Any] = answer.json()
    large, small = found["projects"]
    assert (large["project"], large["num_runs"], small["project"], small["num_runs"]) == ("large", 2, "small", 1)
    assert large["num_records"] > 2 * small["num_records"] > 0
    share = large["num_records"] / (large["num_records"] + small["num_records"])
    assert large["num_bytes"] > 0
    assert abs(large["num_bytes"] / (large["num_bytes"] + small["num_bytes"]) - share) < 1e-3


async def test_it_says_which_version_answers_and_which_database(client: httpx.AsyncClient) -> None:
    found = (await client.get("/api/v1/server")).json()

    assert found["version"] == version("noisescale-server")
    assert re.match(r"\d+\.\d+", found["database"])
    assert found["projects"] == []
