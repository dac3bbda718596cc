"""GET /api/v1/sweeps/{id}/critical-batch and /api/v1/published-sweeps."""

from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from factories import STARTED_AT, make_batch, make_measurements, make_run, make_stream
from noisescale_server.analysis.sweeps.turning.detection import FEWEST_BATCH_SIZES
from problems import assert_problem
from stored_runs import resolved, store_run
from sweep_curves import BATCH_SIZES, CRITICAL_BATCH, MIN_STEPS, RATES, TARGET, curve, exact_steps, sweep_of

SEVERAL = "/api/v1/sweeps/critical-batches"


async def critical_batch(shared_client: httpx.AsyncClient, sweep_id: str, **query: Any) -> dict[str, Any]:
    answer = await shared_client.get(f"/api/v1/sweeps/{sweep_id}/critical-batch", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


class TestFit:
    async def test_the_planted_curve_lies_inside_the_intervals(self, shared_client: httpx.AsyncClient) -> None:
        runs = [curve(size, lr=lr, seed=s, noise=0.05) for size in BATCH_SIZES for lr in RATES for s in range(5)]
        sweep_id = await sweep_of(shared_client, *runs)

        (found,) = (await critical_batch(shared_client, sweep_id))["targets"]

        planted = {
            "critical_batch": CRITICAL_BATCH,
            "min_steps": MIN_STEPS,
            "min_examples": MIN_STEPS * CRITICAL_BATCH,
        }
        for name, truth in planted.items():
            estimate = found["fit"][name]
            assert estimate["low"] < truth < estimate["high"]
            assert estimate["value"] == pytest.approx(truth, rel=0.15)
            assert estimate["high"] / estimate["low"] < 2
        assert found["refusal"] is None
        assert found["fit"]["lack_of_fit"]["findings"] == []
        assert len(found["fit"]["residuals"]) == len(BATCH_SIZES)

    async def test_each_batch_size_is_taken_at_its_best_learning_rate(self, shared_client: httpx.AsyncClient) -> None:
        sweep_id = await sweep_of(shared_client, *(curve(size, lr=lr) for size in BATCH_SIZES for lr in RATES))

        points = (await critical_batch(shared_client, sweep_id))["targets"][0]["points"]

        assert [(point["batch_size"], point["lr"], point["num_learning_rates"]) for point in points] == [
            (size, 0.1, 3) for size in BATCH_SIZES
        ]
        for point in points:
            steps = exact_steps(point["batch_size"])
            assert point["steps"] == pytest.approx(steps, rel=1e-6)
            assert point["low"] <= steps <= point["high"]
            assert point["examples"] == pytest.approx(steps * point["batch_size"], rel=1e-6)
            assert not point["is_at_grid_edge"]

    async def test_the_curve_goes_through_the_fit_and_the_regimes_go_from_perfect_to_maximal(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        runs = [curve(size, seed=s, noise=0.02) for size in (4, *BATCH_SIZES, 65536) for s in range(4)]
        sweep_id = await sweep_of(shared_client, *runs)

        (found,) = (await critical_batch(shared_client, sweep_id))["targets"]

        for point in found["curve"]:
            assert point["low"] < exact_steps(point["batch_size"]) < point["high"]
            assert point["low"] < point["steps"] < point["high"]
        regimes = [local["regime"] for local in found["regimes"]]
        assert (regimes[0], regimes[-1]) == ("perfect", "maximal")
        assert "diminishing" in regimes

    async def test_a_best_rate_at_the_edge_of_the_grid_speaks_against_the_fit(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        runs = [curve(size, lr=lr, seed=s, noise=0.02) for size in BATCH_SIZES for lr in (0.1, 0.2) for s in range(3)]
        sweep_id = await sweep_of(shared_client, *runs)

        (found,) = (await critical_batch(shared_client, sweep_id))["targets"]

        assert all(point["is_at_grid_edge"] for point in found["points"])
        assert found["fit"]["lack_of_fit"]["findings"] == ["grid_edge"]

    async def test_a_divergence_counts_as_a_tried_rate_and_no_more(self, shared_client: httpx.AsyncClient) -> None:
        runs = [curve(size, lr=lr) for size in BATCH_SIZES for lr in (0.05, 0.1)]
        diverged = [curve(size, lr=0.2, status="infeasible") for size in BATCH_SIZES]
        sweep_id = await sweep_of(shared_client, *runs, *diverged)

        points = (await critical_batch(shared_client, sweep_id))["targets"][0]["points"]

        assert [(point["lr"], point["is_at_grid_edge"]) for point in points] == [(0.1, False)] * len(BATCH_SIZES)

    async def test_a_score_that_rises_to_its_target_is_the_same_sweep(self, shared_client: httpx.AsyncClient) -> None:
        runs = [curve(size, seed=s, noise=0.05) for size in BATCH_SIZES for s in range(3)]
        risen = [{**run, "values": [1 / value for value in run["values"]]} for run in runs]
        falls = await sweep_of(shared_client, *runs)
        rises = await sweep_of(shared_client, *risen, goal="max", targets=[1 / TARGET])

        first = (await critical_batch(shared_client, falls))["targets"][0]["fit"]["critical_batch"]
        second = (await critical_batch(shared_client, rises))["targets"][0]["fit"]["critical_batch"]

        assert second["value"] == pytest.approx(first["value"], rel=0.05)

    async def test_other_targets_are_answered_in_the_order_of_the_request(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        sweep_id = await sweep_of(shared_client, *(curve(size) for size in BATCH_SIZES))

        found = await critical_batch(shared_client, sweep_id, target=[0.6, 0.5], level=0.8)

        assert [one["target"] for one in found["targets"]] == [0.6, 0.5]
        assert found["level"] == found["targets"][0]["fit"]["critical_batch"]["level"] == 0.8


class TestBootstrap:
    async def test_it_is_made_where_it_is_asked_for_and_agrees(self, shared_client: httpx.AsyncClient) -> None:
        runs = [curve(size, lr=lr, seed=s, noise=0.05) for size in BATCH_SIZES for lr in RATES for s in range(5)]
        sweep_id = await sweep_of(shared_client, *runs)

        (asked,) = (await critical_batch(shared_client, sweep_id, bootstrap=True))["targets"]
        (plain,) = (await critical_batch(shared_client, sweep_id))["targets"]

        again = asked.pop("bootstrap")
        assert plain.pop("bootstrap") is None
        assert asked == plain
        assert again["critical_batch"]["low"] < CRITICAL_BATCH < again["critical_batch"]["high"]
        assert again["without_luck"]["critical_batch"] == pytest.approx(CRITICAL_BATCH, rel=0.2)
        assert [one["batch_size"] for one in again["luck"]] == list(BATCH_SIZES)
        assert "reads low by" in again["explanation"]

    async def test_single_runs_say_why_there_is_none(self, shared_client: httpx.AsyncClient) -> None:
        sweep_id = await sweep_of(shared_client, *(curve(size) for size in BATCH_SIZES))

        (found,) = (await critical_batch(shared_client, sweep_id, bootstrap=True))["targets"]

        assert set(found["bootstrap"]) == {"explanation"}


class TestRefusal:
    async def test_two_batch_sizes_are_refused_with_the_way_out(self, shared_client: httpx.AsyncClient) -> None:
        sweep_id = await sweep_of(shared_client, curve(16), curve(64))

        (found,) = (await critical_batch(shared_client, sweep_id))["targets"]

        assert found["fit"] is None
        assert found["refusal"]["reason"] == "too_few_batch_sizes"
        assert "add batch sizes" in found["refusal"]["explanation"]
        assert (len(found["points"]), found["curve"]) == (2, [])

    async def test_batch_sizes_far_below_give_a_bound_and_no_value(self, shared_client: httpx.AsyncClient) -> None:
        runs = [curve(size, seed=s, noise=0.05) for size in (1, 2, 4) for s in range(3)]
        sweep_id = await sweep_of(shared_client, *runs)

        (found,) = (await critical_batch(shared_client, sweep_id))["targets"]

        assert found["refusal"]["reason"] in ("all_batch_sizes_below_critical", "undetermined")
        assert found["refusal"]["critical_batch"]["high"] is None

    async def test_a_target_that_no_run_reached_is_not_reached(self, shared_client: httpx.AsyncClient) -> None:
        sweep_id = await sweep_of(shared_client, *(curve(size) for size in BATCH_SIZES))

        (found,) = (await critical_batch(shared_client, sweep_id, target=0.01))["targets"]

        assert {point["outcome"] for point in found["points"]} == {"not_reached"}
        assert {point["steps"] for point in found["points"]} == {None}
        assert {point["high"] for point in found["points"]} == {None}
        assert found["refusal"]["reason"] == "too_few_batch_sizes"

    async def test_a_sweep_that_names_no_target_has_five_that_its_runs_reached(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        sweep_id = await sweep_of(shared_client, *(curve(size) for size in BATCH_SIZES), targets=[])

        found = (await critical_batch(shared_client, sweep_id))["targets"]

        targets = [one["target"] for one in found]
        assert len(targets) == 5
        assert targets == sorted(targets, reverse=True) == [round(one, 3) for one in targets]
        assert {point["outcome"] for one in found for point in one["points"]} == {"reached"}
        asked = (await critical_batch(shared_client, sweep_id, target=targets[-1]))["targets"]
        assert asked == found[-1:]

    async def test_a_sweep_whose_runs_did_not_improve_has_no_target(self, shared_client: httpx.AsyncClient) -> None:
        worse = curve(16) | {"steps": [1, 2], "values": [1.0, 2.0]}
        sweep_id = await sweep_of(shared_client, worse, targets=[])

        assert (await critical_batch(shared_client, sweep_id))["targets"] == []
        several = await shared_client.get(SEVERAL, params={"ids": sweep_id})
        assert several.json()["sweeps"] == []
        plan = await shared_client.get(f"/api/v1/sweeps/{sweep_id}/plan")
        assert_problem(plan, 422, "invalid-input", field="target")

    async def test_an_unknown_sweep_is_not_found(self, shared_client: httpx.AsyncClient) -> None:
        assert_problem(await shared_client.get(f"/api/v1/sweeps/{uuid4()}/critical-batch"), 404, "sweep-not-found")


class TestStoredRuns:
    async def test_the_logged_metric_of_a_stored_run_is_crossed(self, shared_client: httpx.AsyncClient) -> None:
        run_id = str(uuid4())
        steps = list(range(9, 100, 10))
        metrics = {
            "seq": [2 + k for k in range(len(steps))],
            "step": steps,
            "wall_time": [STARTED_AT + step for step in steps],
            "name": ["eval_loss"] * len(steps),
            "value": [(step + 1) ** -0.5 for step in steps],
        }
        batch = make_batch(run_id=run_id, run=make_run(), stream=make_stream(), metrics=metrics)
        stored = await shared_client.post(f"/api/v1/streams/{uuid4()}/batches", json=batch)
        assert stored.status_code == 200, stored.text
        run = {"run_id": run_id, "batch_size": 32, "lr": 0.1}
        sweep_id = await sweep_of(shared_client, run, metric="eval_loss", targets=[45**-0.5])

        (found,) = (await critical_batch(shared_client, sweep_id))["targets"]

        assert found["points"][0]["steps"] == pytest.approx(45.0)
        assert (found["points"][0]["low"], found["points"][0]["high"]) == (40.0, 50.0)

    async def test_without_a_metric_the_training_loss_is_crossed(self, shared_client: httpx.AsyncClient) -> None:
        run_id = str(uuid4())
        rows = make_measurements(steps=range(100))
        rows["sum_loss"] = [(step + 1) ** -0.5 for step in range(100)]
        batch = make_batch(run_id=run_id, run=make_run(), stream=make_stream(), measurements=rows)
        stored = await shared_client.post(f"/api/v1/streams/{uuid4()}/batches", json=batch)
        assert stored.status_code == 200, stored.text
        sweep_id = await sweep_of(shared_client, {"run_id": run_id}, targets=[45**-0.5])

        (found,) = (await critical_batch(shared_client, sweep_id))["targets"]

        assert found["points"][0]["batch_size"] == 256
        assert found["points"][0]["steps"] == pytest.approx(45.0, rel=0.03)

    async def test_a_stored_run_that_logged_nothing_is_left_out(
        self, shared_app: FastAPI, shared_client: httpx.AsyncClient
    ) -> None:
        run_id = str(await store_run(shared_app, **resolved()))
        sweep_id = await sweep_of(shared_client, {"run_id": run_id}, curve(16))

        (found,) = (await critical_batch(shared_client, sweep_id))["targets"]

        assert [point["batch_size"] for point in found["points"]] == [16]


async def log_metric(client: httpx.AsyncClient, run_id: str, stream_id: str, steps: list[int], first_seq: int) -> None:
    """Values that fall as a power of the step; record 1 describes the run."""
    metrics = {
        "seq": [first_seq + place for place in range(len(steps))],
        "step": steps,
        "wall_time": [STARTED_AT + step for step in steps],
        "name": ["eval_loss"] * len(steps),
        "value": [(step + 1) ** -0.5 for step in steps],
    }
    begins_with_run = first_seq == 2
    batch = make_batch(run_id=run_id, first_seq=1 if begins_with_run else first_seq, metrics=metrics)
    answer = await client.post(f"/api/v1/streams/{stream_id}/batches", json=batch)
    assert answer.status_code == 200, answer.text


class TestKept:
    async def test_an_unchanged_sweep_is_answered_without_reading_its_curves(
        self, shared_client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sweep_id = await sweep_of(shared_client, *(curve(size) for size in BATCH_SIZES))
        first = await critical_batch(shared_client, sweep_id)
        monkeypatch.setattr("noisescale_server.services.sweeps.curves.settings_of_sweep", None)

        assert await critical_batch(shared_client, sweep_id) == first

    async def test_runs_that_are_added_or_replaced_change_the_answer(self, shared_client: httpx.AsyncClient) -> None:
        runs = [{**curve(size), "id": str(uuid4())} for size in BATCH_SIZES]
        sweep_id = await sweep_of(shared_client, *runs)
        path = f"/api/v1/sweeps/{sweep_id}/runs"
        before = (await critical_batch(shared_client, sweep_id))["targets"][0]["points"]

        slower = {**runs[0], "values": [1.1 * value for value in runs[0]["values"]]}
        await shared_client.post(path, json={"runs": [slower]})
        replaced = (await critical_batch(shared_client, sweep_id))["targets"][0]["points"]
        await shared_client.post(path, json={"runs": [curve(8192)]})
        added = (await critical_batch(shared_client, sweep_id))["targets"][0]["points"]

        assert replaced[0] != before[0]
        assert replaced[1:] == before[1:]
        assert len(added) == len(before) + 1

    async def test_what_a_stored_run_logs_later_or_its_deletion_changes_the_answer(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        run_id, stream_id = str(uuid4()), str(uuid4())
        await log_metric(shared_client, run_id, stream_id, list(range(9, 30, 10)), first_seq=2)
        run = {"run_id": run_id, "batch_size": 32, "lr": 0.1}
        sweep_id = await sweep_of(shared_client, run, curve(64), metric="eval_loss", targets=[45**-0.5])

        first = (await critical_batch(shared_client, sweep_id))["targets"][0]["points"]
        await log_metric(shared_client, run_id, stream_id, list(range(39, 60, 10)), first_seq=5)
        second = (await critical_batch(shared_client, sweep_id))["targets"][0]["points"]
        assert (await shared_client.delete(f"/api/v1/runs/{run_id}")).status_code == 204
        third = (await critical_batch(shared_client, sweep_id))["targets"][0]["points"]

        assert (first[0]["outcome"], second[0]["outcome"]) == ("not_reached", "reached")
        assert second[0]["steps"] == pytest.approx(45.0)
        assert [point["batch_size"] for point in third] == [64]


class TestPublishedSweeps:
    async def test_every_workload_is_fitted_or_refused_with_its_source(self, shared_client: httpx.AsyncClient) -> None:
        answer = (await shared_client.get("/api/v1/published-sweeps")).json()

        assert answer["total"] == len(answer["sweeps"]) >= 20
        assert all((one["fit"] is None) != (one["refusal"] is None) for one in answer["sweeps"])
        assert sum(one["fit"] is not None for one in answer["sweeps"]) >= 10
        assert "mlcommons" in answer["source"]
        for one in answer["sweeps"]:
            assert one["has_room_for_turn"] == (len(one["points"]) >= FEWEST_BATCH_SIZES)

    async def test_they_are_filtered_by_workload_in_any_case(self, shared_client: httpx.AsyncClient) -> None:
        everything = (await shared_client.get("/api/v1/published-sweeps")).json()["sweeps"]
        name = everything[0]["workload"]

        found = (await shared_client.get("/api/v1/published-sweeps", params={"workload": name.upper()})).json()

        assert {one["workload"] for one in found["sweeps"]} == {name}
        assert found["total"] == sum(one["workload"] == name for one in everything)


class TestSeveralSweeps:
    async def test_each_is_at_its_hardest_target_as_it_is_alone_in_the_order_asked(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        runs = [curve(size, seed=s, noise=0.02) for size in BATCH_SIZES for s in range(3)]
        ids = [await sweep_of(shared_client, *runs, targets=[2 * TARGET, TARGET]) for _ in range(2)]
        rising = await sweep_of(shared_client, *runs, targets=[TARGET, 2 * TARGET], goal="max")
        asked = [ids[1], rising, str(uuid4()), ids[0]]

        answer = await shared_client.get(SEVERAL, params={"ids": ",".join(asked)})

        alone = [
            await critical_batch(shared_client, ids[1], target=TARGET),
            await critical_batch(shared_client, rising, target=2 * TARGET),
            await critical_batch(shared_client, ids[0], target=TARGET),
        ]
        assert answer.json()["sweeps"] == alone

    async def test_one_that_names_no_target_is_at_the_hardest_that_is_fitted(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        runs = [curve(size, seed=s, noise=0.02) for size in BATCH_SIZES for s in range(3)]
        sweep_id = await sweep_of(shared_client, *runs, targets=[])

        (found,) = (await shared_client.get(SEVERAL, params={"ids": sweep_id})).json()["sweeps"]

        ladder = (await critical_batch(shared_client, sweep_id))["targets"]
        assert found["targets"] == [one for one in ladder if one["fit"] is not None][-1:]

    async def test_runs_that_have_come_since_are_in_it(self, shared_client: httpx.AsyncClient) -> None:
        sweep_id = await sweep_of(shared_client, *(curve(size) for size in BATCH_SIZES[:2]))
        before = (await shared_client.get(SEVERAL, params={"ids": sweep_id})).json()["sweeps"]
        body = {"runs": [curve(size, seed=s) for size in BATCH_SIZES for s in range(3)]}
        await shared_client.post(f"/api/v1/sweeps/{sweep_id}/runs", json=body)

        after = (await shared_client.get(SEVERAL, params={"ids": sweep_id})).json()["sweeps"]

        assert len(before[0]["targets"][0]["points"]) == 2
        assert len(after[0]["targets"][0]["points"]) == len(BATCH_SIZES)

    async def test_more_than_twenty_are_refused(self, shared_client: httpx.AsyncClient) -> None:
        answer = await shared_client.get(SEVERAL, params={"ids": ",".join(str(uuid4()) for _ in range(21))})

        assert_problem(answer, 422, "invalid-input", field="ids")
