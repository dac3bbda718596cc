"""Batches that are broken in every way JSON allows: refused, or stored as they were read, and never a 5xx."""

import gzip
import json
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from factories import make_batch, make_groups, make_measurements, make_run, make_stream
from noisescale_server.services.ingest import ingestion
from noisescale_server.storage.platform.row_tables import GroupMeasurement, Measurement, Metric
from noisescale_server.storage.platform.tables import Run

TOKENS = (
    *("null", "true", "false", "0", "-0.0", "-1", "1", "1.5", "2147483648", "9007199254740992"),
    *("9223372036854775807", "9223372036854775808", "1e400", "-1e400", "1e-400", "1e75", "NaN", "Infinity"),
    *("1" + "0" * 5_000, "0x10", "01", "1_0", "٣"),
    *('""', '" "', '"\\u0000"', '"a\\u0000b"', '"\\ud800"', '"\\udc00\\ud800"', '"\\ud83c\\udfb2"', '"\\u202egnp"'),
    *('"\\u2066a"', '"\ufeff"', '"e\\u0301"', '"1"', '"NaN"', '"' + "x" * 300 + '"', '"\\u001b[31m"', '"\n"', '"\\q"'),
    *("[]", "{}", "[[1]]", '{"a": 1}', "[" * 200 + "]" * 200, '{"a":' * 200 + "1" + "}" * 200, "", "'a'"),
)
"""Raw JSON, and what only looks like it, to stand where something else belongs."""


class Raw(str):
    """Text that is written as it is."""


class Pairs(list):
    """An object as its pairs, which may name a field twice."""


def whole_batch() -> dict[str, Any]:
    """A batch with every part."""
    return make_batch(
        run=make_run(name="a name", tags=["one", "two"], config={"lr": 0.1, "layers": [1, 2]}),
        stream=make_stream(),
        measurements=make_measurements(first_seq=2, steps=range(3)),
        metrics={"seq": [5, 6], "step": [1, 2], "wall_time": [1.0, 2.0], "name": ["a", "b"], "value": [1.0, None]},
        groups=[make_groups(seq=7, step=2)],
        lost=[{"from": 8, "to": 9, "reason": "cap"}],
        finish={"seq": 10, "status": "finished", "wall_time": 3.0},
    )


def written(node: Any) -> str:
    """The node as JSON text."""
    match node:
        case Raw():
            return node
        case Pairs():
            return "{" + ",".join(f"{json.dumps(name)}:{written(value)}" for name, value in node) + "}"
        case dict():
            return written(Pairs(node.items()))
        case list():
            return "[" + ",".join(map(written, node)) + "]"
    return json.dumps(node)


