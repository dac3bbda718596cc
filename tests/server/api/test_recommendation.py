"""GET /api/v1/runs/{run_id}/recommendation: advice from what is stored."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import update

from factories import STARTED_AT, make_batch, make_measurements, make_run, make_stream, with_path, without_estimates
from noisescale_server.storage.platform.tables import Run
from problems import assert_problem
from stored_runs import resolved, store_run

NOISE_SCALE = 100.0


async def send(client: httpx.AsyncClient, run_id: UUID, **parts: Any) -> None:
    answer = await client.post(f"/api/v1/streams/{uuid4()}/batches", json=make_batch(run_id=run_id, **parts))
    assert answer.status_code == 200, answer.text


async def recommendation(client: httpx.AsyncClient, run_id: UUID, **query: Any) -> dict[str, Any]:
    answer = await client.get(f"/api/v1/runs/{run_id}/recommendation", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.fixture(scope="module")
async def trained(shared_client: httpx.AsyncClient) -> UUID:
    """400 steps at batch 256, then 200 at batch 512, a second each, on two devices at 3.6 USD an hour."""
    run_id = uuid4()
    run = make_run(example="image", num_devices=2, usd_per_device_hour=3.6)
    batch = [256.0] * 400 + [512.0] * 200
    measurements = make_measurements(steps=range(600), noise_scale=NOISE_SCALE, global_batch=256.0)
    await send(shared_client, run_id, run=run, measurements=measurements | {"global_batch": batch})
    return run_id


async def critical_batch_of(client: httpx.AsyncClient, optimizer: str, momentum: float | None) -> float:
    rows = make_measurements(steps=range(600), noise_scale=NOISE_SCALE, global_batch=256.0)
    run_id = uuid4()
    await send(
        client,
        run_id,
        run=make_run(planned_steps=2400),
        stream=make_stream(optimizer=optimizer),
        measurements=rows if momentum is None else with_path(rows, momentum=momentum),
    )
    now = (await recommendation(client, run_id))["critical_batch"]["value"]
    then = (await recommendation(client, run_id, to_step=599))["critical_batch"]["value"]
    assert now == pytest.approx(then)
    return float(now)


async def test_a_noise_scale_stands_for_a_larger_critical_batch_where_gradients_are_averaged(
    client: httpx.AsyncClient,
) -> None:
    plain = await critical_batch_of(client, "SGD", 0.0)
    momentum = await critical_batch_of(client, "SGD", 0.9)
    unknown = await critical_batch_of(client, "SGD", None)
    adam = await critical_batch_of(client, "AdamW", None)

    assert momentum == pytest.approx(adam)
    # less than all of it: a critical batch is also taken to lie near the batch in use
    assert momentum == pytest.approx(plain * math.exp(1.24), rel=0.2)
    assert unknown == pytest.approx(math.sqrt(plain * momentum), rel=0.05)


class TestAdvice:
    async def test_it_says_what_to_do_and_what_it_rests_on(
        self, shared_client: httpx.AsyncClient, trained: UUID
    ) -> None:
        found = await recommendation(shared_client, trained)

        assert (found["run_id"], found["step"], found["unit"], found["example"]) == (
            str(trained),
            599,
            "images",
            "image",
        )
        assert found["noise_scale"]["state"] == "resolved"
        assert found["noise_scale"]["value"] == pytest.approx(NOISE_SCALE, rel=0.3)
        assert found["current_batch_size"] == 512
        assert type(found["recommended_batch_size"]) is int
        assert found["critical_batch"]["low"] < found["noise_scale"]["value"] < found["critical_batch"]["high"]
        assert 0 < found["odds"]["probability"] <= 1
        assert {one["preference"] for one in found["otherwise"]} == {0.2, 0.8}
        assert found["interval"]["low"] < found["interval"]["value"] < found["interval"]["high"]
        assert found["learning_rate"]["current"] == pytest.approx(0.1)
        calibration = found["calibration"]
        assert (calibration["state"], calibration["measurements"]) == ("uncalibrated", 0)
        assert calibration["kappa_log10_sd"] == pytest.approx(0.87)
        assert calibration["kappa"]["value"] == 1
        assert calibration["text"] == next(w["text"] for w in found["warnings"] if w["code"] == "uncalibrated")
        assert found["preference"] == 0.5
        assert found["reason"]
        assert found["next_step"]

    async def test_it_agrees_with_the_row_of_the_run(self, shared_client: httpx.AsyncClient, trained: UUID) -> None:
        found = await recommendation(shared_client, trained)
        row = (await shared_client.get(f"/api/v1/runs/{trained}")).json()

        assert row["decision"]["decision"] == found["decision"]
        assert row["decision"]["batch_size"] == found["recommended_batch_size"]
        assert type(row["decision"]["batch_size"]) is int
        assert row["noise_scale"] == found["noise_scale"]
        assert row["example_efficiency"]["value"] == found["example_efficiency"]["now"]["value"]

    async def test_a_run_that_has_crashed_is_not_told_to_go_on(
        self, shared_app: FastAPI, shared_client: httpx.AsyncClient
    ) -> None:
        """It sends no finish: only the clock tells that it takes no more steps."""
        run_id = uuid4()
        await send(shared_client, run_id, measurements=make_measurements(steps=range(60), noise_scale=NOISE_SCALE))
        running = await recommendation(shared_client, run_id)
        async with shared_app.state.sessions.begin() as session:
            long_ago = datetime.now(UTC) - timedelta(hours=3)
            await session.execute(update(Run).where(Run.id == run_id).values(updated_at=long_ago))

        crashed = await recommendation(shared_client, run_id)

        assert "look again" in running["next_step"].lower()
        assert "look again" not in crashed["next_step"].lower()
        assert "next run" in crashed["next_step"] or "from a checkpoint" in crashed["next_step"]

    async def test_a_preference_for_few_steps_asks_for_a_larger_batch(
        self, shared_client: httpx.AsyncClient, trained: UUID
    ) -> None:
        few_examples = await recommendation(shared_client, trained, preference=0.2)
        few_steps = await recommendation(shared_client, trained, preference=0.8)

        assert few_steps["recommended_batch_size"] == pytest.approx(
            16 * few_examples["recommended_batch_size"], rel=0.5
        )

    async def test_a_price_of_a_step_is_taken_in_place_of_a_preference(
        self, shared_client: httpx.AsyncClient, trained: UUID
    ) -> None:
        found = await recommendation(shared_client, trained, examples_per_step=400)

        rate = found["exchange_rate"]
        assert rate == {
            "examples_per_step": 400.0,
            "source": "examples_per_step",
            "text": "a step saved is worth 400 examples",
        }
        assert found["preference"] is None
        # of least expected cost, which lies a little off where the price is not the critical batch itself
        assert found["interval"]["value"] == pytest.approx((400 * found["critical_batch"]["value"]) ** 0.5, rel=0.15)
        assert found["otherwise"] == []

    async def test_to_step_gives_the_advice_of_that_moment(
        self, shared_client: httpx.AsyncClient, trained: UUID
    ) -> None:
        found = await recommendation(shared_client, trained, to_step=299)

        assert found["step"] == 299
        assert found["current_batch_size"] == 256
        assert found["noise_scale"]["value"] == pytest.approx(NOISE_SCALE, rel=0.5)
        assert found["waste"]["examples"]["value"] < 300 * 256

    @pytest.mark.parametrize("num_steps", [40, 100, 250])
    async def test_a_young_run_is_advised_by_the_window_that_it_had(
        self, shared_client: httpx.AsyncClient, trained: UUID, num_steps: int
    ) -> None:
        """Before step 320 that is 16 updates, more than 5 % of the run."""
        young = uuid4()
        rows = make_measurements(steps=range(600), noise_scale=NOISE_SCALE, global_batch=256.0)
        await send(shared_client, young, measurements={name: column[:num_steps] for name, column in rows.items()})

        live = (await recommendation(shared_client, young))["noise_scale"]
        then = (await recommendation(shared_client, trained, to_step=num_steps - 1))["noise_scale"]

        assert then["num_updates"] == live["num_updates"] == 16
        assert then["value"] == pytest.approx(live["value"])

    async def test_a_moment_of_the_past_has_the_batch_of_most_of_its_last_steps(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        """Not the mean with the rest of each epoch, be it left out of the noise scale (40) or taken (200)."""
        run_id = uuid4()
        rows = make_measurements(steps=range(600), noise_scale=NOISE_SCALE, global_batch=256.0)
        rows["global_batch"] = [{6: 200.0, 7: 40.0}.get(step % 8, 256.0) for step in range(600)]
        left_out = {"flags": 16384, "sum_trace_cov": None, "sum_grad_sq_norm": None}
        for step in range(7, 600, 8):
            for name, value in left_out.items():
                rows[name][step] = value
        await send(shared_client, run_id, measurements=rows)

        found = await recommendation(shared_client, run_id, to_step=303)

        assert found["current_batch_size"] == 256

    async def test_to_step_beyond_the_end_is_now(self, shared_client: httpx.AsyncClient, trained: UUID) -> None:
        found = await recommendation(shared_client, trained, to_step=2**63 - 1)

        assert found["step"] == 599
        assert found["current_batch_size"] == 512
        assert type(found["recommended_batch_size"]) is int


class TestWaste:
    async def test_it_is_the_share_that_smaller_batches_would_have_saved(
        self, shared_client: httpx.AsyncClient, trained: UUID
    ) -> None:
        waste = (await recommendation(shared_client, trained))["waste"]

        first, second = 400 * 256, 200 * 512
        expected = first * 256 / (256 + NOISE_SCALE) + second * 512 / (512 + NOISE_SCALE)
        assert waste["fraction"]["value"] == pytest.approx(expected / (first + second), rel=0.05)
        assert waste["examples"]["value"] == pytest.approx(waste["covered"] * expected, rel=0.05)
        assert waste["covered"] > 0.9
        assert waste["fraction"]["low"] < waste["fraction"]["value"] < waste["fraction"]["high"]

    async def test_it_has_a_price_where_the_devices_have_one(
        self, shared_client: httpx.AsyncClient, trained: UUID
    ) -> None:
        waste = (await recommendation(shared_client, trained))["waste"]

        usd_spent = 3.6 * 2 * 600 / 3_600
        assert waste["usd"]["value"] == pytest.approx(usd_spent * waste["fraction"]["value"], rel=0.01)

    async def test_the_time_between_a_job_and_its_resumption_is_not_paid(self, client: httpx.AsyncClient) -> None:
        run_id, day = uuid4(), 86_400.0
        run = make_run(num_devices=2, usd_per_device_hour=0.5)  # of one device no part can be given back
        first = make_measurements(steps=range(300))
        late = make_measurements(steps=range(300, 600))
        late["wall_time"] = [moment + day for moment in late["wall_time"]]
        await send(client, run_id, run=run, measurements=first)
        await send(client, run_id, run=run, stream=make_stream(started_at=STARTED_AT + day), measurements=late)

        waste = (await recommendation(client, run_id))["waste"]

        assert waste["usd"]["value"] / waste["fraction"]["value"] == pytest.approx(600 / 3_600, rel=0.02)

    async def test_without_a_price_there_is_none(self, client: httpx.AsyncClient) -> None:
        run_id = uuid4()
        await send(client, run_id, measurements=make_measurements(steps=range(100)))

        assert (await recommendation(client, run_id))["waste"]["usd"] is None


async def test_page_figure_and_report_have_one_bound(shared_client: httpx.AsyncClient) -> None:
    run_id = uuid4()
    measured = make_measurements(steps=range(200), global_batch=32.0)
    # |G|² in the noise: about 0.1 with a spread of 3
    signal = [6 * (one - 1) + 0.1 for one in measured["sum_grad_sq_norm"]]
    measured |= {"sum_grad_sq_norm": signal, "sum_grad_sq_norm_sq": [one * one for one in signal]}
    await send(shared_client, run_id, run=make_run(example="image"), measurements=measured)

    row, series, advice = [
        (await shared_client.get(f"/api/v1/runs/{run_id}{path}")).json()
        for path in ("", "/noise-scale?points=320", "/recommendation")
    ]

    known = [row["noise_scale"], series["latest"], advice["noise_scale"]]
    assert {one["state"] for one in known} == {"unresolved"}
    assert len({one["low"] for one in known}) == 1
    assert known[0]["low"] is not None


class TestLimitsAndPredictions:
    """600 of 1,200 steps, a second each, on two devices at 3.6 USD an hour; noise scale about 100, batch 512."""

    async def test_the_rest_of_the_plan_is_said_in_hours_and_usd(
        self, shared_client: httpx.AsyncClient, trained: UUID
    ) -> None:
        found = await recommendation(shared_client, trained, batch_size=[64.0, 2048.0])

        batches = found["predictions"]["batches"]
        assert {64.0, 512.0, 2048.0} <= {one["batch_size"] for one in batches}
        now = next(one for one in batches if one["is_present"])
        assert now["steps"]["value"] == 600
        assert now["hours"]["value"] == pytest.approx(600 / 3_600, rel=0.01)
        assert now["usd"]["value"] == pytest.approx(600 / 3_600 * 2 * 3.6, rel=0.01)
        assert found["counterfactual"]["steps_taken"] == pytest.approx(
            600 * found["counterfactual"]["covered"], rel=0.15
        )
        assert found["parallelism"]["max_useful_devices"] >= 1

    async def test_a_deadline_in_hours_moves_the_recommended_batch_and_is_named(
        self, shared_client: httpx.AsyncClient, trained: UUID
    ) -> None:
        free = await recommendation(shared_client, trained)
        bound = await recommendation(shared_client, trained, max_hours=600 / 3_600)

        assert (bound["limited"]["binding"], bound["limited"]["binding_names"]) == (["seconds"], ["deadline"])
        assert free["limited"]["binding_names"] == []
        assert bound["headline"].endswith(", your deadline") or bound["decision"] not in ("increase", "decrease")
        assert bound["recommended_batch_size"] >= bound["limited"]["batch_size"] > free["recommended_batch_size"]

    async def test_an_hours_worth_becomes_a_price_of_steps(
        self, shared_client: httpx.AsyncClient, trained: UUID
    ) -> None:
        found = await recommendation(shared_client, trained, usd_per_hour_sooner=7.2)
        dearer = await recommendation(shared_client, trained, usd_per_hour_sooner=7.2, usd_per_device_hour=7.2)

        assert found["exchange_rate"]["examples_per_step"] == pytest.approx(2 * 256)
        assert dearer["exchange_rate"]["examples_per_step"] == pytest.approx(256)
        assert found["exchange_rate"]["source"] == "usd_per_hour_sooner"

    async def test_fixed_hardware_reads_the_step_times_of_both_batches(
        self, shared_client: httpx.AsyncClient, trained: UUID
    ) -> None:
        found = await recommendation(shared_client, trained, fixed_hardware=True)

        # a second at either batch: no line rises through them
        assert found["decision"] == "insufficient_evidence"
        assert "took no longer at the larger of the batches" in found["reason"]
        assert found["schedule_missing"] == found["reason"]

    async def test_limits_that_exclude_each_other_say_what_each_allows(
        self, shared_client: httpx.AsyncClient, trained: UUID
    ) -> None:
        found = await recommendation(shared_client, trained, max_hours=0.15, max_usd=0.8)

        assert found["headline"] == "No batch meets both limits"
        assert found["effect"].startswith(found["limited"]["possible"])
        assert found["recommended_batch_size"] is None

    @pytest.mark.parametrize(
        "query",
        [
            {"max_hours": 1e-9},
            {"max_usd": 1e-9},
            {"max_steps": 1e15, "max_examples": 1e18, "max_hours": 1e9, "max_usd": 1e15},
            {"examples_per_device": 2**40, "num_devices": 2**24},
            {"batch_size": [1e-300, 1e15], "usd_per_hour_sooner": 1e15},
            {"preference": 0.001, "max_hours": 0.2, "fixed_hardware": False},
            {"fixed_hardware": True, "max_usd": 1.0, "num_devices": 1},
        ],
    )
    async def test_absurd_and_contradictory_questions_get_an_answer(
        self, shared_client: httpx.AsyncClient, trained: UUID, query: dict[str, Any]
    ) -> None:
        found = await recommendation(shared_client, trained, **query)

        assert found["reason"]
        assert found["next_step"]

    async def test_the_critical_batch_is_said_by_another_definition_where_asked(
        self, shared_client: httpx.AsyncClient, trained: UUID
    ) -> None:
        query = {"definition": "example_overhead", "definition_share": 0.2}

        found = await recommendation(shared_client, trained, **query)

        other, plain = found["critical_batch_by_definition"], found["critical_batch"]
        assert other["value"] == pytest.approx(0.2 * plain["value"])
        assert other["high"] == pytest.approx(0.2 * plain["high"])
        query = {"definition": "overhead_from_batch", "definition_share": 0.2, "definition_batch": 256}
        zhang = (await recommendation(shared_client, trained, **query))["critical_batch_by_definition"]
        assert zhang["value"] == pytest.approx(0.2 * plain["value"] + 307.2)
        assert "2410.21676" in zhang["text"]
        assert (await recommendation(shared_client, trained))["critical_batch_by_definition"] is None

    async def test_a_run_with_no_plan_is_told_what_a_deadline_needs(self, client: httpx.AsyncClient) -> None:
        run_id = uuid4()
        run = make_run(planned_steps=None)
        await send(client, run_id, run=run, measurements=make_measurements(steps=range(200)))

        found = await recommendation(client, run_id, max_hours=3)

        assert found["decision"] == "insufficient_evidence"
        assert "planned_steps" in found["next_step"]


class TestNothingToSay:
    async def test_a_run_without_data_has_no_advice_and_says_so(self, client: httpx.AsyncClient, app: FastAPI) -> None:
        found = await recommendation(client, await store_run(app))

        assert found["decision"] == "insufficient_evidence"
        for name in (
            "step",
            "recommended_batch_size",
            "interval",
            "critical_batch",
            "predicted",
            "waste",
            "learning_rate",
            "limited",
            "predictions",
            "counterfactual",
            "parallelism",
        ):
            assert found[name] is None, name
        assert found["next_step"]

    async def test_one_small_batch_a_step_is_named_as_the_reason(self, client: httpx.AsyncClient) -> None:
        run_id = uuid4()
        measurements = without_estimates(make_measurements(steps=range(50)), range(50))
        await send(client, run_id, measurements=measurements)

        found = await recommendation(client, run_id)

        assert found["noise_scale"]["reason"] == "one_small_batch"
        assert "one small batch" in found["reason"]
        assert found["waste"] is None

    async def test_an_unknown_run_is_404(self, shared_client: httpx.AsyncClient) -> None:
        answer = await shared_client.get(f"/api/v1/runs/{uuid4()}/recommendation")

        assert_problem(answer, 404, "run-not-found")


class TestBadInput:
    @pytest.mark.parametrize(
        ("query", "field"),
        [
            ("preference=0", "preference"),
            ("preference=1", "preference"),
            ("preference=nan", "preference"),
            ("preference=half", "preference"),
            ("examples_per_step=0", "examples_per_step"),
            ("examples_per_step=-1", "examples_per_step"),
            ("examples_per_step=inf", "examples_per_step"),
            ("examples_per_step=1e300", "examples_per_step"),
            ("to_step=-1", "to_step"),
            ("to_step=1.5", "to_step"),
            ("to_step=9223372036854775808", "to_step"),
            ("prefer=0.5", "prefer"),
            ("preference=0.5&examples_per_step=10", "examples_per_step"),
            ("fixed_hardware=true&usd_per_hour_sooner=10", "fixed_hardware"),
            ("usd_per_hour_sooner=0", "usd_per_hour_sooner"),
            ("definition=median", "definition"),
            ("definition=overhead_from_batch&definition_batch=0", "definition_batch"),
            ("max_hours=0", "max_hours"),
            ("max_usd=-1", "max_usd"),
            ("batch_size=0", "batch_size[0]"),
            ("spot_price_share=0.3&interruptions_per_device_hour=10&restart_hours=1", "interruptions_per_device_hour"),
        ],
    )
    async def test_it_is_named(self, shared_client: httpx.AsyncClient, query: str, field: str) -> None:
        answer = await shared_client.get(f"/api/v1/runs/{uuid4()}/recommendation?{query}")

        assert_problem(answer, 422, "invalid-input", field=field)

    @pytest.mark.parametrize("value", [5e-324, 1e-300, 1e300, 1.7e308])
    async def test_absurd_but_finite_numbers_in_the_tables_make_no_500(
        self, shared_client: httpx.AsyncClient, shared_app: FastAPI, value: float
    ) -> None:
        run_id = await store_run(
            shared_app, project="absurd", **resolved(value, low=value / 2, high=value, batch=min(value, 1e300))
        )

        listed = await shared_client.get("/api/v1/runs", params={"project": "absurd"})
        found = await recommendation(shared_client, run_id, preference=0.999)

        assert listed.status_code == 200
        assert "Infinity" not in listed.text
        assert found["reason"]
