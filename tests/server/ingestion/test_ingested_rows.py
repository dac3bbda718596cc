"""How far a batch moves a stream on, and what a run shows of its newest row."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from factories import make_batch, make_groups, make_measurements, make_stream, without_estimates
from noisescale_core.estimators.flags import Flags
from noisescale_server.api.ingest.streams import batch_of
from noisescale_server.api.ingest.wire_schemas import BatchBody
from noisescale_server.services.ingest import ingestion
from noisescale_server.services.ingest.ingestion import Accepted, Batch
from noisescale_server.storage.platform.row_tables import Measurement
from noisescale_server.storage.platform.tables import Run, Stream
from noisescale_server.storage.runs import streams
from noisescale_server.storage.runs.streams import Loss

FINISH = {"status": "finished", "wall_time": 1.8e9}


def batch(stream_id: UUID | None = None, **parts: Any) -> Batch:
    return batch_of(stream_id or uuid4(), BatchBody.model_validate(make_batch(**parts), strict=False))


async def accept(session: AsyncSession, stream_id: UUID, **parts: Any) -> Accepted:
    return await ingestion.accept(session, batch(stream_id, **parts))


def full(**parts: Any) -> Batch:
    """Records 1 to 14: the run's, four rows, two of layers, metrics, five lost and the end."""
    metrics = {"seq": [8, 8], "step": [3, 3], "wall_time": [1.0, 1.0], "name": ["a", "b"], "value": [0.5, None]}
    lost = [{"from": 9, "to": 11, "reason": "memory_full"}, {"from": 12, "to": 13, "reason": "rejected"}]
    groups = [make_groups(seq=6, step=3), make_groups(seq=7, step=3)]
    return batch(
        measurements=make_measurements(),
        metrics=metrics,
        groups=groups,
        lost=lost,
        finish={"seq": 14, **FINISH},
        **parts,
    )


def numbers(found: Batch) -> dict[str, list[Any]]:
    """The record numbers in each part of a batch."""
    return {
        "run": [found.run.seq] if found.run else [],
        "measurements": list(found.measurements.seq) if found.measurements else [],
        "metrics": list(found.metrics.seq) if found.metrics else [],
        "groups": [one.seq for one in found.groups],
        "lost": [(one.from_seq, one.to_seq) for one in found.lost],
        "finish": [found.finish.seq] if found.finish else [],
    }


class TestSince:
    @pytest.mark.parametrize("seq", range(16))
    def test_what_comes_before_a_record_is_dropped_of_every_part(self, seq: int) -> None:
        whole = numbers(full())

        found = numbers(full().since(seq))

        expected = {name: [one for one in whole[name] if name == "lost" or one >= seq] for name in whole}
        expected["lost"] = [(max(first, seq), last) for first, last in whole["lost"] if last >= seq]
        assert found == expected

    def test_its_numbers_stay_as_they_were_sent(self) -> None:
        found = full().since(9)

        assert (found.first_seq, found.last_seq, [one.reason for one in found.lost]) == (
            1,
            14,
            ["memory_full", "rejected"],
        )


async def test_a_column_of_one_value_and_one_of_several_are_stored_row_by_row(session: AsyncSession) -> None:
    stream_id, run_id, one_value = uuid4(), uuid4(), make_measurements(steps=range(5))
    several = one_value | {"lr": [0.5, None, 0.5, 0.25, 0.5], "flags": [0, 0, 4, 0, 0]}

    await accept(session, stream_id, run_id=run_id, measurements=one_value)
    later = several | {"seq": list(range(7, 12))}
    await accept(session, stream_id, run_id=run_id, first_seq=7, with_run=False, measurements=later)

    stored = (
        await session.scalars(select(Measurement).where(Measurement.stream_id == stream_id).order_by(Measurement.seq))
    ).all()
    for name in (*several.keys() - {"seq"}, "momentum"):
        sent = [*one_value.get(name, [None] * 5), *several.get(name, [None] * 5)]
        assert [getattr(row, name) for row in stored] == sent, name


async def ledger_of(session: AsyncSession, stream_id: UUID) -> dict[str, Any]:
    row = (await session.scalars(select(Stream).where(Stream.id == stream_id))).one()
    await session.refresh(row)
    names = (
        *("next_seq", "last_first_seq", "num_stored", "num_lost", "num_rejected"),
        *("num_measurements", "num_estimates", "first_step", "last_step"),
    )
    return {name: getattr(row, name) for name in names}


