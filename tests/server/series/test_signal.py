"""No noise scale before a run has shown a gradient: not in a window, a layer or the latest value."""

import random
import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import httpx
import numpy as np
import pytest
from sqlalchemy.ext.asyncio import AsyncSession

import brute_force
from factories import make_batch, make_groups, make_measurements, make_stream
from noisescale_core.estimators import signal
from noisescale_server.analysis.series.estimates import estimates_of
from noisescale_server.api.ingest.streams import batch_of
from noisescale_server.api.ingest.wire_schemas import BatchBody
from noisescale_server.services.ingest import ingestion
from noisescale_server.services.recommendation import decisions
from noisescale_server.services.series import evidence, whole_run, windows
from noisescale_server.services.series.live import LiveSeries
from noisescale_server.storage.runs import streams

Rows = dict[str, list[Any]]
SUMS = ("sum_grad_sq_norm", "sum_grad_sq_norm_sq")


def with_gradients(steps: Sequence[int], grad_sq_norms: Sequence[float], **changes: Any) -> Rows:
    """Rows of one update each whose |G|²^ are these."""
    rows = make_measurements(steps=steps, **changes)
    x = rows["sum_trace_cov"]
    return rows | {
        "sum_grad_sq_norm": list(grad_sq_norms),
        "sum_grad_sq_norm_sq": [y * y for y in grad_sq_norms],
        "sum_trace_cov_grad_sq_norm": [a * b for a, b in zip(x, grad_sq_norms, strict=True)],
    }


def pure_noise(num_steps: int, seed: int = 0) -> list[float]:
    """|G|²^ of a run without any gradient: as often below zero as above, and skewed."""
    rng = random.Random(seed)
    return [rng.gammavariate(2.0, 0.5) - 1.0 for _ in range(num_steps)]


async def send(client: httpx.AsyncClient, **parts: Any) -> UUID:
    run_id = uuid4()
    answer = await client.post(f"/api/v1/streams/{uuid4()}/batches", json=make_batch(run_id=run_id, **parts))
    assert answer.status_code == 200, answer.text
    return run_id


async def read(client: httpx.AsyncClient, run_id: UUID, path: str = "") -> dict[str, Any]:
    found: dict[str, Any] = (await client.get(f"/api/v1/runs/{run_id}{path}")).raise_for_status().json()
    return found


