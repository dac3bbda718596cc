"""Answers that no model writes have the form that the OpenAPI says."""

import httpx
import pytest
from pydantic import BaseModel

from compared_tasks import stored_run
from factories import STARTED_AT, make_batch, make_groups, make_measurements, make_stream
from noisescale_server.api.platform import columns as schemas_columns


@pytest.fixture(scope="module")
async def runs(shared_client: httpx.AsyncClient) -> tuple[str, str]:
    """Two runs with a noise scale; the first one has layers and a metric too."""
    first = await stored_run(shared_client, project="columns", task="one", noise_scale=100.0, seed=1)
    second = await stored_run(shared_client, project="columns", task="one", noise_scale=300.0, seed=2)
    batch = make_batch(
        run_id=first,
        run={"project": "columns"},
        # later than the first stream: of two that begin at once their ids would say whose rows are hidden
        stream=make_stream(started_at=STARTED_AT + 1),
        measurements=make_measurements(steps=range(1_000, 1_004), lr=0.5),
        metrics={"seq": [6, 7], "step": [1, 2], "wall_time": [1.0, 2.0], "name": ["a", "a"], "value": [1.0, None]},
        groups=[make_groups(seq=8, step=1_003)],
    )
    stream_id = "5c9d2a0e-97ad-4a3b-9c0e-6a6f4d1f0c11"
    answer = await shared_client.post(f"/api/v1/streams/{stream_id}/batches", json=batch)
    assert answer.status_code == 200, answer.text
    return first, second


@pytest.mark.parametrize(
    ("path", "model", "filled"),
    [
        ("/runs/{0}/noise-scale", schemas_columns.SeriesAnswer, "points"),
        ("/runs/{0}/groups", schemas_columns.LayersAnswer, "groups"),
        ("/runs/{0}/noise-scale?group=head&x=wall_time", schemas_columns.SeriesAnswer, "points"),
        ("/runs/{0}/metrics", schemas_columns.MetricsAnswer, "metrics"),
        ("/runs/sparklines?ids={0},{1}", schemas_columns.SparklinesAnswer, "runs"),
        ("/comparison/runs?run={0}&run={1}", schemas_columns.ComparedRunsAnswer, "ratios"),
        ("/comparison/runs?run={0}&run={1}&x=loss", schemas_columns.ComparedRunsAnswer, "ratios"),
    ],
)
async def test_a_real_answer_has_this_form(
    shared_client: httpx.AsyncClient, runs: tuple[str, str], path: str, model: type[BaseModel], filled: str
) -> None:
    answer = await shared_client.get("/api/v1" + path.format(*runs))

    assert answer.json()[filled]
    model.model_validate_json(answer.content, strict=True)


async def test_events_have_it_too(shared_client: httpx.AsyncClient, runs: tuple[str, str]) -> None:
    answer = await shared_client.get(f"/api/v1/runs/{runs[0]}/noise-scale")

    assert {event["kind"] for event in answer.json()["events"]}