def places(node: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to every value inside."""
    inside = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [way for name, value in inside for way in ((*at, name), *places(value, (*at, name)))]


def at(node: Any, way: tuple[Any, ...]) -> Any:
    for name in way:
        node = node[name]
    return node


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """A whole batch with one to three things wrong, or none."""
    batch = whole_batch()
    for _ in range(draw(st.integers(0, 3))):
        way = draw(st.sampled_from(places(batch)))
        parent, name = at(batch, way[:-1]), way[-1]
        match draw(st.sampled_from(("replace", "replace", "drop", "twice", "repeat", "name"))):
            case "replace":
                parent[name] = Raw(draw(st.sampled_from(TOKENS)))
            case "drop":
                del parent[name]
            case "repeat" if isinstance(parent, list):
                parent.insert(name, parent[name])
            case "twice" if isinstance(parent, dict):
                # written in front of the field that counts
                parent[Twice(name)] = Raw(draw(st.sampled_from(TOKENS)))
            case "name" if isinstance(parent, dict):
                parent[draw(st.text(max_size=5))] = parent.pop(name)
    raw = bytearray(written(in_pairs(batch)).encode("utf-8", "surrogatepass"))
    if draw(st.integers(0, 4)) == 0:
        place = draw(st.integers(0, len(raw) - 1))
        raw[place : place + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(raw)


class Twice(str):
    """A field's name that is not the same as itself, so that an object holds it twice."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def in_pairs(node: Any) -> Any:
    """The same with objects as pairs, fields that are there twice first."""
    if isinstance(node, dict):
        ordered = sorted(node.items(), key=lambda pair: not isinstance(pair[0], Twice))
        return Pairs((str(name), in_pairs(value)) for name, value in ordered)
    return [in_pairs(one) for one in node] if isinstance(node, list) else node


def rows_of(sent: dict[str, Any], part: str, left_out: set[int]) -> list[dict[str, Any]]:
    """The rows of a part as a reader of JSON finds them, but those that were rejected."""
    columns = sent.get(part) or {"seq": []}
    rows = [{name: column[row] for name, column in columns.items()} for row in range(len(columns["seq"]))]
    return [row for row in rows if row["seq"] not in left_out]


def as_column(said: Any, stored: Any) -> Any:
    """What was said, in a column of doubles the double that is nearest to it."""
    return float(said) if type(said) is int and isinstance(stored, float) else said


async def stored_rows(app: FastAPI, table: Any, stream_id: str, *order: Any) -> list[Any]:
    async with app.state.sessions() as session:
        found = await session.scalars(select(table).where(table.stream_id == stream_id).order_by(*order))
        return list(found)


async def assert_holds(app: FastAPI, stream_id: str, sent: dict[str, Any], rejected: set[int]) -> None:
    """The database has what the body says, and nothing else."""
    for table, part, order in ((Measurement, "measurements", ()), (Metric, "metrics", (Metric.name,))):
        wanted = sorted(rows_of(sent, part, rejected), key=lambda row: (row["seq"], row.get("name", "")))
        found = await stored_rows(app, table, stream_id, table.seq, *order)
        for one, row in zip(found, wanted, strict=True):
            stored = {name: getattr(one, name) for name in row}
            assert stored == {name: as_column(value, stored[name]) for name, value in row.items()}
    groups = await stored_rows(app, GroupMeasurement, stream_id)
    assert {one.seq for one in groups} == {one["seq"] for one in sent.get("groups") or []} - rejected
    async with app.state.sessions() as session:
        run = await session.get(Run, sent["run_id"])
    said = sent["run"]["run"]
    name = said.get("name") or str(run.id)[:8]
    assert (run.name, run.tags, run.config) == (name, said.get("tags", []), said.get("config", {}))


async def assert_refused_or_held(app: FastAPI, client: httpx.AsyncClient, raw: bytes) -> None:
    stream_id = f"{uuid4()}"
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}

    answer = await client.post(f"/api/v1/streams/{stream_id}/batches", content=gzip.compress(raw, 1), headers=headers)

    assert answer.status_code in (200, 409, 410, 422, 426), (answer.text, raw)
    if answer.status_code == 200:
        rejected = {record["seq"] for record in answer.json()["rejected"]}
        await assert_holds(app, stream_id, json.loads(raw), rejected)
    else:
        assert answer.headers["content-type"] == "application/problem+json"
        assert await stored_rows(app, Measurement, stream_id) == []


async def test_a_whole_batch_is_stored_as_it_is(shared_app: FastAPI, shared_client: httpx.AsyncClient) -> None:
    """The test below would pass on a server that refuses everything."""
    raw = json.dumps(whole_batch()).encode()

    await assert_refused_or_held(shared_app, shared_client, raw)
    answer = await shared_client.post(
        f"/api/v1/streams/{uuid4()}/batches", json=whole_batch(), headers={"Content-Type": "application/json"}
    )

    assert (answer.status_code, answer.json()["acked_seq"], answer.json()["rejected"]) == (200, 10, [])


@pytest.mark.parametrize("num_examples", [100, pytest.param(1_000, marks=pytest.mark.slow)])
async def test_whatever_is_wrong_it_is_refused_or_stored_as_it_was_read(
    shared_app: FastAPI, shared_client: httpx.AsyncClient, num_examples: int
) -> None:
    for raw in examples_of(num_examples):
        await assert_refused_or_held(shared_app, shared_client, raw)


def examples_of(count: int) -> list[bytes]:
    """So many broken batches, the same ones every time."""
    found: list[bytes] = []

    @settings(
        max_examples=count, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(broken())
    def collect(raw: bytes) -> None:
        found.append(raw)

    collect()
    return found


async def test_a_server_that_stores_another_value_than_was_sent_is_caught(
    shared_app: FastAPI, shared_client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept = ingestion.accept

    async def wrong(session: Any, batch: Any, *more: Any) -> Any:
        batch.measurements.lr[0] = 0.7
        return await accept(session, batch, *more)

    monkeypatch.setattr(ingestion, "accept", wrong)

    with pytest.raises(AssertionError):
        await assert_refused_or_held(shared_app, shared_client, json.dumps(whole_batch()).encode())
