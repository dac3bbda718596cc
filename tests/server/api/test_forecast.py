"""GET /api/v1/runs/{id}/forecast and /api/v1/sweeps/{id}/forecast."""

import math
from typing import Any
from uuid import uuid4

import httpx
import pytest

from factories import make_batch, make_measurements, make_run, make_stream
from problems import assert_problem
from sweep_curves import BATCH_SIZES, curve, sweep_of

NUM_STEPS, POWER = 400, 0.5


async def growing_run(
    client: httpx.AsyncClient,
    *,
    cold_from: int = NUM_STEPS,
    planned_steps: int | None = None,
    power: float = POWER,
    outlier_at: int | None = None,
) -> str:
    """A run whose noise scale is 100 √steps and whose loss is 4 / steps^0.1, so that it is 100 (4 / loss)^5."""
    growing = growing_stream(
        client, cold_from=cold_from, planned_steps=planned_steps, power=power, outlier_at=outlier_at
    )
    return (await growing)[0]


async def growing_stream(
    client: httpx.AsyncClient,
    *,
    cold_from: int = NUM_STEPS,
    planned_steps: int | None = None,
    power: float = POWER,
    outlier_at: int | None = None,
) -> tuple[str, str]:
    """The same run and the stream that writes it."""
    rows = make_measurements(steps=range(NUM_STEPS), noise_scale=100.0)
    for place in range(NUM_STEPS):
        factor = (place + 1) ** power * (1_000 if place == outlier_at else 1)
        for name, degree in (("sum_trace_cov", 1), ("sum_trace_cov_sq", 2), ("sum_trace_cov_grad_sq_norm", 1)):
            rows[name][place] *= factor**degree
        rows["sum_loss"][place] = 4 * (place + 1) ** -0.1
        rows["lr"][place] = 0.1 if place < cold_from else 0.005
    run_id, stream_id = str(uuid4()), str(uuid4())
    batch = make_batch(
        run_id=run_id, run=make_run(planned_steps=planned_steps), stream=make_stream(), measurements=rows
    )
    answer = await client.post(f"/api/v1/streams/{stream_id}/batches", json=batch)
    assert answer.status_code == 200, answer.text
    return run_id, stream_id