class TestTheLedger:
    async def test_each_record_counts_once_also_where_a_part_of_a_batch_came_before(
        self, session: AsyncSession
    ) -> None:
        stream_id, run_id = uuid4(), uuid4()
        rows = without_estimates(make_measurements(), [1])
        await accept(session, stream_id, run_id=run_id, measurements=rows)
        first = await ledger_of(session, stream_id)
        lost = [{"from": 4, "to": 9, "reason": "memory_full"}, {"from": 10, "to": 12, "reason": "rejected"}]
        again = make_measurements(first_seq=13, steps=[9, 4], log_every=2)
        await accept(
            session, stream_id, run_id=run_id, first_seq=4, lost=lost, measurements=again, finish={"seq": 15, **FINISH}
        )

        expected = {
            "next_seq": 6,
            "last_first_seq": 1,
            "num_stored": 5,
            "num_lost": 0,
            "num_rejected": 0,
            "num_measurements": 4,
            "num_estimates": 3,
            "first_step": 0,
            "last_step": 3,
        }
        assert first == expected
        assert await ledger_of(session, stream_id) == expected | {
            "next_seq": 16,
            "last_first_seq": 4,
            "num_stored": 8,
            "num_lost": 4,
            "num_rejected": 3,
            "num_measurements": 6,
            "num_estimates": 5,
            "last_step": 9,
        }

    async def test_a_batch_without_rows_counts_none(self, session: AsyncSession) -> None:
        stream_id, run_id = uuid4(), uuid4()
        await accept(session, stream_id, run_id=run_id)
        before = await ledger_of(session, stream_id)
        lost = [{"from": 6, "to": 6, "reason": "memory_full"}]

        await accept(session, stream_id, run_id=run_id, first_seq=6, lost=lost)

        changed = {"next_seq": 7, "last_first_seq": 6, "num_lost": 1}
        assert await ledger_of(session, stream_id) == before | changed

    @pytest.mark.parametrize(
        ("steps", "log_every", "first_step"), [([10, 20], 1, 10), ([10, 20], 3, 8), ([1], 5, 0), ([0], 1, 0)]
    )
    async def test_a_row_covers_the_updates_before_its_step(
        self, session: AsyncSession, steps: list[int], log_every: int, first_step: int
    ) -> None:
        stream_id = uuid4()

        await accept(session, stream_id, measurements=make_measurements(steps=steps, log_every=log_every))

        assert (await ledger_of(session, stream_id))["first_step"] == first_step


async def shown(session: AsyncSession, run_id: UUID) -> Run:
    return await session.get_one(Run, run_id, populate_existing=True)


