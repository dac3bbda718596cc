"""Layers of long runs: read from a pyramid of group records, with the same sums as from the records themselves."""

import math
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI

from factories import make_batch, make_groups, make_measurements, make_run, make_stream
from noisescale_server.services.series import layer_series, layers
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.storage.runs import streams
from noisescale_server.storage.series import group_series
from noisescale_server.storage.series.group_series import LayerPoints
from noisescale_server.storage.series.series import ONE_POINT
from problems import assert_problem

NAMES = ("embedding", "blocks.0", "head")
SPACING, NUM_RECORDS = 300, 400
LAST_STEP = SPACING * NUM_RECORDS - 1
RANGES = [(0, LAST_STEP), (1, LAST_STEP - 1), (1_024, 70_000), (5_000, 36_000), (40_000, 41_000)]


def batch_of_layers(
    run_id: str,
    *,
    first_record: int = 0,
    num_records: int = NUM_RECORDS,
    first_seq: int = 1,
    started_at: float = 1.79e9,
) -> dict[str, Any]:
    """A row and a record of three layers every 300 steps."""
    places = range(first_record, first_record + num_records)
    is_first = first_seq == 1
    first_row = first_seq + is_first
    rows = make_measurements(first_seq=first_row, steps=[SPACING * (place + 1) - 1 for place in places])
    groups = [
        make_groups(seq=first_row + num_records + i, step=SPACING * (place + 1) - 1, names=NAMES, seed=place)
        for i, place in enumerate(places)
    ]
    head = {"run": make_run(), "stream": make_stream(started_at=started_at)} if is_first else {}
    last_seq = first_row + 2 * num_records - 1
    return make_batch(run_id=run_id, first_seq=first_seq, last_seq=last_seq, measurements=rows, groups=groups, **head)


async def send(client: httpx.AsyncClient, stream_id: str, batch: dict[str, Any]) -> None:
    answer = await client.post(f"/api/v1/streams/{stream_id}/batches", json=batch)
    assert answer.status_code == 200, answer.text


@pytest.fixture(scope="module")
async def run_id(shared_client: httpx.AsyncClient) -> str:
    """120,000 steps, of which a job that was resumed at 60,000 logs half again."""
    made = str(uuid4())
    await send(shared_client, str(uuid4()), batch_of_layers(made))
    half = NUM_RECORDS // 2
    resumed = batch_of_layers(made, first_record=half, num_records=half, started_at=1.8e9)
    await send(shared_client, str(uuid4()), resumed)
    return made


async def layers_of(
    app: FastAPI, run_id: str, ends: tuple[int, int], *, level: int, steps_per_point: int, name: str | None = None
) -> list[LayerPoints]:
    async with app.state.sessions() as session:
        live = LiveSeries.of(UUID(run_id), "simple", await streams.coverage_of_run(session, UUID(run_id)))
        pieces = live.group_pieces(*ends, level)
        return await group_series.points(
            session, UUID(run_id), pieces, steps_per_point=steps_per_point, names=name and [name]
        )


def numbers(layer: LayerPoints) -> list[float]:
    columns = (layer.points.point, *(getattr(layer.points, name) for name in FILLED))
    return [float(value) for column in columns for value in column] + [x for point in layer.moments for x in point]


FILLED = (
    "num_blocks", "num_updates", "trace_cov", "grad_sq_norm", "trace_cov_sq", "grad_sq_norm_sq", "cross",
    "weighted_trace_cov", "weighted_grad_sq_norm", "num_updates_sq", "trace_cov_min", "trace_cov_max",
    "grad_sq_norm_min", "grad_sq_norm_max", "step_last", "wall_time_last",
)  # fmt: skip


@pytest.mark.parametrize("ends", RANGES)
@pytest.mark.parametrize(("level", "steps_per_point"), [(2, 4_096), (3, 32_768), (5, ONE_POINT)])
async def test_buckets_add_up_to_what_their_records_do(
    shared_app: FastAPI, run_id: str, ends: tuple[int, int], level: int, steps_per_point: int
) -> None:
    of_rows = await layers_of(shared_app, run_id, ends, level=0, steps_per_point=steps_per_point)
    of_buckets = await layers_of(shared_app, run_id, ends, level=level, steps_per_point=steps_per_point)

    assert [layer.name for layer in of_buckets] == [layer.name for layer in of_rows] == list(NAMES)
    for rows, buckets in zip(of_rows, of_buckets, strict=True):
        assert numbers(buckets) == pytest.approx(numbers(rows), rel=1e-12)


async def test_a_batch_that_is_sent_again_is_not_added_again(shared_app: FastAPI, shared_client: Any) -> None:
    run_id, stream_id = str(uuid4()), str(uuid4())
    batch = batch_of_layers(run_id, num_records=20)
    await send(shared_client, stream_id, batch)
    await send(shared_client, stream_id, batch)
    await send(shared_client, stream_id, batch_of_layers(run_id, first_record=20, num_records=20, first_seq=42))

    [layer, *_] = await layers_of(shared_app, run_id, (0, 40 * SPACING - 1), level=5, steps_per_point=ONE_POINT)

    assert (list(layer.points.num_blocks), list(layer.points.num_updates)) == ([40], [400])


async def test_the_map_of_a_long_run_comes_from_few_buckets_and_holds_every_record(
    shared_client: httpx.AsyncClient, run_id: str
) -> None:
    answer = (await shared_client.get(f"/api/v1/runs/{run_id}/groups", params={"points": 30})).json()

    for group in answer["groups"]:
        steps = group["series"]["step"]
        assert 15 <= len(steps) <= 30
        assert steps[-1] == LAST_STEP
        assert group["estimate"]["num_updates"] == 10 * NUM_RECORDS


