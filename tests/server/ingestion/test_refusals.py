"""A batch that cannot be stored gets a 4xx that names the field, never a 500; a bad record is left out by name."""

import gzip
import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest

from factories import make_batch, make_groups, make_measurements, make_run, make_stream
from problems import assert_problem

Body = dict[str, Any]


def with_cell(column: str, value: object, row: int = 1) -> Callable[[], Body]:
    """A batch of four rows with one value replaced."""

    def make() -> Body:
        rows = make_measurements()
        rows[column][row] = value
        return make_batch(measurements=rows)

    return make


def with_column(column: str, values: list[Any]) -> Callable[[], Body]:
    return lambda: make_batch(measurements=make_measurements() | {column: values})


def changed(**fields: Any) -> Callable[[], Body]:
    return lambda: make_batch() | fields


def with_run(**fields: Any) -> Callable[[], Body]:
    return lambda: make_batch(run=make_run(**fields))


def with_stream(**fields: Any) -> Callable[[], Body]:
    return lambda: make_batch(stream=make_stream(**fields))


def with_metrics(**columns: list[Any]) -> Callable[[], Body]:
    given: dict[str, list[Any]] = {"seq": [2], "step": [1], "wall_time": [1.0], "name": ["loss"], "value": [1.0]}
    return lambda: make_batch(metrics=given | columns)


def with_groups(**fields: Any) -> Callable[[], Body]:
    return lambda: make_batch(groups=[make_groups(seq=2, step=1) | fields])


def without(name: str) -> Callable[[], Body]:
    def make() -> Body:
        body = make_batch()
        del body[name]
        return body

    return make


def without_column(name: str) -> Callable[[], Body]:
    def make() -> Body:
        rows = make_measurements()
        del rows[name]
        return make_batch(measurements=rows)

    return make


REFUSED: dict[str, tuple[Callable[[], Body], str]] = {
    "a short column": (with_column("lr", [0.1, 0.1]), "measurements.lr"),
    "a long column": (with_column("lr", [0.1] * 5), "measurements.lr"),
    "a missing column": (without_column("flags"), "measurements.flags"),
    "an unknown column": (with_column("temperature", [0.1] * 4), "measurements.temperature"),
    "a repeated record number": (with_column("seq", [2, 3, 3, 4]), "measurements.seq[2]"),
    "a falling record number": (with_column("seq", [2, 4, 3, 5]), "measurements.seq[2]"),
    "a record missing": (with_column("seq", [2, 3, 5, 6]), "last_seq"),
    "a record beyond last_seq": (changed(last_seq=4), "last_seq"),
    "last_seq too high": (changed(last_seq=9), "last_seq"),
    "last_seq below first_seq": (changed(last_seq=0), "last_seq"),
    "record number 0": (changed(first_seq=0), "first_seq"),
    "a record number beyond int64": (changed(last_seq=2**64), "last_seq"),
    "a record twice": (changed(finish={"seq": 5, "status": "finished", "wall_time": 1.0}), "finish.seq"),
    "a lost record that came": (changed(lost=[{"from": 3, "to": 3, "reason": "memory_full"}]), "lost[0]"),
    "a lost range backwards": (changed(lost=[{"from": 7, "to": 6, "reason": "x"}], last_seq=7), "lost[0].to"),
    "a loss without reason": (changed(lost=[{"from": 6, "to": 6, "reason": ""}], last_seq=6), "lost[0].reason"),
    "an unknown field": (changed(surprise=1), "surprise"),
    "a version that is no number": (changed(proto="1"), "proto"),
    "no version": (without("proto"), "proto"),
    "no run id": (without("run_id"), "run_id"),
    "a run id that is none": (changed(run_id="run-1"), "run_id"),
    "a checksum beyond 32 bits": (changed(crc32=2**32), "crc32"),
    "a checksum as text": (changed(crc32="1"), "crc32"),
    "a time without zone": (changed(sent_at="2026-11-20T13:02:40"), "sent_at"),
    "a project with NUL": (with_run(project="de\x00mo"), "run.run.project"),
    "no project": (with_run(project=""), "run.run.project"),
    "NaN in the config": (with_run(config={"lr": float("nan")}), "run.run.config"),
    "NUL in the config": (with_run(config={"a": ["\x00"]}), "run.run.config"),
    "an unknown run field": (with_run(colour="red"), "run.run.colour"),
    "an unknown estimator": (with_stream(estimator="guess"), "run.stream.estimator"),
    "an unknown kind": (with_stream(kind="critical"), "run.stream.kind"),
    "a kind that is null": (with_stream(kind=None), "run.stream.kind"),
    "every zeroth step": (with_stream(measure_every=0), "run.stream.measure_every"),
    "a fraction of a rank": (with_stream(num_ranks=0.5), "run.stream.num_ranks"),
    "too many notes": (with_stream(notes=["a"] * 17), "run.stream.notes"),
    "a long note": (with_stream(notes=["a" * 301]), "run.stream.notes[0]"),
    "a note with a line break": (with_stream(notes=["a", "b\nc"]), "run.stream.notes[1]"),
    "a blank note": (with_stream(notes=[" "]), "run.stream.notes[0]"),
    "a host with NUL": (with_stream(host="a\x00"), "run.stream.host"),
    "a start that is no time": (with_stream(started_at=-1.0), "run.stream.started_at"),
    "metrics of unequal length": (with_metrics(value=[1.0, 2.0]), "metrics.value"),
}

