"""next_seq - 1 = stored + declared lost + rejected, of every stream, and what breaks it is found."""

import asyncio
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from factories import make_batch, make_groups, make_measurements, make_stream
from noisescale_server.api.ingest.streams import batch_of
from noisescale_server.api.ingest.wire_schemas import BatchBody
from noisescale_server.cli import upkeep
from noisescale_server.process.settings import Settings
from noisescale_server.services.ingest import ingestion, ledger

LOST = [{"from": 7, "to": 9, "reason": "memory_full"}, {"from": 10, "to": 10, "reason": "rejected"}]


def full_batch(run_id: UUID) -> dict[str, object]:
    """Ten records: the run's, four measurements, one of layers, three lost, one refused; and one of metrics."""
    metrics = {"seq": [11, 11], "step": [3, 3], "wall_time": [1.0, 1.0], "name": ["a", "b"], "value": [0.5, None]}
    groups = [make_groups(seq=6, step=3)]
    return make_batch(
        run_id=run_id, measurements=make_measurements(), groups=groups, metrics=metrics, lost=LOST, last_seq=11
    )


@pytest.fixture
async def stream_id(session: AsyncSession) -> UUID:
    """A stream with records of every kind."""
    made = uuid4()
    body = BatchBody.model_validate(full_batch(uuid4()), strict=False)
    await ingestion.accept(session, batch_of(made, body))
    return made


async def test_the_run_says_what_became_of_its_records(shared_client: httpx.AsyncClient) -> None:
    run_id = uuid4()
    finish = {"seq": 6, "status": "finished", "wall_time": 1.0}
    finished = make_batch(
        run_id=run_id, measurements=make_measurements(), finish=finish, stream=make_stream(started_at=1e9)
    )
    for body in (full_batch(run_id), finished):
        await shared_client.post(f"/api/v1/streams/{uuid4()}/batches", json=body)

    answer = (await shared_client.get(f"/api/v1/runs/{run_id}/streams")).json()

    assert answer["ledger"] == {
        "is_true": True,
        "num_streams": 2,
        "num_open": 1,
        "num_acked": 17,
        "num_stored": 13,
        "num_lost": 3,
        "num_rejected": 1,
    }


async def test_an_audit_of_true_ledgers_finds_nothing(session: AsyncSession, stream_id: UUID) -> None:
    found = await ledger.audit(session)

    assert found.num_streams >= 1
    assert found.wrong == []


BREAKS = {
    "a row gone": "DELETE FROM measurement WHERE stream_id = :id AND seq = 3",
    "a cursor that went ahead": "UPDATE stream SET next_seq = next_seq + 1 WHERE id = :id",
    "a loss that was not declared": "UPDATE stream SET num_lost = 4, num_stored = 6 WHERE id = :id",
    "a loss forgotten": "DELETE FROM stream_loss WHERE stream_id = :id AND from_seq = 7",
    "a record counted twice": "UPDATE stream SET num_stored = num_stored + 1 WHERE id = :id",
    "more rows than records": "UPDATE stream SET num_stored = 5, next_seq = 10 WHERE id = :id",
    "a row that nobody acknowledged": "UPDATE measurement SET seq = 12 WHERE stream_id = :id AND seq = 5",
    "a refusal forgotten": "UPDATE stream_loss SET reason = 'trimmed' WHERE stream_id = :id AND from_seq = 10",
}


@pytest.mark.parametrize("case", BREAKS)
async def test_an_audit_finds_a_ledger_that_is_not_true(session: AsyncSession, stream_id: UUID, case: str) -> None:
    await session.execute(text(BREAKS[case]), {"id": stream_id})

    found = await ledger.audit(session)

    assert [stream.stream_id for stream in found.wrong] == [stream_id]
    assert f"stream {stream_id} of run" in ledger.sentence(found.wrong[0])


class TestCommands:
    async def test_audit_says_how_many_streams_are_right_and_which_are_wrong(
        self,
        app: FastAPI,
        client: httpx.AsyncClient,
        database_url: str,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        right, wrong = uuid4(), uuid4()
        for made in (right, wrong):
            await client.post(f"/api/v1/streams/{made}/batches", json=full_batch(uuid4()))
        settings = Settings(database_url=database_url)

        code_before = await asyncio.to_thread(upkeep.audit, settings)
        async with app.state.sessions.begin() as opened:
            await opened.execute(text(BREAKS["a row gone"]), {"id": wrong})
        code_after = await asyncio.to_thread(upkeep.audit, settings)

        said = capsys.readouterr()
        assert (code_before, code_after) == (0, 1)
        assert said.out == "2 streams: every record is stored, declared lost or rejected, once\n"
        assert f"stream {wrong} of run" in said.err
        assert str(right) not in said.err
        assert said.err.endswith("1 of 2 streams have a wrong ledger\n")

    async def test_a_new_epoch_is_in_every_answer_from_then_on(
        self, client: httpx.AsyncClient, database_url: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path, body = f"/api/v1/streams/{uuid4()}", make_batch()
        gap = make_batch(run_id=body["run_id"], first_seq=9, measurements=make_measurements(first_seq=9))
        first = (await client.post(f"{path}/batches", json=body)).json()
        before = first["epoch"]

        await asyncio.to_thread(upkeep.new_epoch, Settings(database_url=database_url))

        answers = [
            await client.post(f"{path}/batches", json=body),
            await client.post(f"{path}/batches", json=gap),
            await client.get(path),
        ]
        epochs = {answer.json()["epoch"] for answer in answers}
        assert [answer.status_code for answer in answers] == [200, 409, 200]
        assert len(epochs) == 1
        assert before not in epochs
        assert answers[0].json()["database_id"] == first["database_id"]
        assert f"epoch {epochs.pop()}: jobs send again" in capsys.readouterr().out
