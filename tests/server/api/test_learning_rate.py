"""GET /api/v1/runs/{id}/learning-rate: the verdict from stored rows, along the run, over restarts and resumptions."""

import math
from typing import Any
from uuid import uuid4

import httpx
import pytest

from factories import STARTED_AT, make_batch, make_measurements, make_run, make_stream, with_path, with_promise
from noisescale_core.advice.learning_rate.rate_verdict import rate_verdict
from noisescale_core.estimators.path import Path, push_since, walk_factor
from noisescale_server.storage import learning_rate as path_sums
from noisescale_server.storage.learning_rate import LastOfPath
from noisescale_server.storage.series.series import Piece
from problems import assert_problem


async def post(
    client: httpx.AsyncClient,
    rows: dict[str, list[Any]],
    *,
    run_id: str | None = None,
    planned_steps: int | None = 1200,
    started_at: float = STARTED_AT,
    **parts: Any,
) -> str:
    run_id = run_id or str(uuid4())
    batch = make_batch(
        run_id=run_id,
        run=make_run(planned_steps=planned_steps),
        stream=make_stream(started_at=started_at),
        measurements=rows,
        **parts,
    )
    answer = await client.post(f"/api/v1/streams/{uuid4()}/batches", json=batch)
    assert answer.status_code == 200, answer.text
    assert answer.json()["rejected"] == []
    return run_id


