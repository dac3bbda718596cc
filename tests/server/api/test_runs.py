"""POST, GET, PATCH and DELETE of single runs."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import func, insert, select

from factories import make_batch
from noisescale_server.services import retention
from noisescale_server.storage.alerts.rows import AlertRule
from noisescale_server.storage.platform.tables import Run, Table
from problems import assert_problem
from stored_runs import resolved, store_run

FULL = {
    "project": "demo",
    "task": "digits",
    "name": "digits-mlp-b256",
    "tags": ["baseline", "größer"],
    "config": {"hidden": 64, "lr": 1e-3, "layers": [1, 2], "seed": 2**64 - 1, "note": None},
    "unit": "images",
    "example": "image",
    "units_per_example": 1,
    "num_devices": 1,
    "device": "cpu",
    "usd_per_device_hour": 2.4,
    "family": "image classification",
    "planned_steps": 1200,
}


class TestCreate:
    async def test_everything_that_was_sent_comes_back(self, client: httpx.AsyncClient) -> None:
        run_id = str(uuid4())

        answer = await client.post("/api/v1/runs", json={**FULL, "id": run_id})

        assert answer.status_code == 201
        assert {name: answer.json()[name] for name in FULL} == FULL
        assert answer.json()["id"] == run_id
        assert (await client.get(f"/api/v1/runs/{run_id}")).json() == answer.json()

    async def test_only_the_project_is_needed(self, client: httpx.AsyncClient) -> None:
        answer = await client.post("/api/v1/runs", json={"project": "demo"})

        run = answer.json()
        assert (run["task"], run["tags"], run["config"], run["unit"], run["units_per_example"]) == (
            "default",
            [],
            {},
            "examples",
            1.0,
        )
        assert run["name"] == run["id"][:8]
        assert run["status"] == "running"

    async def test_a_run_without_data_says_that_nothing_is_known(self, client: httpx.AsyncClient) -> None:
        run = (await client.post("/api/v1/runs", json={"project": "demo"})).json()

        assert run["noise_scale"]["state"] == "unresolved"
        assert run["noise_scale"]["value"] is None
        assert run["noise_scale"]["reason"] == "no_estimates"
        assert run["example_efficiency"] is None
        assert run["decision"]["decision"] == "insufficient_evidence"

    async def test_the_same_id_again_gives_the_same_run_unchanged(self, client: httpx.AsyncClient) -> None:
        body = {**FULL, "id": str(uuid4())}
        first = await client.post("/api/v1/runs", json=body)

        second = await client.post("/api/v1/runs", json={**body, "name": "another"})

        assert second.status_code == 200
        assert second.json() == first.json()

    async def test_an_id_of_another_project_is_409_without_detail(self, client: httpx.AsyncClient) -> None:
        body = {**FULL, "id": str(uuid4())}
        await client.post("/api/v1/runs", json=body)

        answer = await client.post("/api/v1/runs", json={**body, "project": "other"})

        assert_problem(answer, 409, "run-id-taken")
        assert "demo" not in answer.text
        assert [item["name"] for item in (await client.get("/api/v1/projects")).json()["projects"]] == ["demo"]

    async def test_many_at_once_create_one_run(self, client: httpx.AsyncClient) -> None:
        body = {**FULL, "id": str(uuid4())}

        answers = await asyncio.gather(*(client.post("/api/v1/runs", json=body) for _ in range(8)))

        assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
        assert len({answer.text for answer in answers}) == 1


class TestRead:
    async def test_an_unknown_run_is_404(self, client: httpx.AsyncClient) -> None:
        answer = await client.get(f"/api/v1/runs/{uuid4()}")

        assert_problem(answer, 404, "run-not-found")

    async def test_efficiencies_come_with_their_intervals(self, client: httpx.AsyncClient, app: FastAPI) -> None:
        run_id = await store_run(app, **resolved(500.0, low=250.0, high=750.0, batch=250.0))

        run = (await client.get(f"/api/v1/runs/{run_id}")).json()

        assert run["example_efficiency"] == pytest.approx({"value": 2 / 3, "low": 1 / 2, "high": 3 / 4})
        assert run["step_efficiency"] == pytest.approx({"value": 1 / 3, "low": 1 / 4, "high": 1 / 2})
        assert run["noise_scale"]["state"] == "resolved"
        assert run["decision"]["batch_size"] is not None

    async def test_flags_say_why_there_is_no_estimate(self, client: httpx.AsyncClient, app: FastAPI) -> None:
        run_id = await store_run(app, latest_flags=4, latest_step=3, noise_scale_reason="no_estimates")

        run = (await client.get(f"/api/v1/runs/{run_id}")).json()

        assert run["noise_scale"]["reason"] == "one_small_batch"

    @pytest.mark.parametrize(
        ("quiet_seconds", "finish_status", "status"),
        [
            (0, None, "running"),
            (50, None, "running"),
            (70, None, "silent"),
            (700, None, "crashed"),
            (700, "finished", "finished"),
            (0, "failed", "failed"),
        ],
    )
    async def test_the_status_follows_from_the_clock(
        self, client: httpx.AsyncClient, app: FastAPI, quiet_seconds: float, finish_status: str | None, status: str
    ) -> None:
        quiet_since = datetime.now(UTC) - timedelta(seconds=quiet_seconds)
        run_id = await store_run(app, updated_at=quiet_since, finish_status=finish_status)

        run = (await client.get(f"/api/v1/runs/{run_id}")).json()
        listed = (await client.get("/api/v1/runs", params={"status": status})).json()

        assert run["status"] == status
        assert [item["id"] for item in listed["runs"]] == [str(run_id)]


class TestChange:
    async def test_what_is_sent_changes_and_the_rest_stays(self, client: httpx.AsyncClient) -> None:
        run = (await client.post("/api/v1/runs", json=FULL)).json()

        answer = await client.patch(
            f"/api/v1/runs/{run['id']}", json={"name": "new", "tags": ["a"], "archived": True, "task": "mnist"}
        )

        assert answer.status_code == 200
        assert answer.json() == {**run, "name": "new", "tags": ["a"], "archived": True, "task": "mnist"}
        assert (await client.get(f"/api/v1/runs/{run['id']}")).json() == answer.json()

    async def test_remarks_keep_their_lines_and_leave_the_notes_of_the_measurement_alone(
        self, client: httpx.AsyncClient, app: FastAPI
    ) -> None:
        run_id = await store_run(app, notes=["left out: pos_embedding"])
        remarks = "warm-up was too short\n\t– see run 7"

        answer = await client.patch(f"/api/v1/runs/{run_id}", json={"remarks": remarks})

        assert (answer.json()["remarks"], answer.json()["notes"]) == (remarks, ["left out: pos_embedding"])
        refused = await client.patch(f"/api/v1/runs/{run_id}", json={"remarks": "a\x00b"})
        assert_problem(refused, 422, "invalid-input")
        assert (await client.get(f"/api/v1/runs/{run_id}")).json()["remarks"] == remarks

    async def test_an_empty_change_changes_nothing(self, client: httpx.AsyncClient) -> None:
        run = (await client.post("/api/v1/runs", json=FULL)).json()

        answer = await client.patch(f"/api/v1/runs/{run['id']}", json={})

        assert answer.json() == run

    async def test_an_unknown_run_is_404(self, client: httpx.AsyncClient) -> None:
        answer = await client.patch(f"/api/v1/runs/{uuid4()}", json={"name": "new"})

        assert_problem(answer, 404, "run-not-found")


class TestDelete:
    async def test_all_its_data_go_and_no_one_elses(self, client: httpx.AsyncClient, app: FastAPI) -> None:
        # of two projects: each has one baseline
        gone, kept = await store_run(app, project="a"), await store_run(app, project="b")
        tables = [table for table in Table.metadata.sorted_tables if "run_id" in table.columns]
        for run_id in (gone, kept):
            await fill_every_table(app, run_id)

        answer = await client.delete(f"/api/v1/runs/{gone}")

        assert (answer.status_code, answer.content) == (204, b"")
        assert_problem(await client.get(f"/api/v1/runs/{gone}"), 404, "run-not-found")
        # what it has measured goes in the background
        await retention.work(app.state.sessions, datetime.now(UTC))
        async with app.state.sessions() as session:
            for table in tables:
                left = (await session.execute(select(table.c.run_id))).scalars().all()
                assert left == [kept], table.name

    async def test_a_second_time_is_404(self, client: httpx.AsyncClient, app: FastAPI) -> None:
        run_id = await store_run(app)
        await client.delete(f"/api/v1/runs/{run_id}")

        answer = await client.delete(f"/api/v1/runs/{run_id}")

        assert_problem(answer, 404, "run-not-found")

    async def test_it_and_ingestion_wait_for_each_other(self, client: httpx.AsyncClient, app: FastAPI) -> None:
        """Whichever comes first, no row of a deleted run is left, and nobody is told of a deadlock."""
        batches = [make_batch() for _ in range(6)]
        runs, streams = [batch["run_id"] for batch in batches], [uuid4() for _ in batches]
        for stream, batch in zip(streams, batches, strict=True):
            await client.post(f"/api/v1/streams/{stream}/batches", json=batch)
        more = [
            make_batch(run_id=run, first_seq=batch["last_seq"] + 1) for run, batch in zip(runs, batches, strict=True)
        ]

        answers = await asyncio.gather(
            *(client.post(f"/api/v1/streams/{s}/batches", json=b) for s, b in zip(streams, more, strict=True)),
            *(client.delete(f"/api/v1/runs/{run}") for run in runs),
        )

        assert {answer.status_code for answer in answers[:6]} <= {200, 410}
        assert [answer.status_code for answer in answers[6:]] == [204] * 6
        await retention.work(app.state.sessions, datetime.now(UTC))
        async with app.state.sessions() as session:
            for table in Table.metadata.sorted_tables:
                if "run_id" in table.columns:
                    assert await session.scalar(select(func.count()).select_from(table)) == 0, table.name


async def fill_every_table(app: FastAPI, run_id: UUID) -> None:
    """One row of the run in every table that can hold one."""
    stream_id = uuid4()
    async with app.state.sessions() as session, session.begin():
        run = await session.get_one(Run, run_id)
        known = {"run_id": run_id, "project_id": run.project_id, "task_id": run.task_id}
        rule = AlertRule(project_id=run.project_id, name="x", kind="stalled")
        session.add(rule)
        await session.flush()
        known["rule_id"] = rule.id
        for table in Table.metadata.sorted_tables:
            if "run_id" in table.columns:
                values = smallest_row(table, known, stream_id) | {"run_id": run_id}
                await session.execute(insert(table).values(values))


def run_bytes(known: dict[str, UUID]) -> bytes:
    """Other ones for each run."""
    return known["run_id"].bytes


def smallest_row(table: object, known: dict[str, UUID], stream_id: UUID) -> dict[str, object]:
    """Values for the columns that need one."""
    by_type = {int: 1, float: 1.0, str: "x", bool: True, datetime: datetime.now(UTC), UUID: stream_id, list: []}
    by_type[bytes] = run_bytes(known)
    return {
        column.name: known[column.name] if column.name in known else by_type[column.type.python_type]
        for column in table.columns  # type: ignore[attr-defined]
        if not column.nullable and column.server_default is None
    }


class TestProjects:
    async def test_projects_come_with_their_tasks_and_the_number_of_runs(
        self, client: httpx.AsyncClient, app: FastAPI
    ) -> None:
        for project, task in (("b", "digits"), ("a", "text"), ("a", "digits"), ("a", "text")):
            await store_run(app, project=project, task=task)

        answer = await client.get("/api/v1/projects")

        assert answer.json()["projects"] == [
            {"name": "a", "num_runs": 3, "tasks": ["digits", "text"]},
            {"name": "b", "num_runs": 1, "tasks": ["digits"]},
        ]