async def forecast(client: httpx.AsyncClient, run_id: str, **query: Any) -> dict[str, Any]:
    answer = await client.get(f"/api/v1/runs/{run_id}/forecast", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


class TestRun:
    @pytest.mark.parametrize(("axis", "power"), [("steps", 0.5), ("examples", 0.5), ("loss", -5.0)])
    async def test_the_planted_power_lies_inside_its_interval(
        self, shared_client: httpx.AsyncClient, axis: str, power: float
    ) -> None:
        found = await forecast(shared_client, await growing_run(shared_client), axis=axis)

        law = found["law"]
        assert law["power"]["low"] < power < law["power"]["high"]
        assert law["power"]["value"] == pytest.approx(power, rel=0.2)
        assert (law["alpha"] is None) == (axis != "loss")
        assert (found["quantity"], found["axis"], found["unit"]) == ("noise_scale", axis, "images")
        assert law["num_clusters"] == 6
        assert len(found["observed"]) == law["num_observations"]

    async def test_a_window_whose_interval_reaches_zero_is_left_out_and_counted(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        """One step with a huge tr Σ in it: no width on the log scale, which the law is fitted on."""
        clean = await forecast(shared_client, await growing_run(shared_client), axis="steps")
        found = await forecast(shared_client, await growing_run(shared_client, outlier_at=390), axis="steps")

        assert found["num_unresolved"] == clean["num_unresolved"] + 1
        assert found["law"] is not None
        assert all(one["low"] > 0 for one in found["observed"])

    async def test_over_the_loss_alpha_has_its_interval(self, shared_client: httpx.AsyncClient) -> None:
        law = (await forecast(shared_client, await growing_run(shared_client)))["law"]

        assert law["alpha"]["low"] < 0.2 < law["alpha"]["high"]
        assert law["irreducible_loss"]["low"] == 0.0

    async def test_the_curve_goes_on_to_the_plan_and_holds_the_truth(self, shared_client: httpx.AsyncClient) -> None:
        found = await forecast(shared_client, await growing_run(shared_client, planned_steps=1000), axis="steps")

        last = found["curve"][-1]
        assert last["x"] == pytest.approx(1000)
        assert last["is_extrapolated"]
        assert last["low"] < 100 * math.sqrt(1000) < (last["high"] or math.inf)
        assert all(
            one["low_of_window"] is None or one["low_of_window"] <= one["low"] <= one["value"] for one in found["curve"]
        )

    async def test_beyond_half_a_decade_there_is_a_warning(self, shared_client: httpx.AsyncClient) -> None:
        run_id = await growing_run(shared_client)

        near = await forecast(shared_client, run_id, axis="steps", to=800)
        far = await forecast(shared_client, run_id, axis="steps", to=8000)

        assert "far" not in {one["code"] for one in near["warnings"]}
        assert "far" in {one["code"] for one in far["warnings"]}
        assert {"confounded", "one_run", "noise_scale"} <= {one["code"] for one in near["warnings"]}
        assert far["curve"][-1]["is_far"]

    async def test_windows_at_less_than_a_tenth_of_the_peak_rate_are_left_out(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        found = await forecast(shared_client, await growing_run(shared_client, cold_from=300), axis="steps")

        assert found["num_cold"] >= 3
        assert max(one["x"] for one in found["observed"]) < 320

    async def test_a_run_without_resolved_windows_says_what_is_missing(self, shared_client: httpx.AsyncClient) -> None:
        batch = make_batch(run_id=str(uuid4()))
        await shared_client.post(f"/api/v1/streams/{uuid4()}/batches", json=batch)

        found = await forecast(shared_client, batch["run_id"])

        assert (found["law"], found["curve"], found["observed"]) == (None, [], [])
        assert "train on" in found["reason"]

    async def test_an_unknown_run_is_not_found(self, shared_client: httpx.AsyncClient) -> None:
        assert_problem(await shared_client.get(f"/api/v1/runs/{uuid4()}/forecast"), 404, "run-not-found")

    @pytest.mark.parametrize(("name", "value"), [("axis", "time"), ("to", "-1"), ("points", "1"), ("level", "1")])
    async def test_bad_questions_are_refused(self, shared_client: httpx.AsyncClient, name: str, value: str) -> None:
        run_id = await growing_run(shared_client)

        answer = await shared_client.get(f"/api/v1/runs/{run_id}/forecast", params={name: value})

        assert_problem(answer, 422, "invalid-input", field=name)


class TestSweep:
    TARGETS = (0.7, 0.6, 0.5, 0.45)

    async def test_a_critical_batch_that_does_not_depend_on_the_target_has_a_power_of_zero(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        """The planted curves need steps in proportion at every target, so B_crit is the same."""
        runs = [curve(size, seed=s, noise=0.03) for size in BATCH_SIZES for s in range(3)]
        sweep_id = await sweep_of(shared_client, *runs, targets=list(self.TARGETS))

        found = (await shared_client.get(f"/api/v1/sweeps/{sweep_id}/forecast")).json()

        assert found["quantity"] == "critical_batch"
        assert found["law"]["power"]["low"] < 0 < found["law"]["power"]["high"]
        assert found["law"]["num_clusters"] == len(BATCH_SIZES)
        assert found["law"]["verdict"] in ("constant", "cannot_tell")

    async def test_without_targets_a_ladder_is_laid(self, shared_client: httpx.AsyncClient) -> None:
        runs = [curve(size, seed=s, noise=0.03) for size in BATCH_SIZES for s in range(2)]
        sweep_id = await sweep_of(shared_client, *runs, targets=[])

        found = (await shared_client.get(f"/api/v1/sweeps/{sweep_id}/forecast")).json()

        assert found["law"]["num_observations"] >= 3

    async def test_one_target_is_no_law(self, shared_client: httpx.AsyncClient) -> None:
        sweep_id = await sweep_of(shared_client, *(curve(size) for size in BATCH_SIZES))

        found = (await shared_client.get(f"/api/v1/sweeps/{sweep_id}/forecast")).json()

        assert found["law"] is None
        assert "needs 3" in found["reason"]

    async def test_a_metric_that_rises_has_no_law_over_a_loss(self, shared_client: httpx.AsyncClient) -> None:
        sweep_id = await sweep_of(shared_client, curve(16), goal="max")

        answer = await shared_client.get(f"/api/v1/sweeps/{sweep_id}/forecast")

        assert_problem(answer, 422, "invalid-input", field="sweep_id")

    async def test_an_unknown_sweep_is_not_found(self, shared_client: httpx.AsyncClient) -> None:
        assert_problem(await shared_client.get(f"/api/v1/sweeps/{uuid4()}/forecast"), 404, "sweep-not-found")


class TestKeptAnswers:
    """Laws are fitted once for what they rest on, and again when that changes."""

    async def test_more_rows_of_a_run_change_its_forecast(self, shared_client: httpx.AsyncClient) -> None:
        run_id, stream_id = await growing_stream(shared_client)
        before = await forecast(shared_client, run_id, axis="steps")

        again = await forecast(shared_client, run_id, axis="steps")
        more = make_measurements(first_seq=NUM_STEPS + 2, steps=range(NUM_STEPS, 2 * NUM_STEPS), noise_scale=5000.0)
        batch = make_batch(run_id=run_id, first_seq=NUM_STEPS + 2, measurements=more)
        assert (await shared_client.post(f"/api/v1/streams/{stream_id}/batches", json=batch)).status_code == 200
        after = await forecast(shared_client, run_id, axis="steps")

        assert again == before
        assert after["observed"][-1]["x"] > 1.5 * before["observed"][-1]["x"]

    async def test_a_run_that_grows_by_less_than_a_percent_keeps_its_law(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        run_id, stream_id = await growing_stream(shared_client)
        found = [await forecast(shared_client, run_id, axis="steps")]
        for first, num_steps in ((NUM_STEPS, 1), (NUM_STEPS + 1, NUM_STEPS // 50)):
            more = make_measurements(first_seq=first + 2, steps=range(first, first + num_steps), noise_scale=5000.0)
            batch = make_batch(run_id=run_id, first_seq=first + 2, crc32=first, measurements=more)
            assert (await shared_client.post(f"/api/v1/streams/{stream_id}/batches", json=batch)).status_code == 200
            found.append(await forecast(shared_client, run_id, axis="steps"))

        assert found[1] == found[0]
        assert found[2]["observed"][-1]["x"] > found[1]["observed"][-1]["x"]

    async def test_another_question_about_the_same_run_has_its_own_answer(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        run_id = await growing_run(shared_client)

        answers = [
            await forecast(shared_client, run_id, **query)
            for query in ({}, {"axis": "steps"}, {"level": 0.8}, {"to": 1.5}, {"points": 7})
        ]

        assert all(one != other for place, one in enumerate(answers) for other in answers[:place])

    async def test_a_run_that_is_attached_changes_the_forecast_of_its_sweep(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        runs = [curve(size, seed=s, noise=0.03) for size in BATCH_SIZES for s in range(3)]
        sweep_id = await sweep_of(shared_client, *runs, targets=list(TestSweep.TARGETS))
        path = f"/api/v1/sweeps/{sweep_id}/forecast"
        before = (await shared_client.get(path)).json()

        again = (await shared_client.get(path)).json()
        added = {"runs": [curve(size, seed=9, noise=0.3) for size in BATCH_SIZES]}
        assert (await shared_client.post(f"/api/v1/sweeps/{sweep_id}/runs", json=added)).status_code == 200
        after = (await shared_client.get(path)).json()

        assert again == before
        assert after["law"] != before["law"]
