"""A run whose loss or gradients are not finite: a state of its own, in the list, in the run and in its advice."""

from typing import Any
from uuid import uuid4

import httpx

from factories import ESTIMATE_SUMS, make_batch, make_measurements, make_run, make_stream

LOSS, GRADIENTS = 2, 1


def rows_of(steps: range, *, broken_from: int, what: int = LOSS | GRADIENTS) -> dict[str, list[Any]]:
    """Rows that have no finite loss or gradient from a step on."""
    rows = make_measurements(first_seq=steps.start + 2, steps=steps)
    for place, step in enumerate(steps):
        if step < broken_from:
            continue
        rows["flags"][place] = what
        if what & GRADIENTS:
            for name in ESTIMATE_SUMS:
                rows[name][place] = None
        if what & LOSS:
            rows["sum_loss"][place], rows["num_loss"][place] = None, 0
    return rows


class Job:
    """One run that logs batch by batch."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client, self.run_id, self.stream_id = client, str(uuid4()), str(uuid4())
        self.project = f"project {self.run_id[:8]}"

    async def log(self, steps: range, **parts: Any) -> None:
        finish = parts.pop("finish", None)
        rows = rows_of(steps, **parts)
        ended = {} if finish is None else {"finish": {"seq": steps.stop + 2, "status": finish, "wall_time": 2e9}}
        run = {"run": make_run(project=self.project), "stream": make_stream()} if steps.start == 0 else {}
        first_seq = 1 if steps.start == 0 else steps.start + 2
        body = make_batch(run_id=self.run_id, first_seq=first_seq, measurements=rows, **run, **ended)
        answer = await self.client.post(f"/api/v1/streams/{self.stream_id}/batches", json=body)
        assert answer.status_code == 200, answer.text

    async def read(self, path: str = "") -> Any:
        return (await self.client.get(f"/api/v1/runs/{self.run_id}{path}")).json()

    async def listed(self, **query: Any) -> list[str]:
        found = await self.client.get("/api/v1/runs", params={"project": self.project, **query})
        return [run["id"] for run in found.json()["runs"]]


async def test_a_run_that_ended_in_199_steps_of_nan_says_so_before_anything_else(
    shared_client: httpx.AsyncClient,
) -> None:
    job = Job(shared_client)
    await job.log(range(300), broken_from=101, finish="finished")

    run, advice = await job.read(), await job.read("/recommendation")

    said = "Loss and gradients are not finite since step 101. The noise scale is until step 100."
    assert run["divergence"] == {"step": 101, "loss": True, "gradients": True, "text": said}
    assert (run["status"], run["noise_scale"]["step"]) == ("finished", 100)
    assert (run["decision"]["decision"], run["decision"]["reason"]) == ("insufficient_evidence", said)
    assert (advice["headline"], advice["reason"]) == ("Training has diverged", said)
    assert advice["recommended_batch_size"] is None
    assert "checkpoint" in advice["next_step"]
    assert await job.listed(status="diverged") == [job.run_id]
    assert await job.listed(decision="insufficient_evidence") == [job.run_id]


async def test_batch_by_batch_it_stays_the_first_step_and_ends_with_a_finite_one(
    shared_client: httpx.AsyncClient,
) -> None:
    job = Job(shared_client)
    await job.log(range(40), broken_from=30)
    await job.log(range(40, 60), broken_from=40)
    still = await job.read()
    await job.log(range(60, 70), broken_from=1_000)
    mended = await job.read()

    assert still["divergence"]["step"] == 30
    assert mended["divergence"] is None
    assert await job.listed(status="diverged") == []


async def test_a_loss_scaler_that_skips_a_few_steps_has_not_diverged(shared_client: httpx.AsyncClient) -> None:
    job = Job(shared_client)
    await job.log(range(9), broken_from=0, what=GRADIENTS)
    few = await job.read()
    await job.log(range(9, 10), broken_from=0, what=GRADIENTS)
    many = await job.read()

    assert few["divergence"] is None
    assert many["divergence"] == {
        "step": 0,
        "loss": False,
        "gradients": True,
        "text": "The gradients are not finite since step 0.",
    }


async def test_a_run_that_is_resumed_from_a_checkpoint_begins_anew(shared_client: httpx.AsyncClient) -> None:
    job = Job(shared_client)
    await job.log(range(40), broken_from=30)
    job.stream_id = str(uuid4())
    body = make_batch(
        run_id=job.run_id, stream=make_stream(started_at=3e9), measurements=rows_of(range(25), broken_from=99)
    )

    await shared_client.post(f"/api/v1/streams/{job.stream_id}/batches", json=body)

    assert (await job.read())["divergence"] is None
