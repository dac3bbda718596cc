"""GET /api/v1/tradeoff: the planner's table, against hand numbers."""

from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from compared_tasks import planted_task, stored_run
from factories import make_batch, make_measurements, make_run
from problems import assert_problem
from sweep_curves import CRITICAL_BATCH, TARGET, exact_steps, sweep_of, turning_curves

PLANNED = {"critical_batch": 1000, "steps": 2000, "at_batch": 1000}
MACHINES = {"step_seconds": 2, "num_devices": 8, "usd_per_device_hour": 3}


async def tradeoff(client: httpx.AsyncClient, **query: Any) -> dict[str, Any]:
    answer = await client.get("/api/v1/tradeoff", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def row(found: dict[str, Any], batch: float) -> dict[str, Any]:
    return next(one for one in found["rows"] if one["batch_size"] == batch)


@pytest.fixture(scope="module")
async def halfway(shared_client: httpx.AsyncClient) -> UUID:
    """400 of 800 steps at batch 256, a second each, noise scale 100, 2 devices at 3.6 USD."""
    run_id = uuid4()
    batch = make_batch(
        run_id=run_id,
        run=make_run(planned_steps=800, num_devices=2, usd_per_device_hour=3.6),
        measurements=make_measurements(steps=range(400), noise_scale=100.0, global_batch=256.0),
    )
    answer = await shared_client.post(f"/api/v1/streams/{uuid4()}/batches", json=batch)
    assert answer.status_code == 200, answer.text
    return run_id


class TestTable:
    async def test_without_a_plan_rows_are_relative_to_the_least(self, shared_client: httpx.AsyncClient) -> None:
        found = await tradeoff(shared_client, critical_batch=1000, batch_size=[250, 1000, 4000])

        assert [one["steps_factor"]["value"] for one in found["rows"]] == pytest.approx([5, 2, 1.25])
        assert [one["examples_factor"]["value"] for one in found["rows"]] == pytest.approx([1.25, 2, 5])
        assert row(found, 250)["steps"] is None
        assert found["pareto"] == [250, 1000, 4000]
        assert "steps and at_batch" in found["policies_missing"]

    async def test_steps_hours_usd_and_energy_of_each_batch(self, shared_client: httpx.AsyncClient) -> None:
        found = await tradeoff(
            shared_client, **PLANNED, **MACHINES, batch_size=[500, 1000], kilowatts_per_device=0.7, target="loss 2.5"
        )

        half = row(found, 500)
        assert (found["min_steps"], found["min_examples"]) == pytest.approx((1000, 1e6))
        assert half["steps"]["value"] == pytest.approx(3000)
        assert half["examples"]["value"] == pytest.approx(1.5e6)
        assert half["num_devices"] == 4
        assert half["hours"]["value"] == pytest.approx(6000 / 3600)
        assert half["usd"]["value"] == pytest.approx(6000 / 3600 * 4 * 3)
        assert half["kilowatt_hours"]["value"] == pytest.approx(6000 / 3600 * 4 * 0.7)
        assert found["target"] == "loss 2.5"

    async def test_an_interval_of_the_critical_batch_is_carried_to_every_number(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        found = await tradeoff(
            shared_client,
            **PLANNED,
            critical_batch_low=500,
            critical_batch_high=2000,
            batch_size=[500, 1000],
            examples_per_step=1000,
        )

        half, present = row(found, 500), row(found, 1000)
        assert half["steps"]["low"] == pytest.approx(2000 * 2 / 1.5)
        assert half["steps"]["high"] == pytest.approx(2000 * 5 / 3)
        assert present["steps"]["low"] == present["steps"]["high"] == 2000
        assert found["best_batch"]["high"] == pytest.approx(1000 * 2**0.5)

    async def test_on_the_same_devices_the_slow_end_is_beaten_in_time_and_money(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        line = {"overhead_seconds": 1, "seconds_per_example": 0.001, "num_devices": 8, "usd_per_device_hour": 3}

        found = await tradeoff(shared_client, **PLANNED, **line, batch_size=[100, 1000, 10_000])

        # the fastest batch is √(α B_crit / β) = 1,000, and it is the cheapest too
        assert found["pareto"] == [1000]
        assert row(found, 10_000)["hours"]["value"] == pytest.approx(1100 * 11 / 3600)

    async def test_a_range_is_doublings_and_the_default_reaches_around_the_critical_batch(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        asked = await tradeoff(shared_client, critical_batch=1000, smallest=64, largest=600)
        default = await tradeoff(shared_client, critical_batch=1024)

        assert [one["batch_size"] for one in asked["rows"]] == [64, 128, 256, 512]
        assert [default["rows"][0]["batch_size"], default["rows"][-1]["batch_size"]] == [32, 32768]

    async def test_a_range_may_have_several_rows_for_each_doubling(self, shared_client: httpx.AsyncClient) -> None:
        found = await tradeoff(shared_client, critical_batch=1000, smallest=64, largest=256, rows_per_doubling=2)

        batches = [one["batch_size"] for one in found["rows"]]
        assert batches == pytest.approx([64, 64 * 2**0.5, 128, 128 * 2**0.5, 256])

    async def test_default_rows_are_powers_of_two_and_hold_the_batch_of_a_device_at_least(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        found = await tradeoff(shared_client, **PLANNED, step_seconds=2, num_devices=8)

        batches = [one["batch_size"] for one in found["rows"]]
        assert batches[0] == 125
        assert row(found, 125)["num_devices"] == 1

    async def test_the_batch_to_run_is_whole_made_of_whole_devices_and_has_a_row_of_its_own(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        asked = {"critical_batch": 1490, "steps": 4000, "at_batch": 512, "step_seconds": 2}

        even = await tradeoff(shared_client, **asked, num_devices=8, usd_per_device_hour=2, batch_size=[512])
        odd = await tradeoff(shared_client, **(asked | {"at_batch": 500}), num_devices=5, batch_size=[500])

        assert (even["recommended"]["batch_size"], even["recommended"]["num_devices"]) == (1536, 24)
        assert even["recommended"]["device_hours"]["value"] == pytest.approx(even["recommended"]["usd"]["value"] / 2)
        assert odd["recommended"]["batch_size"] == 1500
        assert [one["batch_size"] for one in even["rows"]] == [512]
        assert even["step"] == {
            "batch_size": 512,
            "seconds": 2,
            "num_devices": 8,
            "usd_per_device_hour": 2,
            "are_devices_added": True,
        }


class TestLimits:
    async def test_the_limit_that_binds_moves_the_best_batch_and_rows_say_what_they_break(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        found = await tradeoff(shared_client, **PLANNED, **MACHINES, batch_size=[1000, 3000], max_hours=1500 * 2 / 3600)

        assert found["binding"] == ["seconds"]
        assert found["limited_batch"] == pytest.approx(2000)
        assert row(found, 1000)["breaks"] == ["seconds"]
        assert row(found, 3000)["breaks"] == []

    async def test_limits_that_exclude_each_other_say_so(self, shared_client: httpx.AsyncClient) -> None:
        found = await tradeoff(shared_client, **PLANNED, batch_size=[1000], max_steps=1100, max_examples=1.1e6)

        assert found["limited_batch"] is None
        assert set(found["binding"]) == {"steps", "examples"}
        assert "exclude each other" in found["limit_text"]

    async def test_each_limit_says_the_batches_that_it_allows_and_whether_it_binds(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        limits = {"max_hours": 4, "max_usd": 1000, "max_devices": 12, "examples_per_device": 125}

        found = await tradeoff(shared_client, **PLANNED, **MACHINES, **limits, max_micro_batches=2, preference=0.9)

        told = {one["kind"]: one for one in found["limits"]}
        assert list(told) == ["seconds", "usd", "devices", "memory"]
        assert (told["seconds"]["low"], told["seconds"]["high"]) == (pytest.approx(1e6 / (7200 - 1000)), None)
        assert told["devices"]["high"] == 12 * 125
        assert told["memory"]["high"] == 12 * 125 * 2
        assert [kind for kind, one in told.items() if one["is_binding"]] == found["binding"] == ["devices"]
        assert found["recommended"]["batch_size"] == 1500
        assert "12 devices of 125 examples" in told["devices"]["text"]
        words = {kind: (one["name"], one["breaks"], one["role"]) for kind, one in told.items()}
        assert words["seconds"] == ("deadline", "misses the deadline", "deadline")
        assert words["memory"] == ("memory limit", "exceeds the memory", None)
        assert {kind: (one["quantity"], one["asked"]) for kind, one in told.items()} == {
            "seconds": ("hours", 4), "usd": ("usd", 1000), "devices": (None, 12), "memory": (None, None),
        }  # fmt: skip
        assert {one["quantity"] for one in told.values()} - {None} <= found["rows"][0].keys()

    async def test_what_is_out_of_reach_is_said_of_the_target_as_it_was_named(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        found = await tradeoff(
            shared_client, **PLANNED, batch_size=[1000], max_steps=900, target="the end of the plan B"
        )

        assert found["limit_text"] == (
            "900 steps are too few: the end of the plan B takes more than 1,000 steps at any batch size."
        )

    async def test_a_limit_that_no_batch_meets_has_no_ends(self, shared_client: httpx.AsyncClient) -> None:
        found = await tradeoff(shared_client, **PLANNED, max_steps=900)

        (limit,) = found["limits"]
        assert (limit["is_possible"], limit["low"], limit["high"]) == (False, None, None)
        assert found["recommended"] is None
        assert "the target takes more than" in limit["text"]

    async def test_the_batch_inside_the_limits_has_the_interval_that_b_crit_leaves_it(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        spread = {"critical_batch_low": 500, "critical_batch_high": 2000, "preference": 0.1}

        found = await tradeoff(shared_client, **PLANNED, **spread, max_steps=1500)
        late = await tradeoff(shared_client, **PLANNED, **spread, max_steps=1300)

        # S_min is 2,000 / (1 + B_crit / 1,000): 1,333, 1,000 and 667 as B_crit goes over its interval
        reach = found["limited_interval"]
        ends = sorted(
            s_min * crit / (1500 - s_min) for s_min, crit in ((4000 / 3, 500), (1000, 1000), (2000 / 3, 2000))
        )
        assert [reach["low"], reach["value"], reach["high"]] == pytest.approx([ends[0], 2000, ends[2]])
        assert late["limited_interval"]["high"] is None

    async def test_a_price_moves_the_best_batch(self, shared_client: httpx.AsyncClient) -> None:
        found = await tradeoff(shared_client, critical_batch=1000, examples_per_step=10, batch_size=[100, 1000])

        assert found["best_batch"]["value"] == pytest.approx(100)
        assert row(found, 100)["regret"] == pytest.approx(0)
        assert row(found, 1000)["regret"] > 0


class TestWorth:
    async def test_an_hour_sooner_is_worth_devices(self, shared_client: httpx.AsyncClient) -> None:
        found = await tradeoff(shared_client, **PLANNED, **MACHINES, usd_per_hour_sooner=24)

        # 24 USD are 8 device-hours, and a device puts 125 examples through a step
        assert found["examples_per_step"] == pytest.approx(8 * 125)
        assert "an hour sooner is worth 24 USD" in found["price_text"]

    async def test_on_the_same_devices_step_times_say_what_a_step_is_worth(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        line = {"overhead_seconds": 1, "seconds_per_example": 0.01}

        found = await tradeoff(shared_client, **PLANNED, **line, fixed_hardware=True)

        assert found["examples_per_step"] == pytest.approx(100)

    async def test_nothing_said_and_a_preference_for_neither_are_one_question(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        known = PLANNED | {"critical_batch_low": 500, "critical_batch_high": 2000}

        silent = await tradeoff(shared_client, **known)
        neither = await tradeoff(shared_client, **known, preference=0.5)

        assert silent == neither
        assert silent["price_text"] == "assumes that time and data matter equally"
        # the price moves with B_crit, so the best batch has its whole interval
        assert (silent["best_batch"]["low"], silent["best_batch"]["high"]) == pytest.approx((500, 2000))

    async def test_step_times_say_what_a_step_is_worth_where_nobody_does(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        line = {"overhead_seconds": 1, "seconds_per_example": 0.002}

        found = await tradeoff(shared_client, **PLANNED, **line)

        assert found["examples_per_step"] == pytest.approx(500)
        assert found["price_text"].startswith("assumes that the devices stay as they are")


class TestWhatIfs:
    async def test_twice_the_devices_half_the_budget_the_cheapest_and_the_fastest(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        found = await tradeoff(
            shared_client, **PLANNED, **MACHINES, max_hours=1, max_usd=60, max_devices=20, preference=0.5
        )

        told = {one["name"]: one["row"] for one in found["what_ifs"]}
        assert told["twice_the_devices"]["batch_size"] == 2 * found["recommended"]["batch_size"]
        assert told["twice_the_devices"]["num_devices"] == 2 * found["recommended"]["num_devices"]
        assert told["half_the_budget"]["usd"]["value"] <= 30
        # 1,800 steps need B ≥ 1,250; 60 USD are 9 million examples, and 20 devices hold 2,500
        assert told["cheapest"]["batch_size"] == 1250
        assert told["fastest"]["batch_size"] == 2500
        assert told["cheapest"]["usd"]["low"] <= told["cheapest"]["usd"]["value"] <= told["cheapest"]["usd"]["high"]

    async def test_where_a_device_holds_more_than_the_best_batch_no_plan_is_dearer_than_the_recommended_one(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        small = {"critical_batch": 14, "steps": 30, "at_batch": 256, "preference": 0.5}

        found = await tradeoff(
            shared_client, **small, step_seconds=0.01, num_devices=1, usd_per_device_hour=3, fixed_hardware=False
        )

        told = {one["name"]: one["row"] for one in found["what_ifs"]}
        assert found["recommended"]["batch_size"] < 256
        assert told["cheapest"]["examples"]["value"] <= found["recommended"]["examples"]["value"] * (1 + 1e-9)
        assert told["cheapest"]["batch_size"] == round(told["cheapest"]["batch_size"])

    async def test_on_one_device_that_has_timed_one_batch_other_batches_have_steps_and_no_time_or_cost(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        one = {"step_seconds": 2, "num_devices": 1, "usd_per_device_hour": 3}

        found = await tradeoff(shared_client, **PLANNED, **one, batch_size=[500, 1000])
        bought = await tradeoff(shared_client, **PLANNED, **one, batch_size=[500, 1000], max_devices=4)

        half, here = row(found, 500), row(found, 1000)
        assert (half["steps"]["value"], half["hours"], half["usd"], half["num_devices"]) == (3000, None, None, 1)
        assert (here["hours"]["value"], here["usd"]["value"]) == pytest.approx((2000 * 2 / 3600, 2000 * 2 / 1200))
        assert found["assumes"] == "Time at another batch is not known: this device has timed one batch."
        assert found["step"]["are_devices_added"] is False
        assert found["pareto"] == [500, 1000]
        assert {one["name"] for one in found["what_ifs"]} == {"cheapest", "fastest"}
        assert all(one["hours"] is None for one in found["policies"] if one["first_batch"] != one["last_batch"])
        # who has more devices says so, and then they come with the batch
        assert bought["step"]["are_devices_added"] is True

    async def test_what_exceeds_a_limit_says_which(self, shared_client: httpx.AsyncClient) -> None:
        found = await tradeoff(shared_client, **PLANNED, **MACHINES, max_hours=1)

        half = next(one for one in found["what_ifs"] if one["name"] == "half_the_budget")
        assert half["row"] is None
        assert "costs" in half["text"]

    async def test_limits_that_exclude_each_other_leave_the_cheapest_in_time_and_the_fastest_for_the_money(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        found = await tradeoff(shared_client, **PLANNED, **MACHINES, max_hours=0.7, max_usd=15)

        assert found["recommended"] is None
        cheapest, fastest = found["what_ifs"]
        assert cheapest["row"]["hours"]["value"] <= 0.7 < fastest["row"]["hours"]["value"]
        assert fastest["row"]["usd"]["value"] <= 15.001 < cheapest["row"]["usd"]["value"]
        assert cheapest["row"]["breaks"] == ["usd"]

    async def test_without_a_plan_there_are_none(self, shared_client: httpx.AsyncClient) -> None:
        assert (await tradeoff(shared_client, critical_batch=1000))["what_ifs"] == []


class TestPolicies:
    async def test_schedules_stand_side_by_side(self, shared_client: httpx.AsyncClient) -> None:
        found = await tradeoff(shared_client, **PLANNED, **MACHINES, growth=1.0)

        names = {one["name"] for one in found["policies"]}
        assert names == {
            "constant",
            "follow",
            "follow_in_stages",
            "doublings",
            "seesaw",
            "fixed_ramp",
            "late_switch",
            "noisescale",
        }
        constant = next(one for one in found["policies"] if one["name"] == "constant")
        assert constant["relative_cost"] == pytest.approx(1)
        assert constant["steps"]["value"] == pytest.approx(2000)
        assert found["policies"][0]["name"] == "follow"


class TestOfARun:
    async def test_the_run_gives_critical_batch_plan_step_time_and_price(
        self, shared_client: httpx.AsyncClient, halfway: UUID
    ) -> None:
        found = await tradeoff(shared_client, run_id=str(halfway), batch_size=[256])
        advice = (await shared_client.get(f"/api/v1/runs/{halfway}/recommendation")).json()

        assert found["critical_batch"]["value"] == pytest.approx(advice["critical_batch"]["value"])
        assert row(found, 256)["steps"]["value"] == 400
        assert row(found, 256)["usd"]["value"] == pytest.approx(400 / 3600 * 2 * 3.6, rel=0.01)
        assert found["policies"]
        assert found["present"]["batch_size"] == 256
        assert found["present"]["steps"]["value"] == 400
        assert "κ" in found["critical_batch_text"]

    @pytest.mark.parametrize("price", [{}, {"preference": 0.8}, {"examples_per_step": 40}])
    async def test_the_best_batch_is_that_of_the_runs_own_recommendation(
        self, shared_client: httpx.AsyncClient, halfway: UUID, price: dict[str, float]
    ) -> None:
        found = await tradeoff(shared_client, run_id=str(halfway), **price)
        advice = (await shared_client.get(f"/api/v1/runs/{halfway}/recommendation", params=price)).json()

        best = found["best_batch"]
        assert (best["value"], best["low"], best["high"]) == pytest.approx(
            [advice["interval"][end] for end in ("value", "low", "high")]
        )
        assert found["examples_per_step"] == pytest.approx(advice["exchange_rate"]["examples_per_step"])

    async def test_a_run_that_says_nothing_yet_is_refused_with_the_reason(self, client: httpx.AsyncClient) -> None:
        run_id = uuid4()
        created = await client.post("/api/v1/runs", json={"project": "p", "id": str(run_id)})
        assert created.status_code in (200, 201), created.text

        answer = await client.get("/api/v1/tradeoff", params={"run_id": created.json()["id"]})

        assert_problem(answer, 422, "invalid-input", field="run_id")
        assert "critical_batch instead" in answer.text

    async def test_an_unknown_run_is_404(self, shared_client: httpx.AsyncClient) -> None:
        answer = await shared_client.get("/api/v1/tradeoff", params={"run_id": str(uuid4())})

        assert_problem(answer, 404, "run-not-found")


class TestOfATask:
    async def test_a_sweep_gives_critical_batch_and_steps_to_its_target(self, shared_client: httpx.AsyncClient) -> None:
        project = f"planted {uuid4()}"
        await planted_task(shared_client, "one", project=project, noise_scale=128.0)

        found = await tradeoff(shared_client, project=project, task="one", batch_size=[CRITICAL_BATCH])

        assert found["critical_batch"]["low"] < CRITICAL_BATCH < found["critical_batch"]["high"]
        steps = row(found, CRITICAL_BATCH)["steps"]["value"]
        assert steps == pytest.approx(exact_steps(CRITICAL_BATCH), rel=0.1)
        at_the_plan = found["recommended"]["steps"]
        assert at_the_plan["low"] < 0.995 * at_the_plan["value"] < 0.99 * at_the_plan["high"]
        assert found["target"].startswith("the sweep's target")
        assert found["policies"]

    async def test_another_target_of_the_sweep_can_be_planned_for(self, shared_client: httpx.AsyncClient) -> None:
        project = f"targets {uuid4()}"
        await planted_task(shared_client, "one", project=project, noise_scale=None, targets=[0.5, 0.6])

        own = await tradeoff(shared_client, project=project, task="one", batch_size=[CRITICAL_BATCH])
        easier = await tradeoff(
            shared_client, project=project, task="one", batch_size=[CRITICAL_BATCH], sweep_target=0.6
        )

        assert own["targets"] == {"metric": None, "values": [0.5, 0.6]}
        assert easier["target"].endswith("0.6")
        steps = [row(one, CRITICAL_BATCH)["steps"] for one in (own, easier)]
        # the planted loss falls as steps^-0.3
        assert steps[1]["value"] / steps[0]["value"] == pytest.approx((0.6 / 0.5) ** (-1 / 0.3), rel=0.1)
        assert steps[1]["low"] < steps[1]["value"] < steps[1]["high"]

    async def test_a_sweep_that_turns_is_planned_by_its_larger_batch_sizes(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        project = f"turns {uuid4()}"
        sweep_id = await sweep_of(shared_client, *turning_curves(), project=project, task="one", optimizer="SGD")

        said = await shared_client.get(f"/api/v1/sweeps/{sweep_id}/critical-batch")
        found = await tradeoff(shared_client, project=project, task="one", sweep_target=TARGET, batch_size=[256, 1024])

        fit = said.json()["targets"][0]["fit"]
        assert fit["turn"]["batch_sizes"] == [16, 32]
        assert fit["turn"]["best_batch"]["low"] < fit["turn"]["best_batch"]["value"] < 128
        assert "left out of B_crit" in fit["turn"]["explanation"]
        assert fit["critical_batch"]["value"] == pytest.approx(CRITICAL_BATCH, rel=0.2)
        assert found["min_steps"] == pytest.approx(fit["min_steps"]["value"], rel=0.02)
        for size in (256, 1024):
            assert row(found, size)["steps"]["value"] == pytest.approx(exact_steps(size), rel=0.15)

    async def test_a_target_that_no_run_meets_is_refused_with_the_reason(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        project = f"hard {uuid4()}"
        await planted_task(shared_client, "one", project=project, noise_scale=None)
        query = {"project": project, "task": "one", "sweep_target": 1e-9}

        answer = await shared_client.get("/api/v1/tradeoff", params=query)

        assert_problem(answer, 422, "invalid-input", field="sweep_target")

    async def test_step_time_devices_and_price_are_those_of_an_earlier_run(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        project, described = f"timed {uuid4()}", {"num_devices": 2, "usd_per_device_hour": 3.6}
        await stored_run(shared_client, project=project, task="one", noise_scale=128.0, run=described)

        found = await tradeoff(shared_client, project=project, task="one", max_hours=1000, max_usd=1e6)
        stays = await tradeoff(shared_client, project=project, task="one", num_devices=4, usd_per_device_hour=1)

        assert (found["step"]["num_devices"], found["step"]["usd_per_device_hour"]) == (2, 3.6)
        assert (stays["step"]["num_devices"], stays["step"]["usd_per_device_hour"]) == (4, 1)
        assert (found["step"]["are_devices_added"], stays["step"]["are_devices_added"]) == (True, False)
        assert found["target"] == "the end of a run as long as the longest so far"
        assert found["present"]["steps"]["value"] == 240
        assert [one["kind"] for one in found["limits"]] == ["seconds", "usd"]
        assert "as long as the longest so far" not in found["limit_text"]

    async def test_an_unknown_task_is_404(self, shared_client: httpx.AsyncClient) -> None:
        answer = await shared_client.get("/api/v1/tradeoff", params={"project": f"{uuid4()}", "task": "one"})

        assert answer.status_code == 404


class TestBadInput:
    @pytest.mark.parametrize(
        ("query", "field"),
        [
            ("", "critical_batch"),
            ("critical_batch=0", "critical_batch"),
            ("task=one", "project"),
            ("task=one&project=p&critical_batch=3", "critical_batch"),
            ("critical_batch=100&critical_batch_low=200", "critical_batch"),
            ("critical_batch=100&steps=10", "steps"),
            ("critical_batch=100&smallest=10&largest=1", "smallest"),
            ("critical_batch=100&smallest=1e-8&largest=1e15", "largest"),
            ("critical_batch=100&overhead_seconds=1", "overhead_seconds"),
            ("critical_batch=100&preference=0.5&examples_per_step=3", "examples_per_step"),
            ("critical_batch=100&growth=-1", "growth"),
            ("critical_batch=100&preference=0.5&fixed_hardware=true", "fixed_hardware"),
            ("critical_batch=100&usd_per_hour_sooner=3", "usd_per_hour_sooner"),
            ("critical_batch=100&fixed_hardware=true", "fixed_hardware"),
            ("critical_batch=100&max_devices=0", "max_devices"),
            ("critical_batch=100&sweep_target=0.5", "sweep_target"),
            ("critical_batch=100&rows_per_doubling=8", "largest"),
            ("critical_batch=100&run_id=7d1f0c9e-2222-4333-8444-555566667777", "critical_batch"),
            (
                "critical_batch=100&steps=1&at_batch=1&step_seconds=1&num_devices=8&spot_price_share=0.3"
                "&interruptions_per_device_hour=1&restart_hours=1",
                "interruptions_per_device_hour",
            ),
        ],
    )
    async def test_it_is_named(self, shared_client: httpx.AsyncClient, query: str, field: str) -> None:
        answer = await shared_client.get(f"/api/v1/tradeoff?{query}")

        assert_problem(answer, 422, "invalid-input", field=field)

    @pytest.mark.parametrize("critical_batch", [1e-8, 1e15])
    @pytest.mark.parametrize("steps", [1e-8, 1e15])
    @pytest.mark.parametrize("preference", [0.001, 0.999])
    async def test_extremes_make_no_500(
        self, shared_client: httpx.AsyncClient, critical_batch: float, steps: float, preference: float
    ) -> None:
        query = {"critical_batch": critical_batch, "steps": steps, "at_batch": 1, "preference": preference}
        limits = {"max_hours": 1, "max_usd": 1, "max_steps": 1, "max_examples": 1, "max_devices": 1}

        answer = await shared_client.get("/api/v1/tradeoff", params=query | MACHINES | limits)

        assert answer.status_code in (200, 422), answer.text
        assert "Infinity" not in answer.text
