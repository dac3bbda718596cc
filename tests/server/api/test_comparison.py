"""GET /api/v1/comparison: noise scales against critical batches over tasks."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from compared_tasks import planted_task, stored_run
from noisescale_server.services.series import averages as task_averages
from noisescale_server.services.sweeps import measured as measured_sweep
from problems import assert_problem
from sweep_curves import BATCH_SIZES, CRITICAL_BATCH, curve, sweep_of


async def comparison(client: httpx.AsyncClient, **query: Any) -> dict[str, Any]:
    answer = await client.get("/api/v1/comparison", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture(scope="module")
async def planted(shared_client: httpx.AsyncClient) -> str:
    """A project of five tasks with κ = 2 and B_crit from 256 to 256 × 4⁴."""
    project = f"planted {uuid4()}"
    for power in range(5):
        scale = 4.0**power
        await planted_task(shared_client, f"task {power}", project=project, noise_scale=128 * scale, scale=scale)
    return project


class TestTasks:
    async def test_each_task_has_both_numbers_with_target_definition_and_unit(
        self, shared_client: httpx.AsyncClient, planted: str
    ) -> None:
        found = await comparison(shared_client, project=planted)

        assert [one["task"] for one in found["tasks"]] == [f"task {power}" for power in range(5)]
        for power, one in enumerate(found["tasks"]):
            critical, scale = one["critical_batch"], one["noise_scale"]["run_average"]
            assert critical["low"] < CRITICAL_BATCH * 4**power < critical["high"]
            assert scale["low"] < 128 * 4**power < scale["high"]
            assert one["kappa"]["low"] < 2 < one["kappa"]["high"]
            assert (one["target"], one["definition"], one["unit"]) == (0.5, "half_efficiency", "images")
            assert (one["source"], one["explanation"]) == ("sweep", None)

    async def test_of_a_whole_run_the_average_is_the_one_that_the_run_shows(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        project = f"whole {uuid4()}"
        await planted_task(shared_client, "one", project=project, noise_scale=None)
        run_id = await stored_run(shared_client, project=project, task="one", noise_scale=128.0)

        (task,) = (await comparison(shared_client, project=project, run=run_id))["tasks"]
        series = (await shared_client.get(f"/api/v1/runs/{run_id}/noise-scale")).json()

        for name in ("value", "low", "high"):
            assert task["noise_scale"]["run_average"][name] == pytest.approx(series["run_average"][name])

    async def test_the_average_ends_where_the_target_was_reached(self, shared_client: httpx.AsyncClient) -> None:
        """The noise scale after the target belongs to another target: here it is 50 times as large."""
        project = f"target {uuid4()}"
        sweep_id, _ = await planted_task(shared_client, "one", project=project, noise_scale=None)
        run_id = await stored_run(shared_client, project=project, task="one", later=5000.0, num_steps=400)
        run = {"run_id": run_id, "batch_size": 256, "lr": 0.1}
        await shared_client.post(f"/api/v1/sweeps/{sweep_id}/runs", json={"runs": [run]})

        (task,) = (await comparison(shared_client, project=project))["tasks"]

        assert (task["source"], task["run_ids"]) == ("sweep", [run_id])
        assert task["noise_scale"]["run_average"]["value"] == pytest.approx(100.0, rel=0.1)

    async def test_a_sweep_of_curves_alone_takes_the_runs_of_its_task(self, shared_client: httpx.AsyncClient) -> None:
        project = f"curves {uuid4()}"
        await planted_task(shared_client, "one", project=project, noise_scale=None)
        run_id = await stored_run(shared_client, project=project, task="one", noise_scale=300.0)

        (task,) = (await comparison(shared_client, project=project))["tasks"]

        assert (task["source"], task["run_ids"]) == ("task", [run_id])
        assert task["noise_scale"]["run_average"]["value"] == pytest.approx(300, rel=0.2)

    async def test_a_refused_fit_gives_bounds_and_its_reason_and_no_point(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        project = f"refused {uuid4()}"
        runs = [curve(size, seed=s, noise=0.05) for size in (1, 2, 4) for s in range(3)]
        await sweep_of(shared_client, *runs, project=project)

        found = await comparison(shared_client, project=project)

        (task,) = found["tasks"]
        assert task["critical_batch"] is None
        assert task["critical_batch_bounds"]["high"] is None
        assert task["explanation"]
        assert (task["kappa"], task["noise_scale"]) == (None, None)
        assert found["statistics"] is None
        assert "needs 5" in found["statistics_missing"]

    async def test_the_newest_sweep_that_was_fitted_counts(self, shared_client: httpx.AsyncClient) -> None:
        project = f"two {uuid4()}"
        fitted, _ = await planted_task(shared_client, "planted", project=project, noise_scale=None, optimizer=None)
        await sweep_of(shared_client, curve(16), project=project)

        (task,) = (await comparison(shared_client, project=project))["tasks"]

        assert task["sweep_id"] == fitted

    async def test_optimizers_of_a_task_are_points_of_their_own(self, shared_client: httpx.AsyncClient) -> None:
        project = f"optimizers {uuid4()}"
        for optimizer in ("SGD", "Adam"):
            await planted_task(shared_client, "one", project=project, noise_scale=None, optimizer=optimizer)

        found = await comparison(shared_client, project=project)

        assert [one["optimizer"] for one in found["tasks"]] == ["Adam", "SGD"]

    async def test_runs_that_were_asked_for_give_the_noise_scale_of_their_task(
        self, shared_client: httpx.AsyncClient, planted: str
    ) -> None:
        run_id = await stored_run(shared_client, project=planted, task="task 2", noise_scale=900.0)

        (task,) = (await comparison(shared_client, project=planted, run=run_id))["tasks"]

        assert (task["task"], task["source"], task["run_ids"]) == ("task 2", "given", [run_id])
        assert task["noise_scale"]["run_average"]["value"] == pytest.approx(900, rel=0.2)

    async def test_tasks_are_chosen_by_name(self, shared_client: httpx.AsyncClient, planted: str) -> None:
        found = await comparison(shared_client, project=planted, task=["task 1", "task 3"])

        assert [one["task"] for one in found["tasks"]] == ["task 1", "task 3"]

    async def test_without_a_sweep_there_is_nothing_of_ones_own(self, shared_client: httpx.AsyncClient) -> None:
        found = await comparison(shared_client, project=f"nobody {uuid4()}")

        assert found["tasks"] == []
        assert found["statistics"] is None
        assert len(found["published"]["tasks"]) == 10


class TestTogether:
    async def test_five_tasks_have_statistics_with_intervals(
        self, shared_client: httpx.AsyncClient, planted: str
    ) -> None:
        found = (await comparison(shared_client, project=planted))["statistics"]

        assert found["num_tasks"] == 5
        assert found["r_squared"]["value"] > 0.99
        assert found["slope"]["low"] < 1.02
        assert found["typical_kappa"]["value"] == pytest.approx(2.0, rel=0.2)
        assert found["within_factor_3"]["value"] == 1.0
        assert found["within_factor_3"]["low"] < 0.6

    async def test_tasks_are_ordered_by_the_average_that_was_asked_for(
        self, shared_client: httpx.AsyncClient, planted: str
    ) -> None:
        found = await comparison(shared_client, project=planted, average="ideal_step_average")

        (order,) = found["orders"]
        assert (found["average"], order["quantity"]) == ("ideal_step_average", "ideal_step_average")
        assert [rung["task"] for rung in order["rungs"]] == [f"task {power}" for power in range(5)]
        assert order["holds"] is True

    async def test_a_task_of_too_few_steps_is_left_out_of_the_statistics_and_named(
        self, shared_client: httpx.AsyncClient, planted: str
    ) -> None:
        """S_min = 3: below about 5 steps the theory does not hold."""
        steps = list(range(1, 70))
        runs = []
        for size in BATCH_SIZES:
            values = [0.5 * (step / (3 * (1 + CRITICAL_BATCH / size))) ** -0.3 for step in steps]
            runs += [{"batch_size": size, "lr": 0.1, "seed": seed, "steps": steps, "values": values} for seed in (0, 1)]
        await sweep_of(shared_client, *runs, project=planted, task="too short")
        await stored_run(shared_client, project=planted, task="too short", noise_scale=128.0)

        found = await comparison(shared_client, project=planted)
        await shared_client.delete(f"/api/v1/sweeps/{found['tasks'][-1]['sweep_id']}")

        short = found["tasks"][-1]
        assert (short["task"], short["critical_batch"] is not None) == ("too short", True)
        assert "S_min is below 5 steps" in short["left_out"]
        assert [one["left_out"] for one in found["tasks"][:-1]] == [None] * 5
        assert found["statistics"]["num_tasks"] == 5

    async def test_published_tasks_and_sweeps_stand_beside(self, shared_client: httpx.AsyncClient) -> None:
        found = await comparison(shared_client, project=f"nobody {uuid4()}")

        published = found["published"]
        assert published["article_r_squared"] == 0.8
        values = [one["statistics"]["r_squared"]["value"] for one in published["statistics"]]
        assert values == pytest.approx([0.765, 0.755, 0.842], abs=5e-4)
        assert len(found["published_sweeps"]) >= 10
        assert all(one["critical_batch"]["low"] for one in found["published_sweeps"])


class TestMemory:
    async def test_a_second_look_computes_nothing_and_a_new_run_does(
        self, shared_client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project = f"memory {uuid4()}"
        sweep_id, _ = await planted_task(shared_client, "one", project=project, noise_scale=128.0)
        measured, averaged = [], []
        measure, of_run = measured_sweep.measure, task_averages.of_run

        async def count_sweeps(session, wanted):
            measured.append(wanted)
            return await measure(session, wanted)

        async def count_runs(session, run, to_step):
            averaged.append(run.run_id)
            return await of_run(session, run, to_step)

        monkeypatch.setattr(measured_sweep, "measure", count_sweeps)
        monkeypatch.setattr(task_averages, "of_run", count_runs)

        first = await comparison(shared_client, project=project)
        again = await comparison(shared_client, project=project)
        looks = (len(measured), len(averaged))
        changed = {**curve(16384, seed=1), "id": str(uuid4())}
        await shared_client.post(f"/api/v1/sweeps/{sweep_id}/runs", json={"runs": [changed]})
        await comparison(shared_client, project=project)
        replaced = {**changed, "values": [2 * value for value in changed["values"]]}
        await shared_client.post(f"/api/v1/sweeps/{sweep_id}/runs", json={"runs": [replaced]})
        await comparison(shared_client, project=project)

        assert again == first
        assert looks == (1, 1)
        assert len(measured) == 3


class TestBadInput:
    async def test_an_unknown_average_is_refused(self, shared_client: httpx.AsyncClient) -> None:
        answer = await shared_client.get("/api/v1/comparison", params={"average": "mean"})

        assert_problem(answer, 422, "invalid-input", field="average")

    async def test_a_run_that_nobody_knows_compares_nothing(self, shared_client: httpx.AsyncClient) -> None:
        assert (await comparison(shared_client, run=str(uuid4())))["tasks"] == []
