"""The figures of a whole run are remembered until data come, and never longer."""

from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI

from factories import make_batch, make_measurements
from noisescale_core.estimators.uncertainty import NOTHING_MEASURED
from noisescale_server.services.recommendation import decisions
from noisescale_server.services.series import latest, whole_run
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.services.series.whole_run import WholeRuns


async def send(client: httpx.AsyncClient, run_id: str, stream_id: str, steps: range, **parts: object) -> None:
    body = make_batch(run_id=run_id, measurements=make_measurements(steps=steps), **parts)
    answer = await client.post(f"/api/v1/streams/{stream_id}/batches", json=body)
    assert answer.status_code == 200, answer.text


async def figures(client: httpx.AsyncClient, run_id: str, **query: int) -> tuple[dict, dict]:
    answer = (await client.get(f"/api/v1/runs/{run_id}/noise-scale", params=query)).raise_for_status().json()
    return answer["latest"], answer["run_average"]


@pytest.fixture
def nothing_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server judges no run by itself meanwhile."""

    async def none_to_judge(_: object) -> list[UUID]:
        return []

    monkeypatch.setattr(decisions, "of_a_round", none_to_judge)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch, nothing_judged: None) -> list[object]:
    """The runs whose latest window was computed for a reader."""
    runs: list[object] = []
    compute = latest.window

    async def count(session, live):
        runs.append(live.run_id)
        return await compute(session, live)

    monkeypatch.setattr(whole_run.latest, "window", count)
    return runs


async def test_a_second_look_and_a_zoom_compute_nothing_again(shared_client: httpx.AsyncClient, computed: list) -> None:
    run_id, stream_id = str(uuid4()), str(uuid4())
    await send(shared_client, run_id, stream_id, range(60))
    first = await figures(shared_client, run_id)
    num_computed = len(computed)

    again = await figures(shared_client, run_id)
    zoomed = await figures(shared_client, run_id, **{"from": 10, "to": 20})

    assert again == zoomed == first
    assert len(computed) == num_computed


async def test_new_rows_change_the_figures_at_once(shared_client: httpx.AsyncClient) -> None:
    run_id, stream_id = str(uuid4()), str(uuid4())
    await send(shared_client, run_id, stream_id, range(60))
    before = await figures(shared_client, run_id)

    body = make_batch(
        run_id=run_id, first_seq=62, run=None, measurements=make_measurements(steps=range(60, 120), first_seq=62)
    )
    answer = await shared_client.post(f"/api/v1/streams/{stream_id}/batches", json=body)
    after = await figures(shared_client, run_id)

    assert answer.status_code == 200, answer.text
    assert after[1]["num_updates"] > before[1]["num_updates"]
    assert after != before


@pytest.fixture
def histories(monkeypatch: pytest.MonkeyPatch, nothing_judged: None) -> list[object]:
    """The runs whose history was read from the database, by nobody but the test."""
    runs: list[object] = []
    read = whole_run.run_history.read

    async def count(session, live, wanted, **others):
        runs.append(live.run_id)
        return await read(session, live, wanted, **others)

    monkeypatch.setattr(whole_run.run_history, "read", count)
    return runs


async def test_a_run_and_its_recommendation_read_its_history_once(
    shared_client: httpx.AsyncClient, histories: list
) -> None:
    run_id, stream_id = str(uuid4()), str(uuid4())
    await send(shared_client, run_id, stream_id, range(60))

    (await shared_client.get(f"/api/v1/runs/{run_id}")).raise_for_status()
    (await shared_client.get(f"/api/v1/runs/{run_id}/recommendation")).raise_for_status()

    assert histories == [UUID(run_id)]


async def test_runs_that_are_judged_in_turn_push_out_nothing_that_was_read(
    shared_app: FastAPI, shared_client: httpx.AsyncClient, histories: list
) -> None:
    run_id, stream_id = str(uuid4()), str(uuid4())
    await send(shared_client, run_id, stream_id, range(60))
    known = WholeRuns()

    for _ in range(2):
        async with shared_app.state.sessions() as session:
            await decisions.refresh(session, UUID(run_id), known)

    assert histories == 2 * [UUID(run_id)]


async def test_the_oldest_are_forgotten(session, monkeypatch: pytest.MonkeyPatch) -> None:
    known = whole_run.WholeRuns(capacity=2)

    async def figures(*_):
        return whole_run.WholeRun(NOTHING_MEASURED, NOTHING_MEASURED, signal_step=None)

    monkeypatch.setattr(whole_run, "_compute", figures)
    runs = [type("Run", (), {"id": uuid4(), "created_at": None})() for _ in range(3)]

    for run in runs:
        await known.of_run(session, run, LiveSeries.of(run.id, "simple", ()))

    assert [key[0] for key in known._known] == [run.id for run in runs[1:]]
