"""GET /api/v1/runs/{run_id}/recommendation: the schedule, what limits it, and a trainer's words."""

from uuid import UUID, uuid4

import httpx
import pytest

from factories import make_batch, make_measurements, make_run
from problems import assert_problem


@pytest.fixture(scope="module")
async def halfway(shared_client: httpx.AsyncClient) -> UUID:
    """400 of 800 steps at batch 256, noise scale 100, tokens of sequences of 128."""
    run_id = uuid4()
    batch = make_batch(
        run_id=run_id,
        run=make_run(planned_steps=800, unit="tokens", units_per_example=128.0),
        measurements=make_measurements(steps=range(400), noise_scale=100.0, global_batch=256.0),
    )
    answer = await shared_client.post(f"/api/v1/streams/{uuid4()}/batches", json=batch)
    assert answer.status_code == 200, answer.text
    return run_id


class TestSchedule:
    async def test_the_rest_of_the_run_comes_as_stages(self, shared_client: httpx.AsyncClient, halfway: UUID) -> None:
        found = (await shared_client.get(f"/api/v1/runs/{halfway}/recommendation")).json()

        first = found["schedule"]["stages"][0]
        assert first["step"] == 400
        assert first["examples"] == 400 * 256
        assert found["limited"]["binding"] == []
        assert found["limited"]["batch_size"] == pytest.approx(found["interval"]["value"])
        assert found["schedule"]["why"]
        assert found["schedule_missing"] is None
        assert found["rescaling"][0]["field"] == "learning_rate"
        assert found["rescaling"][0]["after"] == pytest.approx(found["learning_rate"]["recommended"])

    async def test_an_impossible_deadline_says_what_is_possible(
        self, shared_client: httpx.AsyncClient, halfway: UUID
    ) -> None:
        answer = await shared_client.get(f"/api/v1/runs/{halfway}/recommendation", params={"max_steps": 10})

        found = answer.json()
        assert found["schedule"] is None
        assert found["limited"]["batch_size"] is None
        assert found["limited"]["binding"] == ["steps"]
        assert "takes more than" in found["limited"]["text"]

    async def test_a_trainer_gets_plain_text(self, shared_client: httpx.AsyncClient, halfway: UUID) -> None:
        query = {"format": "megatron", "examples_per_step": 1e6}

        answer = await shared_client.get(f"/api/v1/runs/{halfway}/recommendation", params=query)

        assert answer.headers["content-type"].startswith("text/plain")
        assert f'--step-batch-size-schedule "0:256 {400 * 256 * 128}:' in answer.text

    async def test_without_a_schedule_there_are_no_flags_and_the_reason_is_said(
        self, shared_client: httpx.AsyncClient, halfway: UUID
    ) -> None:
        query = {"format": "nanogpt", "max_steps": 10}

        answer = await shared_client.get(f"/api/v1/runs/{halfway}/recommendation", params=query)

        assert_problem(answer, 422, "invalid-input", field="format")
        assert "takes more than" in answer.text
