"""Streams of further kinds stand beside the simple one: neither hides the other, and the run shows the simple one."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from factories import STARTED_AT, make_batch, make_groups, make_measurements, make_stream
from problems import assert_problem

Rows = dict[str, list[Any]]


def rows_of_kind(steps: Sequence[int], *, noise_scale: float = 700.0) -> Rows:
    """Rows of a further kind: of the same shape, without loss."""
    rows = make_measurements(steps=steps, noise_scale=noise_scale, global_batch=32.0, lr=0.7)
    return rows | {"sum_loss": [None for _ in steps], "num_loss": [0 for _ in steps], "flags": [2048 for _ in steps]}


async def send(
    client: httpx.AsyncClient,
    run_id: UUID,
    *,
    kind: str = "simple",
    stream_id: UUID | None = None,
    started_at: float = STARTED_AT,
    status: int = 200,
    **parts: Any,
) -> httpx.Response:
    stream = make_stream(kind=kind, started_at=started_at)
    body = make_batch(run_id=run_id, stream=stream, **parts)
    answer = await client.post(f"/api/v1/streams/{stream_id or uuid4()}/batches", json=body)
    assert answer.status_code == status, answer.text
    return answer


async def read(client: httpx.AsyncClient, run_id: UUID, path: str = "") -> dict[str, Any]:
    answer = await client.get(f"/api/v1/runs/{run_id}{path}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def finish(seq: int) -> dict[str, Any]:
    return {"seq": seq, "status": "finished", "wall_time": STARTED_AT + 100}


@pytest.mark.parametrize("started_at", [STARTED_AT - 50, STARTED_AT, STARTED_AT + 50])
async def test_what_a_run_shows_stays_that_of_its_simple_stream(
    shared_client: httpx.AsyncClient, started_at: float
) -> None:
    run_id = uuid4()
    await send(shared_client, run_id, measurements=make_measurements(steps=range(40)))
    before = await read(shared_client, run_id)
    advice = await read(shared_client, run_id, "/recommendation")
    metrics = await read(shared_client, run_id, "/metrics")

    await send(shared_client, run_id, kind="adam", started_at=started_at, measurements=rows_of_kind(range(90)))

    assert await read(shared_client, run_id) == before | {"kinds": ["simple", "adam"]}
    assert await read(shared_client, run_id, "/recommendation") == advice
    assert await read(shared_client, run_id, "/metrics") == metrics


@pytest.mark.parametrize("started_at", [STARTED_AT - 50, STARTED_AT + 50])
async def test_each_kind_is_a_series_of_its_own(shared_client: httpx.AsyncClient, started_at: float) -> None:
    """Points come from the pyramid as well as from rows."""
    run_id = uuid4()
    simple, adam = make_measurements(steps=range(1_900)), rows_of_kind(range(1_900))
    await send(shared_client, run_id, measurements=simple)
    alone = await read(shared_client, run_id, "/noise-scale?points=50&window=256&from=600")

    await send(shared_client, run_id, kind="adam", started_at=started_at, measurements=adam)

    assert await read(shared_client, run_id, "/noise-scale?points=50&window=256&from=600") == alone
    found = await read(shared_client, run_id, "/noise-scale?points=50&window=256&from=600&kind=adam")
    assert (found["kind"], found["level"], found["events"]) == ("adam", 1, [])
    # 5 % are 95 steps, in blocks of 4
    last = slice(1_804, 1_900)
    ratio = sum(adam["sum_trace_cov"][last]) / sum(adam["sum_grad_sq_norm"][last])
    assert found["latest"]["value"] == pytest.approx(ratio)
    assert found["points"]["value"][-1] == pytest.approx(700.0, rel=0.2)
    assert found["points"]["loss"] == [None] * len(found["points"]["loss"])
    rows = await read(shared_client, run_id, "/noise-scale?from=100&to=120&kind=adam")
    assert rows["points"]["lr"] == [0.7] * 21


async def test_the_end_of_another_kinds_stream_neither_ends_the_run_nor_revives_it(
    shared_client: httpx.AsyncClient,
) -> None:
    run_id, stream_id = uuid4(), uuid4()
    await send(shared_client, run_id, stream_id=stream_id)
    await send(shared_client, run_id, kind="sign", measurements=rows_of_kind(range(4)), finish=finish(6))
    running = await read(shared_client, run_id)

    body = make_batch(run_id=run_id, first_seq=6, finish=finish(6))
    await shared_client.post(f"/api/v1/streams/{stream_id}/batches", json=body)
    finished = await read(shared_client, run_id)
    await send(shared_client, run_id, kind="spectral", started_at=STARTED_AT + 500, measurements=rows_of_kind(range(4)))

    assert running["status"] == "running"
    assert finished["status"] == "finished"
    assert await read(shared_client, run_id) == finished | {"kinds": ["simple", "sign", "spectral"]}


async def test_a_run_that_has_only_another_kind_so_far_is_fine(shared_client: httpx.AsyncClient) -> None:
    run_id = uuid4()
    await send(shared_client, run_id, kind="hessian", measurements=rows_of_kind(range(30)))

    run = await read(shared_client, run_id)

    assert (run["status"], run["last_step"], run["kinds"], run["estimator"]) == ("running", None, ["hessian"], None)
    assert run["noise_scale"]["reason"] == "no_estimates"
    assert (await read(shared_client, run_id, "/noise-scale"))["num_points"] == 0
    assert (await read(shared_client, run_id, "/noise-scale?kind=hessian"))["num_points"] == 30
    assert (await read(shared_client, run_id, "/recommendation"))["decision"] == "insufficient_evidence"
    assert (await read(shared_client, run_id, "/groups"))["groups"] == []


async def test_a_kind_that_the_run_does_not_have_is_an_empty_series(shared_client: httpx.AsyncClient) -> None:
    run_id = uuid4()
    await send(shared_client, run_id)

    found = await read(shared_client, run_id, "/noise-scale?kind=spectral")

    assert (found["kind"], found["num_points"], found["latest"]["reason"]) == ("spectral", 0, "no_estimates")


async def test_a_resumed_kind_is_read_from_its_own_newest_stream(shared_client: httpx.AsyncClient) -> None:
    run_id = uuid4()
    for number, (kind, steps) in enumerate(
        (("simple", range(40)), ("adam", range(40)), ("simple", range(20, 60)), ("adam", range(10, 30)))
    ):
        rows = make_measurements(steps=steps) if kind == "simple" else rows_of_kind(steps)
        rows["lr"] = [float(number) for _ in steps]
        await send(shared_client, run_id, kind=kind, started_at=STARTED_AT + number, measurements=rows)

    adam = (await read(shared_client, run_id, "/noise-scale?kind=adam"))["points"]
    streams = (await read(shared_client, run_id, "/streams"))["streams"]

    assert adam["lr"] == [1.0] * 10 + [3.0] * 20 + [1.0] * 10
    assert [(stream["kind"], stream["live_steps"]) for stream in streams] == [
        ("simple", [[0, 19]]),
        ("adam", [[0, 9], [30, 39]]),
        ("simple", [[20, 59]]),
        ("adam", [[10, 29]]),
    ]


async def test_layers_and_metrics_are_those_of_the_simple_stream(shared_client: httpx.AsyncClient) -> None:
    run_id = uuid4()
    logged = {"seq": [6], "step": [2], "wall_time": [1.0], "name": ["accuracy"], "value": [0.5]}
    own = {"groups": [make_groups(seq=7, step=3, names=("head",))], "metrics": logged}
    await send(shared_client, run_id, measurements=make_measurements(), **own)
    layers = await read(shared_client, run_id, "/groups")

    others = {"groups": [make_groups(seq=6, step=3, names=("other",))]}
    await send(shared_client, run_id, kind="adam", started_at=2e9, measurements=rows_of_kind(range(4)), **others)

    assert await read(shared_client, run_id, "/groups") == layers
    assert (await read(shared_client, run_id, "/metrics"))["metrics"][0]["value"] == [0.5]


async def test_a_stream_keeps_its_kind(shared_client: httpx.AsyncClient) -> None:
    run_id, stream_id = uuid4(), uuid4()
    await send(shared_client, run_id, stream_id=stream_id, kind="adam")

    answer = await send(
        shared_client, run_id, stream_id=stream_id, kind="sign", first_seq=6, last_seq=6, with_run=True, lost=[],
        status=409,
    )  # fmt: skip

    assert_problem(answer, 409, "stream-conflict")


async def test_where_small_batches_come_from_is_that_of_the_newest_simple_stream(
    shared_client: httpx.AsyncClient,
) -> None:
    run_id, first, second = uuid4(), uuid4(), uuid4()
    old = make_stream(estimator="ranks", num_ranks=8, measure_every=5, notes=["old"])
    new = make_stream(estimator="ranks_and_micro_batches", num_ranks=4, started_at=STARTED_AT + 9)
    other = make_stream(kind="adam", num_ranks=2, started_at=STARTED_AT + 99)
    for stream_id, stream in ((first, old), (second, new), (uuid4(), other)):
        body = make_batch(run_id=run_id, stream=stream)
        assert (await shared_client.post(f"/api/v1/streams/{stream_id}/batches", json=body)).status_code == 200
    before = await read(shared_client, run_id)

    told = new | {"measure_every": 10, "notes": ["BatchNorm couples the examples of a micro-batch"]}
    body = make_batch(run_id=run_id, first_seq=6, last_seq=6, with_run=True, stream=told, lost=[])
    await shared_client.post(f"/api/v1/streams/{second}/batches", json=body)

    names = ("estimator", "num_ranks", "measure_every", "notes")
    assert [before[name] for name in names] == ["ranks_and_micro_batches", 4, None, []]
    after = await read(shared_client, run_id)
    assert [after[name] for name in names] == ["ranks_and_micro_batches", 4, 10, told["notes"]]
    [oldest, *_] = (await read(shared_client, run_id, "/streams"))["streams"]
    assert [oldest[name] for name in names] == ["ranks", 8, 5, ["old"]]
    listed = (await shared_client.get("/api/v1/runs", params={"ids": str(run_id)})).json()["runs"]
    # a row waits for its decision, a run that is read by itself does not
    assert [one | {"decision": None} for one in listed] == [after | {"decision": None}]