async def test_pure_noise_is_never_a_number(shared_client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = await send(shared_client, measurements=with_gradients(range(1_900), pure_noise(1_900)))

    found = await read(shared_client, run_id, "/noise-scale?points=1000&window=16")
    run = await read(shared_client, run_id)
    advice = await read(shared_client, run_id, "/recommendation")

    assert found["points"]["value"] == [None] * found["num_points"]
    assert "no_signal_yet" in found["points"]["reason"]
    assert found["latest"]["value"] is found["run_average"]["value"] is run["noise_scale"]["value"] is None
    assert advice["noise_scale"]["value"] is None
    # that no gradient shows among 1,900 steps says which batches are too small, and no more
    assert re.match(r"By all steps so far the noise scale is above [\d,]+ examples;", advice["reason"])
    assert advice["decision"] == "increase"
    # without the evidence of the run some windows look as if they were bounded
    monkeypatch.setattr(windows, "estimates_of", lambda *sums, **_: estimates_of(*sums, has_signal=True))
    unguarded = (await read(shared_client, run_id, "/noise-scale?points=1000&window=16"))["points"]["value"]
    assert any(value is not None for value in unguarded)


async def test_a_window_without_a_signal_keeps_its_lower_bound_and_the_words_say_why(
    shared_client: httpx.AsyncClient,
) -> None:
    """Twenty steps above zero at the end are bounded by themselves, and nothing beside 380 steps of noise."""
    rows = with_gradients(range(400), [*pure_noise(380), *(0.5 + 0.5 * (-1) ** i for i in range(20))])
    end = {"seq": 402, "status": "finished", "wall_time": 1e9}
    run_id = await send(shared_client, measurements=rows, finish=end)

    run = await read(shared_client, run_id)
    advice = await read(shared_client, run_id, "/recommendation")

    estimate_now = run["noise_scale"]
    assert (estimate_now["state"], estimate_now["reason"]) == ("unresolved", "no_signal_yet")
    assert estimate_now["low"] > 0
    assert advice["noise_scale"]["value"] is None
    assert advice["reason"].startswith("By all steps so far the noise scale is ")
    assert "window of" not in advice["next_step"]


async def test_a_zoomed_range_rests_on_the_whole_run_up_to_its_end(shared_client: httpx.AsyncClient) -> None:
    """The gradient shows from step 200 on; eight weak steps later are a number, the same eight before are none."""
    weak = [0.5 + 0.35 * (-1) ** i for i in range(10)]
    gradients = [*pure_noise(190), *weak, *[5.0 + 0.1 * (-1) ** i for i in range(100)], *weak]
    run_id = await send(shared_client, measurements=with_gradients(range(310), gradients))

    early = (await read(shared_client, run_id, "/noise-scale?from=198&to=199&window=8"))["points"]
    late = (await read(shared_client, run_id, "/noise-scale?from=308&to=309&window=8"))["points"]

    assert early["reason"] == ["no_signal_yet"] * 2
    assert late["state"] == ["tentative"] * 2


async def test_a_layer_needs_a_gradient_of_its_own_also_from_before_the_range(
    shared_client: httpx.AsyncClient,
) -> None:
    records = [make_groups(seq=202 + i, step=10 * i + 9, names=("signal", "noise")) for i in range(20)]
    for record, y in zip(records, pure_noise(20, seed=3), strict=True):
        record["sum_grad_sq_norm"][1] = y
        record["sum_grad_sq_norm_sq"] = [record["sum_grad_sq_norm_sq"][0], 4.0]
    run_id = await send(shared_client, measurements=make_measurements(steps=range(200)), groups=records)

    whole = {one["name"]: one["estimate"] for one in (await read(shared_client, run_id, "/groups"))["groups"]}
    zoomed = (await read(shared_client, run_id, "/groups?from=195&to=199"))["groups"]
    of_noise = (await read(shared_client, run_id, "/noise-scale?group=noise"))["points"]

    assert whole["signal"]["state"] == "resolved"
    assert whole["noise"]["value"] is None
    assert of_noise["value"] == [None] * 20
    # ten updates of one record are too few to show a gradient by themselves
    assert [one["estimate"]["value"] is not None for one in zoomed] == [True, False]


@pytest.mark.parametrize("seed", range(3))
async def test_the_evidence_equals_brute_force_over_the_live_rows(session: AsyncSession, seed: int) -> None:
    rng = random.Random(seed)
    run_id = uuid4()
    histories = [
        make_measurements(steps=range(3_000 * number, 3_000 * number + 1_800), seed=seed + number)
        for number in range(2)
    ] + [make_measurements(steps=range(1_000, 4_000, 2), log_every=2, seed=seed + 7)]
    for number, rows in enumerate(histories):
        body = make_batch(run_id=run_id, stream=make_stream(started_at=1e9 + number), measurements=rows)
        await ingestion.accept(session, batch_of(uuid4(), BatchBody.model_validate(body, strict=False)))
    live = LiveSeries.of(run_id, "simple", await streams.coverage_of_run(session, run_id))
    rows_shown = brute_force.live_rows([brute_force.rows_of(i, rows) for i, rows in enumerate(histories)])

    for high in rng.sample(range(live.first_step, live.intervals[-1].high + 1), 20):
        found = await evidence.of_octaves(session, live, high)

        expected: dict[int, signal.Evidence] = {}
        for row in (row for row in rows_shown if row.step <= high):
            one = signal.Evidence(row.num_updates, *(row.values[name] for name in SUMS))
            octave = signal.octave_of(row.step)
            expected[octave] = expected.get(octave, signal.NO_EVIDENCE).plus(one)
        assert np.array(found) == pytest.approx(np.array([one for _, one in sorted(expected.items())]), rel=1e-9)
        assert await evidence.has_signal(session, live, high) is signal.has_signal(found)


async def test_what_is_known_of_an_earlier_step_is_not_asked_again(
    shared_client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    look = evidence.has_signal

    async def count(session: AsyncSession, live: LiveSeries, high: int) -> bool:
        asked.append(high)
        return await look(session, live, high)

    async def none_to_judge(_: object) -> list[UUID]:
        return []

    # of reads alone: a server that looks after decisions meanwhile asks, too
    monkeypatch.setattr(decisions, "of_a_round", none_to_judge)
    run_id = await send(shared_client, measurements=make_measurements(steps=range(400)))
    monkeypatch.setattr(whole_run, "evidence", SimpleNamespace(has_signal=count))
    for high in (399, 300, 350, 200, 399, 250):
        await read(shared_client, run_id, f"/noise-scale?from=100&to={high}")

    assert asked == [300, 200], "of its newest step a run knows by its latest window"