class TestTheRun:
    async def test_it_shows_its_newest_row(self, session: AsyncSession) -> None:
        run_id, stream_id = uuid4(), uuid4()
        rows = make_measurements(steps=[3, 7, 5], log_every=2)
        for name, column in {
            "examples": [1, 2, 3],
            "lr": [0.1, 0.2, 0.3],
            "global_batch": [8.0, 16.0, 32.0],
            "num_micro_batches": [4, 5, 6],
            "flags": [1, 2, 16],
        }.items():
            rows[name] = column

        await accept(session, stream_id, run_id=run_id, measurements=rows)

        row = await shown(session, run_id)
        assert (row.latest_step, row.latest_examples, row.latest_lr) == (5, 3, 0.3)
        assert (row.latest_global_batch, row.latest_num_micro_batches, row.latest_flags) == (16.0, 6, 16)
        assert row.latest_loss == pytest.approx(rows["sum_loss"][-1] / 2)
        assert row.first_step == 2

    async def test_its_batch_is_that_of_most_steps_and_not_of_the_rest_of_an_epoch(self, session: AsyncSession) -> None:
        run_id, stream_id = uuid4(), uuid4()
        rows = make_measurements(steps=range(4), global_batch=256.0)
        rows["global_batch"][-1], rows["flags"][-1] = 24.0, Flags.SMALLER_STEP
        for name in rows:
            if name.startswith(("sum_trace", "sum_grad")):
                rows[name][-1] = None
        later = make_measurements(first_seq=6, steps=[4], global_batch=24.0)
        later["flags"] = [Flags.SMALLER_STEP]
        later |= {name: [None] for name in later if name.startswith(("sum_trace", "sum_grad"))}

        await accept(session, stream_id, run_id=run_id, measurements=rows)
        await accept(session, stream_id, run_id=run_id, first_seq=6, measurements=later)

        assert (await shown(session, run_id)).latest_global_batch == 256.0

    async def test_a_step_of_which_nothing_was_measured_has_a_batch_all_the_same(self, session: AsyncSession) -> None:
        run_id = uuid4()
        rows = make_measurements(steps=[0], global_batch=64.0)
        rows |= {name: [None] for name in rows if name.startswith(("sum_trace", "sum_grad"))}

        await accept(session, uuid4(), run_id=run_id, measurements=rows)

        assert (await shown(session, run_id)).latest_global_batch == 64.0

    async def test_a_row_of_several_updates_without_a_finite_loss_is_broken_since_the_first_of_them(
        self, session: AsyncSession
    ) -> None:
        run_id = uuid4()
        rows = make_measurements(steps=[3, 7, 11], log_every=4)
        for place in (1, 2):
            rows["sum_loss"][place], rows["num_loss"][place] = None, 0
            rows["flags"][place] = Flags.NONFINITE_LOSS | Flags.NONFINITE_GRADIENT
            for name in rows:
                if name.startswith(("sum_trace", "sum_grad")):
                    rows[name][place] = None

        await accept(session, uuid4(), run_id=run_id, measurements=rows)

        row = await shown(session, run_id)
        assert (row.loss_broken_since, row.gradients_broken_since) == (4, 7)

    @pytest.mark.parametrize(("sum_loss", "num_loss"), [(None, 0), (0.0, 0), (None, 3)])
    async def test_without_a_loss_it_shows_none(
        self, session: AsyncSession, sum_loss: float | None, num_loss: int
    ) -> None:
        run_id = uuid4()
        rows = make_measurements(steps=[0])
        rows["sum_loss"], rows["num_loss"] = [sum_loss], [num_loss]

        await accept(session, uuid4(), run_id=run_id, measurements=rows)

        assert (await shown(session, run_id)).latest_loss is None

    async def test_a_loss_of_zero_is_one(self, session: AsyncSession) -> None:
        run_id = uuid4()
        rows = make_measurements(steps=[0])
        rows["sum_loss"], rows["num_loss"] = [0.0], [1]

        await accept(session, uuid4(), run_id=run_id, measurements=rows)

        assert (await shown(session, run_id)).latest_loss == 0.0

    async def test_what_the_stream_says_of_itself_is_the_runs_until_it_says_otherwise(
        self, session: AsyncSession
    ) -> None:
        run_id, stream_id = uuid4(), uuid4()
        told = make_stream(measure_every=5, num_ranks=4, notes=["a note"], optimizer="Adam", estimator="ranks")
        await accept(session, stream_id, run_id=run_id, stream=told)
        await accept(session, stream_id, run_id=run_id, first_seq=6, measurements=make_measurements(first_seq=6))
        kept = await shown(session, run_id)
        first = (
            kept.measure_every,
            kept.num_ranks,
            list(kept.notes),
            kept.optimizer,
            kept.estimator,
            kept.loss_reduction,
        )
        changed = make_stream(measure_every=7, notes=[], optimizer="SGD")
        await accept(session, stream_id, run_id=run_id, first_seq=10, with_run=True, stream=changed)

        assert first == (5, 4, ["a note"], "Adam", "ranks", "mean_over_examples")
        row = await shown(session, run_id)
        assert (row.measure_every, row.num_ranks, list(row.notes), row.optimizer) == (7, None, [], "SGD")

    async def test_it_names_a_kind_once_and_with_its_first_row(self, session: AsyncSession) -> None:
        run_id, plain, other = uuid4(), uuid4(), uuid4()
        await accept(session, plain, run_id=run_id)
        told = make_stream(kind="adam")
        await accept(session, other, run_id=run_id, stream=told, groups=[make_groups(seq=2, step=1)])
        without_rows = list((await shown(session, run_id)).kinds)
        await accept(session, other, run_id=run_id, first_seq=3, measurements=make_measurements(first_seq=3))
        begun = list((await shown(session, run_id)).kinds)
        await accept(session, other, run_id=run_id, first_seq=7, measurements=make_measurements(first_seq=7))

        assert (without_rows, begun) == (["simple"], ["simple", "adam"])
        assert list((await shown(session, run_id)).kinds) == begun

    async def test_its_end_is_the_newest_streams_and_is_over_when_another_begins(self, session: AsyncSession) -> None:
        run_id, older, newer = uuid4(), uuid4(), uuid4()
        await accept(session, older, run_id=run_id, stream=make_stream(started_at=1e9))
        await accept(
            session, older, run_id=run_id, first_seq=6, finish={"seq": 6, "status": "failed", "wall_time": 1.5e9}
        )
        ended = await shown(session, run_id)
        found = (ended.finish_status, ended.finished_at)
        await accept(session, newer, run_id=run_id, stream=make_stream(started_at=2e9))
        begun = await shown(session, run_id)
        again = (begun.finish_status, begun.finished_at)
        await accept(session, newer, run_id=run_id, first_seq=6, finish={"seq": 6, **FINISH})
        await accept(session, newer, run_id=run_id, first_seq=7, lost=[{"from": 7, "to": 7, "reason": "x"}])

        assert found == ("failed", datetime.fromtimestamp(1.5e9, UTC))
        assert again == (None, None)
        assert (await shown(session, run_id)).finish_status == "finished"