async def ask(client: httpx.AsyncClient, run_id: str, **query: Any) -> dict[str, Any]:
    answer = await client.get(f"/api/v1/runs/{run_id}/learning-rate", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_rate_that_is_too_low_is_told_as_the_core_tells_it(client: httpx.AsyncClient) -> None:
    run_id = await post(client, with_path(make_measurements(steps=range(601)), octaves=-1.5))

    found = await ask(client, run_id)

    half, path = (Path(float(n), float(n), 0.0, n / 4**-1.5) for n in (300, 600))
    path = path._replace(push=push_since(half, path))
    expected = rate_verdict(path, optimizer="SGD", planned_steps=1200, schedule="constant")
    assert found["verdict"] == expected.verdict == "too_low"
    assert found["reason"] == expected.reason
    for name in (
        "octaves", "low", "high", "factor", "factor_low", "factor_high", "probability", "ratio", "progress", "push",
        "push_low", "push_high",
    ):  # fmt: skip
        assert found[name] == pytest.approx(getattr(expected, name)), name
    assert found["path"] == {
        "start": 0,
        "num_updates": 600,
        "sum_update_sq_norm": 600.0,
        "update_sq_norm_variance": 0.0,
        "sq_distance": pytest.approx(600 / 4**-1.5),
        "momentum": 0.0,
    }
    assert (found["step"], found["optimizer"], found["learning_rate"]) == (600, "SGD", 0.1)


async def test_points_along_the_run_hold_what_was_known_then(client: httpx.AsyncClient) -> None:
    run_id = await post(client, with_path(make_measurements(steps=range(601)), octaves=-0.4, every=10))

    points = (await ask(client, run_id, points=60))["points"]

    assert 30 <= len(points) <= 61
    assert [point["step"] for point in points] == sorted(point["step"] for point in points)
    for point in points:
        assert point["ratio"] == pytest.approx(-0.4), point["step"]
        assert point["ratio_low"] < point["ratio"] < point["ratio_high"]
        # nothing is said before a tenth of the plan
        assert (point["verdict"] is None) == (point["step"] < 120)
        assert (point["octaves"] is None) == (point["verdict"] is None)


@pytest.mark.parametrize("points", [1, 7, 100, 1000])
async def test_every_number_of_points_ends_with_the_same_verdict(client: httpx.AsyncClient, points: int) -> None:
    run_id = await post(client, with_path(make_measurements(steps=range(701)), octaves=1.5, every=4))

    found = await ask(client, run_id, points=points)

    assert 1 <= len(found["points"]) <= points
    assert found["points"][-1]["step"] == found["step"] == 700
    assert found["path"]["num_updates"] == 700
    assert found["ratio"] == pytest.approx(1.5)
    assert found["verdict"] == "too_high"


@pytest.mark.parametrize("has_path", [True, False])
async def test_where_the_newest_path_began_is_found_in_buckets_and_not_in_millions_of_rows(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, has_path: bool
) -> None:
    run_id = None
    for first, last, start in ((0, 1984, 0), (1984, 3968, 0), (3968, 5952, 0), (5952, 7001, 5951)):
        rows = make_measurements(steps=range(first, last))
        rows = with_path(rows, octaves=0.2, start=start) if has_path else rows
        run_id = await post(client, rows, run_id=run_id, planned_steps=8000, started_at=STARTED_AT + first)
    assert run_id
    # from here on, and each reading by itself: the server also reads young runs now and then to have them ready
    rows_asked: list[int] = []

    async def last_of_path(session: Any, run_id: Any, pieces: list[Piece]) -> LastOfPath | None:
        rows_asked.append(sum(piece.high - piece.low + 1 for piece in pieces if piece.level == 0))
        return await found_by(session, run_id, pieces)

    found_by = path_sums.last_of_path
    monkeypatch.setattr(path_sums, "last_of_path", last_of_path)

    found = await ask(client, run_id)

    assert rows_asked
    assert max(rows_asked) < 64
    assert (found["path"] or {}).get("start") == (5951 if has_path else None)


async def test_a_path_that_began_again_counts_from_there(client: httpx.AsyncClient) -> None:
    before = with_path(make_measurements(steps=range(300)), octaves=-1.0)
    after = with_path(make_measurements(first_seq=302, steps=range(300, 601)), octaves=0.2, start=299)
    rows = {name: before[name] + after[name] for name in before}
    run_id = await post(client, rows)

    found = await ask(client, run_id)

    assert found["path"]["start"] == 299
    assert found["path"]["num_updates"] == 301
    assert found["ratio"] == pytest.approx(0.2)
    assert all(point["step"] > 299 for point in found["points"])


async def test_a_resumed_run_takes_the_steps_that_were_made_again_from_the_newer_stream(
    client: httpx.AsyncClient,
) -> None:
    run_id = await post(client, with_path(make_measurements(steps=range(401)), octaves=-0.4))
    again = with_path(make_measurements(steps=range(300, 601)), octaves=-0.4)
    await post(client, again, run_id=run_id, started_at=STARTED_AT + 100)

    found = await ask(client, run_id)

    assert found["path"]["num_updates"] == 600
    assert found["ratio"] == pytest.approx(-0.4)


async def test_momentum_and_the_error_of_the_sum_are_in_the_ratio(client: httpx.AsyncClient) -> None:
    rows = with_path(make_measurements(steps=range(601)), momentum=0.9, variance=4.0)
    found = await ask(client, await post(client, rows))

    assert found["ratio"] == pytest.approx(0.5 * math.log2(walk_factor(0.9, 600)))
    exact = await ask(client, await post(client, with_path(make_measurements(steps=range(601)), momentum=0.9)))
    assert found["ratio_high"] - found["ratio_low"] > exact["ratio_high"] - exact["ratio_low"]


async def test_rows_of_a_client_of_before_have_no_path(client: httpx.AsyncClient) -> None:
    found = await ask(client, await post(client, make_measurements(steps=range(200))))

    assert found["verdict"] is None
    assert "judge_rate=False" in found["reason"]
    assert (found["path"], found["points"], found["step"]) == (None, [], None)


async def test_a_run_without_rows_says_the_same(client: httpx.AsyncClient) -> None:
    run_id = str(uuid4())
    await client.post("/api/v1/runs", json=make_run() | {"id": run_id})

    assert (await ask(client, run_id))["verdict"] is None


async def test_a_run_that_has_ended_without_a_plan_was_its_own_plan(client: httpx.AsyncClient) -> None:
    rows = with_path(make_measurements(steps=range(601)), octaves=-0.4)
    finish = {"seq": 603, "status": "finished", "wall_time": 1.79e9}
    run_id = await post(client, rows, planned_steps=None, finish=finish)

    assert (await ask(client, run_id))["progress"] == pytest.approx(600 / 601)


async def test_a_run_that_has_diverged_is_told_so(client: httpx.AsyncClient) -> None:
    rows = with_path(make_measurements(steps=range(601)), octaves=0.4)
    for place in range(590, 601):
        rows["sum_loss"][place], rows["num_loss"][place], rows["flags"][place] = None, 0, 2
    found = await ask(client, await post(client, rows))

    assert found["verdict"] is None
    assert "not finite since step 590" in found["reason"]


async def test_an_unknown_run_and_a_wrong_number_of_points_are_refused(client: httpx.AsyncClient) -> None:
    unknown = await client.get(f"/api/v1/runs/{uuid4()}/learning-rate")
    run_id = await post(client, make_measurements())
    wrong = await client.get(f"/api/v1/runs/{run_id}/learning-rate", params={"points": 0})

    assert_problem(unknown, 404, "run-not-found")
    assert_problem(wrong, 422, "invalid-input")


@pytest.mark.parametrize(("octaves", "decision"), [(9.0, "keep_for_now"), (-9.0, "decrease"), (0.0, "decrease")])
async def test_a_smaller_batch_waits_for_a_rate_that_is_far_too_high_on_every_page(
    shared_client: httpx.AsyncClient, octaves: float, decision: str
) -> None:
    rows = make_measurements(steps=range(601), noise_scale=30.0, global_batch=1024.0)
    run_id = await post(shared_client, with_path(rows, octaves=octaves))

    page = (await shared_client.get(f"/api/v1/runs/{run_id}/recommendation")).raise_for_status().json()
    at_half = (
        (await shared_client.get(f"/api/v1/runs/{run_id}/recommendation", params={"to_step": 400}))
        .raise_for_status()
        .json()
    )
    several = (
        (await shared_client.get("/api/v1/runs/recommendations", params={"ids": run_id})).raise_for_status().json()
    )
    row = (await shared_client.get(f"/api/v1/runs/{run_id}")).raise_for_status().json()["decision"]

    assert page["decision"] == row["decision"] == decision
    assert at_half["decision"] == several["recommendations"][0]["decision"] == decision
    assert page["reason"] == row["reason"]
    assert (page["headline"] == "Set the learning rate first") is (decision == "keep_for_now")
    assert (page["odds"] is None) is (row["probability"] is None) is (decision == "keep_for_now")


async def test_who_has_set_the_rate_is_not_told_to_set_it_again(shared_client: httpx.AsyncClient) -> None:
    """The path remembers the steps at the old rate: what it says is of that one."""
    rows = make_measurements(steps=range(601), noise_scale=30.0, global_batch=1024.0)
    rows = with_path(rows, octaves=9.0) | {"lr": [0.8] * 500 + [0.1] * 101}
    run_id = await post(shared_client, rows)

    page = (await shared_client.get(f"/api/v1/runs/{run_id}/recommendation")).raise_for_status().json()
    row = (await shared_client.get(f"/api/v1/runs/{run_id}")).raise_for_status().json()["decision"]

    assert page["decision"] == row["decision"] == "decrease"
    assert page["odds"] is not None


NO_PROMISE = "What the updates promise is not measured"


async def test_the_promise_and_the_share_of_it_that_came_over_the_last_half_of_the_steps(
    client: httpx.AsyncClient,
) -> None:
    rows = with_promise(with_path(make_measurements(steps=range(801))), each=0.01, share=0.4, error=0.2)

    found = await ask(client, await post(client, rows), points=1)

    assert found["num_promised_updates"] == 800
    assert found["promised_fall"] == pytest.approx(8.0)
    half = 1.96 * 0.2 * 0.16 * math.sqrt(50)
    assert found["promised_fall_high"] - found["promised_fall"] == pytest.approx(half, rel=1e-3)
    assert found["promised_fall"] - found["promised_fall_low"] == pytest.approx(half, rel=1e-3)
    assert found["kept_share"] == pytest.approx(0.4, rel=0.01)
    # of the promise alone: three of eight parts of the steps lie between the ends
    wide = 1.96 * 0.4 * 0.2 / math.sqrt(50 * 3 / 8)
    assert found["kept_share_high"] - found["kept_share"] == pytest.approx(wide, rel=0.05)
    assert found["kept_share_reason"] is None


async def test_a_promise_of_a_path_that_began_again_counts_from_there(client: httpx.AsyncClient) -> None:
    before = with_promise(with_path(make_measurements(steps=range(320)), octaves=-1.0), each=5.0)
    after = with_promise(
        with_path(make_measurements(first_seq=322, steps=range(320, 801)), octaves=0.2, start=319), each=0.01
    )
    run_id = await post(client, {name: before[name] + after[name] for name in before})

    assert (await ask(client, run_id))["promised_fall"] == pytest.approx(0.01 * (800 - 304))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"sum_loss": None, "num_loss": 0}, "No training loss was logged"),
        ({"num_promised_updates": 0, "sum_promised_fall": None, "promised_fall_variance": None}, NO_PROMISE),
        ({"promised_fall_variance": 4.0}, "scatter too much"),
    ],
)
async def test_where_no_share_of_the_promise_is_known_the_reason_says_why(
    client: httpx.AsyncClient, changes: dict[str, Any], why: str
) -> None:
    rows = with_promise(with_path(make_measurements(steps=range(801))))
    told = rows["num_promised_updates"]
    for name, value in changes.items():
        of_none = None if name == "promised_fall_variance" else value
        rows[name] = [value if count else of_none for count in told]

    found = await ask(client, await post(client, rows))

    assert (found["kept_share"], found["kept_share_low"], found["kept_share_high"]) == (None, None, None)
    assert why in found["kept_share_reason"]


async def test_rows_of_a_client_of_before_promise_nothing(client: httpx.AsyncClient) -> None:
    found = await ask(client, await post(client, with_path(make_measurements(steps=range(601)), octaves=-0.4)))

    assert found["ratio"] == pytest.approx(-0.4)
    assert (found["promised_fall"], found["num_promised_updates"], found["kept_share"]) == (None, 0, None)
    assert NO_PROMISE in found["kept_share_reason"]