REJECTED: dict[str, tuple[Callable[[], Body], str]] = {
    "NaN": (with_cell("sum_loss", float("nan")), "measurements.sum_loss[1]"),
    "infinity": (with_cell("wall_time", float("inf")), "measurements.wall_time[1]"),
    "minus infinity in a sum": (with_cell("sum_trace_cov", float("-inf")), "measurements.sum_trace_cov[1]"),
    "NaN as learning rate": (with_cell("lr", float("nan")), "measurements.lr[1]"),
    "a boolean for a number": (with_cell("sum_loss", True), "measurements.sum_loss[1]"),
    "a boolean for a count": (with_cell("num_updates", True), "measurements.num_updates[1]"),
    "text for a number": (with_cell("lr", "0.1"), "measurements.lr[1]"),
    "a float for an integer": (with_cell("step", 1.0), "measurements.step[1]"),
    "a step beyond int64": (with_cell("step", 2**63), "measurements.step[1]"),
    "a step far below int64": (with_cell("step", -(2**70)), "measurements.step[1]"),
    "a negative step": (with_cell("step", -1), "measurements.step[1]"),
    "null for a step": (with_cell("step", None), "measurements.step[1]"),
    "no updates": (with_cell("num_updates", 0), "measurements.num_updates[1]"),
    "a batch size of 0": (with_cell("global_batch", 0.0), "measurements.global_batch[1]"),
    "a sum whose square overflows": (with_cell("sum_grad_sq_norm", 1e200), "measurements.sum_grad_sq_norm[1]"),
    "a sum whose square vanishes": (with_cell("sum_grad_sq_norm", 1e-200), "measurements.sum_grad_sq_norm[1]"),
    "a loss whose mean vanishes": (with_cell("sum_loss", 5e-324), "measurements.sum_loss[1]"),
    "one of five sums missing": (with_cell("sum_trace_cov_sq", None), "measurements.sum_trace_cov_sq[1]"),
    "a path without its updates": (
        with_column("sum_update_sq_norm", [None, 1.0, None, None]),
        "measurements.sum_update_sq_norm[1]",
    ),
    "updates without their sum": (
        with_column("num_path_updates", [0, 1, 0, 0]),
        "measurements.sum_update_sq_norm[1]",
    ),
    "a promise without its updates": (
        with_column("sum_promised_fall", [None, 1.0, None, None]),
        "measurements.sum_promised_fall[1]",
    ),
    "promised updates without their sum": (
        with_column("num_promised_updates", [0, 1, 0, 0]),
        "measurements.sum_promised_fall[1]",
    ),
    "a momentum of 1": (with_column("momentum", [None, 1.0, None, None]), "measurements.momentum[1]"),
    "flags beyond their bits": (with_cell("flags", 2**40), "measurements.flags[1]"),
    "a list in a column": (with_cell("lr", [0.1]), "measurements.lr[1]"),
    "a time after the year 9999": (with_cell("wall_time", 1e15), "measurements.wall_time[1]"),
    "an unknown finish": (changed(last_seq=6, finish={"seq": 6, "status": "gone", "wall_time": 1.0}), "finish.status"),
    "a metric with NUL in its name": (with_metrics(name=["lo\x00ss"]), "metrics.name[0]"),
    "an infinite metric": (with_metrics(value=[float("inf")]), "metrics.value[0]"),
    "a metric named twice in one record": (
        with_metrics(seq=[2, 2], step=[1, 1], wall_time=[1.0, 1.0], name=["a", "a"], value=[1.0, 2.0]),
        "metrics.name[1]",
    ),
    "a layer with NUL": (with_groups(names=["a\x00", "b"]), "groups[0].names[0]"),
    "a layer twice": (with_groups(names=["a", "a"]), "groups[0].names[1]"),
    "too many layers": (with_groups(names=[f"l{i}" for i in range(257)]), "groups[0].names"),
    "layers of unequal length": (with_groups(sum_trace_cov=[1.0]), "groups[0].sum_trace_cov"),
    "a boolean in a layer": (with_groups(num_updates=[True, 1]), "groups[0].num_updates[0]"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_cannot_be_stored_is_refused_by_the_name_of_its_field(
    shared_client: httpx.AsyncClient, case: str
) -> None:
    make, field = REFUSED[case]
    stream_id = uuid4()

    answer = await shared_client.post(
        f"/api/v1/streams/{stream_id}/batches",
        content=json.dumps(make()).encode(),
        headers={"Content-Type": "application/json"},
    )

    assert_problem(answer, 422, "invalid-input", field=field)
    assert_problem(await shared_client.get(f"/api/v1/streams/{stream_id}"), 404, "stream-not-found")


@pytest.mark.parametrize("case", REJECTED)
async def test_a_record_that_cannot_be_stored_is_rejected_by_name_and_the_others_are_stored(
    shared_client: httpx.AsyncClient, case: str
) -> None:
    make, field = REJECTED[case]
    stream_id, body = uuid4(), make()
    request = {"content": json.dumps(body).encode(), "headers": {"Content-Type": "application/json"}}

    answer = await shared_client.post(f"/api/v1/streams/{stream_id}/batches", **request)
    again = await shared_client.post(f"/api/v1/streams/{stream_id}/batches", **request)

    assert answer.status_code == 200, answer.text
    assert answer.json()["acked_seq"] == body["last_seq"]
    assert [record["field"] for record in answer.json()["rejected"]] == [field]
    assert again.json() == answer.json()
    cursor = (await shared_client.get(f"/api/v1/streams/{stream_id}")).json()
    counts = {name: cursor[name] for name in ("acked_seq", "num_stored", "num_lost", "num_rejected")}
    last = body["last_seq"]
    assert counts == {"acked_seq": last, "num_stored": last - 1, "num_lost": 0, "num_rejected": 1}


async def test_each_rejected_record_has_a_reason_that_a_program_can_read(shared_client: httpx.AsyncClient) -> None:
    rows = make_measurements(steps=range(8))
    rows["sum_loss"][1] = float("nan")
    rows["num_updates"][2] = 0
    rows["lr"][4] = "0.1"
    rows["sum_trace_cov"][5] = None
    rows["lr"][5] = float("inf")
    body, stream_id = make_batch(measurements=rows), uuid4()

    answer = await shared_client.post(
        f"/api/v1/streams/{stream_id}/batches",
        content=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )

    rejected = answer.json()["rejected"]
    codes = {record["seq"]: record["code"] for record in rejected}
    assert codes == {3: "not_finite", 4: "out_of_range", 6: "value_type", 7: "not_finite"}
    assert all(record["message"] for record in rejected)
    series = (await shared_client.get(f"/api/v1/runs/{body['run_id']}/streams")).json()
    assert series["streams"][0]["lost"] == [{"from": seq, "to": seq, "reason": "rejected"} for seq in codes]
    assert series["ledger"]["is_true"]


async def test_a_record_of_several_metrics_is_rejected_as_a_whole(shared_client: httpx.AsyncClient) -> None:
    names, values = ["a", "b", "a"], [1.0, float("nan"), 2.0]
    metrics = {"seq": [2, 2, 3], "step": [1, 1, 2], "wall_time": [1.0] * 3, "name": names, "value": values}
    body = make_batch(metrics=metrics)

    answer = await shared_client.post(
        f"/api/v1/streams/{uuid4()}/batches",
        content=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )

    assert [(record["seq"], record["field"]) for record in answer.json()["rejected"]] == [(2, "metrics.value[1]")]
    stored = (await shared_client.get(f"/api/v1/runs/{body['run_id']}/metrics")).json()
    assert [(metric["name"], metric["value"]) for metric in stored["metrics"]] == [("a", [2.0])]


async def test_a_batch_whose_every_record_is_bad_still_moves_the_cursor(shared_client: httpx.AsyncClient) -> None:
    first = make_batch()
    stream_id = uuid4()
    await shared_client.post(f"/api/v1/streams/{stream_id}/batches", json=first)
    rows = make_measurements(first_seq=6) | {"num_updates": [0] * 4}

    answer = await shared_client.post(
        f"/api/v1/streams/{stream_id}/batches",
        json=make_batch(run_id=first["run_id"], first_seq=6, measurements=rows),
    )

    assert answer.json()["acked_seq"] == 9
    assert [record["seq"] for record in answer.json()["rejected"]] == [6, 7, 8, 9]


async def test_a_batch_with_bad_records_and_a_bad_whole_is_refused_as_before(shared_client: httpx.AsyncClient) -> None:
    rows = make_measurements() | {"num_updates": [1, 0, 1, 1]}
    stream_id = uuid4()

    answer = await shared_client.post(
        f"/api/v1/streams/{stream_id}/batches", json=make_batch(measurements=rows) | {"surprise": 1}
    )

    assert_problem(answer, 422, "invalid-input", field="surprise")
    assert_problem(await shared_client.get(f"/api/v1/streams/{stream_id}"), 404, "stream-not-found")


async def test_another_version_is_426_with_those_that_are_read(shared_client: httpx.AsyncClient) -> None:
    answer = await shared_client.post(f"/api/v1/streams/{uuid4()}/batches", json=make_batch() | {"proto": 2})

    assert_problem(answer, 426, "version-not-supported")
    assert answer.json()["supported"] == [1]


async def test_a_body_that_is_too_large_is_413_with_the_limit(shared_client: httpx.AsyncClient) -> None:
    answer = await shared_client.post(
        f"/api/v1/streams/{uuid4()}/batches",
        content=b" " * (5 * 2**20 + 1),
        headers={"Content-Type": "application/json"},
    )

    assert_problem(answer, 413, "body-too-large")
    assert answer.json()["limit"] == 5 * 2**20


async def test_more_than_two_thousand_records_are_refused(shared_client: httpx.AsyncClient) -> None:
    rows = make_measurements(steps=range(2_000))

    answer = await shared_client.post(f"/api/v1/streams/{uuid4()}/batches", json=make_batch(measurements=rows))

    assert_problem(answer, 422, "invalid-input", field="last_seq")


async def test_a_gzipped_batch_is_stored_like_a_plain_one(shared_client: httpx.AsyncClient) -> None:
    body = gzip.compress(json.dumps(make_batch()).encode())

    answer = await shared_client.post(
        f"/api/v1/streams/{uuid4()}/batches",
        content=body,
        headers={"Content-Type": "application/json", "Content-Encoding": "gzip"},
    )

    assert answer.json()["acked_seq"] == 5


EXTREMES: dict[str, dict[str, list[Any]]] = {
    "largest": {
        "sum_trace_cov": [1e75] * 4, "sum_grad_sq_norm": [1e75] * 4, "sum_trace_cov_sq": [1e150] * 4,
        "num_updates": [2**31 - 1] * 4, "global_batch": [1e15] * 4, "sum_loss": [1e75] * 4, "lr": [1.7e308] * 4,
        "examples": [2**53 - 1] * 4,
    },
    "smallest": {
        "sum_trace_cov": [1e-140, 2e-140, -1e-140, 1e-140], "sum_grad_sq_norm": [1e-140] * 4,
        "sum_trace_cov_sq": [5e-324] * 4, "global_batch": [1e-9] * 4, "sum_loss": [1e-140] * 4,
        "num_updates": [2**31 - 1] * 4, "num_loss": [2**31 - 1] * 4, "lr": [5e-324] * 4,
    },
    "zero": {"sum_trace_cov": [0.0] * 4, "sum_grad_sq_norm": [0.0] * 4, "sum_loss": [0.0] * 4, "lr": [0.0] * 4},
    "latest": {"step": [2**53 - 4, 2**53 - 3, 2**53 - 2, 2**53 - 1]},
    "backwards": {"step": [9, 3, 3, 0]},
}  # fmt: skip


@pytest.mark.parametrize("case", EXTREMES)
async def test_what_is_accepted_can_be_read(shared_client: httpx.AsyncClient, case: str) -> None:
    """The limits of the wire format are those of the sums made from it."""
    run_id, stream_id, seq = uuid4(), uuid4(), 2
    for _ in range(3):
        rows = {name: column * 3 for name, column in (make_measurements() | EXTREMES[case]).items()}
        rows["seq"] = list(range(seq, seq + 12))
        body = make_batch(run_id=run_id, first_seq=seq - (seq == 2), with_run=seq == 2, measurements=rows)
        answer = await shared_client.post(f"/api/v1/streams/{stream_id}/batches", json=body)
        assert answer.status_code == 200, answer.text
        seq += 12

    answers = [
        await shared_client.get(f"/api/v1/runs/{run_id}{path}")
        for path in ("", "/noise-scale", "/noise-scale?points=1", "/noise-scale?window=100000", "/groups", "/streams")
    ]

    assert [answer.status_code for answer in answers] == [200] * 6