class TestTheCursor:
    async def test_it_says_where_the_stream_stands_among_others(self, session: AsyncSession) -> None:
        run_id, first, second, other_kind = uuid4(), uuid4(), uuid4(), uuid4()
        await accept(session, first, run_id=run_id, stream=make_stream(started_at=1e9))
        alone = await streams.lock(session, run_id, first)
        await accept(session, other_kind, run_id=run_id, stream=make_stream(started_at=3e9, kind="adam"))
        beside_another_kind = await streams.lock(session, run_id, first)
        await accept(session, second, run_id=run_id, stream=make_stream(started_at=2e9))
        old, new = await streams.lock(session, run_id, first), await streams.lock(session, run_id, second)
        elsewhere = uuid4()
        await accept(session, elsewhere, stream=make_stream(started_at=4e9))

        assert alone is not None
        assert beside_another_kind is not None
        assert old is not None
        assert new is not None
        assert [(one.is_alone, one.is_newest) for one in (alone, beside_another_kind, old, new)] == [
            (True, True),
            (True, True),
            (False, False),
            (False, True),
        ]
        assert (old.first_step, old.last_step, old.num_measurements, old.num_estimates) == (0, 3, 4, 4)
        assert old.epoch == new.epoch

    async def test_of_two_streams_of_one_moment_the_greater_id_is_newest(self, session: AsyncSession) -> None:
        run_id, lesser, greater = uuid4(), UUID(int=1), UUID(int=2)
        for stream_id in (greater, lesser):
            await accept(session, stream_id, run_id=run_id, stream=make_stream(started_at=1e9))

        found = [await streams.lock(session, run_id, one) for one in (lesser, greater)]

        assert [one is not None and one.is_newest for one in found] == [False, True]

    async def test_losses_steps_and_cursors_are_listed_in_order(self, session: AsyncSession) -> None:
        run_id, newer, older, silent = uuid4(), UUID(int=11), UUID(int=12), UUID(int=13)
        await accept(session, newer, run_id=run_id, stream=make_stream(started_at=2e9))
        await accept(session, older, run_id=run_id, stream=make_stream(started_at=1e9))
        await accept(
            session, silent, run_id=run_id, stream=make_stream(started_at=3e9), groups=[make_groups(seq=2, step=1)]
        )
        lost = [{"from": 8, "to": 9, "reason": "b"}, {"from": 6, "to": 7, "reason": "a"}]
        await accept(session, newer, run_id=run_id, first_seq=6, lost=lost)

        covered = await streams.coverage_of_run(session, run_id)
        losses = await streams.first_losses(session, run_id, [newer, older, silent], at_most=10)

        assert [one.stream_id for one in covered] == [older, newer]
        assert [(one.first_step, one.last_step, one.num_measurements) for one in covered] == [(0, 3, 4)] * 2
        assert [one.id for one in await streams.of_run(session, run_id)] == [older, newer, silent]
        assert losses == {newer: (2, [Loss(6, 7, "a"), Loss(8, 9, "b")])}
        assert await streams.cursors_of_run(session, run_id) == ((newer, 10), (older, 6), (silent, 3))

    async def test_a_heartbeat_says_where_a_stream_stands(self, session: AsyncSession) -> None:
        run_id, stream_id = uuid4(), uuid4()
        await accept(session, stream_id, run_id=run_id)
        cursor = await streams.lock(session, run_id, stream_id)

        assert cursor is not None
        assert await streams.touch(session, stream_id) == (5, cursor.epoch)
        assert await streams.touch(session, uuid4()) is None