@pytest.mark.parametrize("window", [2_000, 6_000])
async def test_a_zoomed_layer_shows_what_it_would_if_all_of_the_run_were_read(
    shared_client: httpx.AsyncClient, run_id: str, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = {"group": "blocks.0", "from": 100_000, "to": 110_000, "points": 50, "window": window}
    path = f"/api/v1/runs/{run_id}/noise-scale"
    near = (await shared_client.get(path, params=query)).json()

    monkeypatch.setattr(layer_series, "NUM_WINDOWS_BACK", 10**9)
    whole = (await shared_client.get(path, params=query)).json()

    assert near["num_points"] > 20
    for name in ("step", "value", "low", "high"):
        assert near["points"][name] == pytest.approx(whole["points"][name], rel=1e-9)
    assert all(math.isfinite(value) for value in near["points"]["value"])


@pytest.mark.parametrize("level", [0, 2, 3])
async def test_of_one_layer_exactly_the_same_is_read_as_of_it_among_all(
    shared_app: FastAPI, run_id: str, level: int
) -> None:
    ends = (0, LAST_STEP)
    all_layers = await layers_of(shared_app, run_id, ends, level=level, steps_per_point=ONE_POINT)
    [among_all] = [one for one in all_layers if one.name == "blocks.0"]

    [alone] = await layers_of(shared_app, run_id, ends, level=level, steps_per_point=ONE_POINT, name="blocks.0")

    assert alone.name == "blocks.0"
    # of floats the order of addition is not the same
    assert numbers(alone) == pytest.approx(numbers(among_all), rel=1e-12)


async def test_layers_that_come_without_a_step_are_in_the_next_answer(shared_client: httpx.AsyncClient) -> None:
    made, stream_id = str(uuid4()), str(uuid4())
    await send(shared_client, stream_id, batch_of_layers(made, num_records=20))
    before = (await shared_client.get(f"/api/v1/runs/{made}/groups")).json()
    again = (await shared_client.get(f"/api/v1/runs/{made}/groups")).json()
    alone = [make_groups(seq=42, step=SPACING - 1, names=["late"], seed=1)]

    await send(shared_client, stream_id, make_batch(run_id=made, first_seq=42, last_seq=42, groups=alone))

    after = (await shared_client.get(f"/api/v1/runs/{made}/groups")).json()
    assert before == again
    assert {one["name"] for one in after["groups"]} - {one["name"] for one in before["groups"]} == {"late"}


async def pages_of_layers(client: httpx.AsyncClient, run_id: str, **query: Any) -> list[dict[str, Any]]:
    pages = [(await client.get(f"/api/v1/runs/{run_id}/groups", params=query)).json()]
    while (cursor := pages[-1]["next_cursor"]) is not None:
        pages.append((await client.get(f"/api/v1/runs/{run_id}/groups", params={**query, "cursor": cursor})).json())
    return pages


@pytest.mark.parametrize("asked", [{"points": 5}, {"from": 40_000, "to": 100_000, "points": 9}])
async def test_layers_come_by_pages_with_the_numbers_that_they_have_together(
    shared_client: httpx.AsyncClient, run_id: str, asked: dict[str, int]
) -> None:
    [whole] = await pages_of_layers(shared_client, run_id, **asked)

    pages = await pages_of_layers(shared_client, run_id, **asked, limit=2)

    assert [[one["name"] for one in page["groups"]] for page in pages] == [list(NAMES[:2]), list(NAMES[2:])]
    assert [one for page in pages for one in page["groups"]] == whole["groups"]
    assert {(page["from"], page["to"]) for page in pages} == {(whole["from"], whole["to"])}


async def test_a_page_of_layers_has_no_more_points_than_an_answer_may_have(
    shared_client: httpx.AsyncClient, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "MAX_POINTS", 14)

    pages = await pages_of_layers(shared_client, run_id, points=7, to=LAST_STEP - 3)

    assert [len(page["groups"]) for page in pages] == [2, 1]


async def test_a_cursor_that_no_record_names_is_a_layer_not_found(
    shared_client: httpx.AsyncClient, run_id: str
) -> None:
    answer = await shared_client.get(f"/api/v1/runs/{run_id}/groups", params={"cursor": "blocks"})

    assert_problem(answer, 404, "layer-not-found")


async def test_behind_the_last_layer_there_is_none(shared_client: httpx.AsyncClient, run_id: str) -> None:
    answer = (await shared_client.get(f"/api/v1/runs/{run_id}/groups", params={"cursor": NAMES[-1]})).json()

    assert (answer["groups"], answer["next_cursor"]) == ([], None)


async def test_layers_that_came_in_parts_are_paged_in_network_order(shared_client: httpx.AsyncClient) -> None:
    names = [f"layer.{number}" for number in range(300)]
    parts = [make_groups(seq=4, step=1, names=names[:256]), make_groups(seq=5, step=1, names=names[256:])]
    body = make_batch(measurements=make_measurements(first_seq=2, steps=[0, 1]), last_seq=5, groups=parts)
    await send(shared_client, str(uuid4()), body)

    pages = await pages_of_layers(shared_client, body["run_id"], points=1)

    assert [len(page["groups"]) for page in pages] == [200, 100]
    assert [one["name"] for page in pages for one in page["groups"]] == names
