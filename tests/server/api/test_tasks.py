"""/api/v1/projects/{project}/tasks and the recommendation before a run's first step."""

from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx
import pytest

from compared_tasks import planted_task, rows_of, stored_run
from factories import make_batch, make_measurements, make_run, make_stream
from noisescale.ask.asking import recommendation_from
from noisescale_core.advice.limited import round_batch
from problems import assert_problem
from sweep_curves import BATCH_SIZES, CRITICAL_BATCH, TARGET, curve, exact_steps, sweep_of

NOISE_SCALE = 128.0


async def tasks_of(client: httpx.AsyncClient, project: str) -> list[dict[str, Any]]:
    answer = await client.get(f"/api/v1/projects/{project}/tasks")
    assert answer.status_code == 200, answer.text
    return answer.json()["tasks"]


async def advice(client: httpx.AsyncClient, project: str, task: str = "one", **query: Any) -> dict[str, Any]:
    answer = await client.get(f"/api/v1/projects/{project}/tasks/{task}/recommendation", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture(scope="module")
async def planted(shared_client: httpx.AsyncClient) -> str:
    """A project whose task `one` has a sweep with B_crit 256 and a stored run with noise scale 128."""
    project = f"planted {uuid4()}"
    await planted_task(shared_client, "one", project=project, noise_scale=NOISE_SCALE)
    return project


class TestList:
    async def test_each_task_says_what_its_runs_and_sweeps_know(
        self, shared_client: httpx.AsyncClient, planted: str
    ) -> None:
        (one,) = await tasks_of(shared_client, planted)

        assert (one["name"], one["num_runs"], one["num_sweeps"], one["num_branches"]) == ("one", 1, 1, 0)
        (sweep,) = one["sweeps"]
        assert sweep["critical_batch"]["low"] < CRITICAL_BATCH < sweep["critical_batch"]["high"]
        assert sweep["target"] == TARGET
        (kappa,) = one["kappas"]
        assert kappa["optimizer"] == "sgd"
        assert kappa["kappa"]["low"] < 2 < kappa["kappa"]["high"]
        average = one["latest_run_average"]["noise_scale"]
        assert average["low"] < NOISE_SCALE < average["high"]

    async def test_a_project_that_nobody_knows_is_not_found(self, shared_client: httpx.AsyncClient) -> None:
        answer = await shared_client.get(f"/api/v1/projects/none {uuid4()}/tasks")

        assert_problem(answer, 404, "project-not-found")


class TestRecommendation:
    async def test_a_sweep_and_a_run_say_where_to_start(self, shared_client: httpx.AsyncClient, planted: str) -> None:
        found = await advice(shared_client, planted, examples_per_step=256)

        assert found["decision"] == "start"
        assert found["headline"] == f"Start with {found['recommended_batch_size']:,}"
        assert found["critical_batch"]["low"] < CRITICAL_BATCH < found["critical_batch"]["high"]
        assert found["critical_batch"]["value"] == pytest.approx(CRITICAL_BATCH, rel=0.15)
        assert found["interval"]["low"] < CRITICAL_BATCH < found["interval"]["high"]
        assert found["recommended_batch_size"] == 256
        assert found["calibration"]["state"] == "calibrated"
        assert found["noise_scale"]["low"] < NOISE_SCALE < found["noise_scale"]["high"]
        assert (found["noise_scale"]["num_updates"], found["noise_scale"]["num_blocks"]) == (None, None)
        assert found["reason"].startswith("From 1 earlier sweep (critical batch 2")
        for of_a_begun_run in ("run_id", "step", "current_batch_size", "statistical_interval"):
            assert found[of_a_begun_run] is None

    async def test_steps_to_the_target_are_those_of_the_sweeps_curve(
        self, shared_client: httpx.AsyncClient, planted: str
    ) -> None:
        found = await advice(shared_client, planted, examples_per_step=256, batch_size=[64, 1024, 10**9])

        assert [one["batch_size"] for one in found["to_target"]] == [256, 64, 1024]
        for one in found["to_target"]:
            assert one["steps"]["low"] < exact_steps(one["batch_size"]) < one["steps"]["high"]
            assert one["steps"]["value"] == pytest.approx(exact_steps(one["batch_size"]), rel=0.1)
            assert one["examples"]["value"] == pytest.approx(one["batch_size"] * one["steps"]["value"])
        assert found["effect"].startswith("The sweep predicts 2")

    async def test_the_learning_rate_follows_from_the_nearest_tuned_run_by_the_optimizers_rule(
        self, shared_client: httpx.AsyncClient, planted: str
    ) -> None:
        found = await advice(shared_client, planted, preference=0.8)

        assert found["changed_from"] == {
            "batch_size": 256,
            "lr": 0.1,
            "steps": pytest.approx(exact_steps(256), rel=0.1),
            "is_tuned": True,
        }
        rate, batch, critical = found["learning_rate"], found["recommended_batch_size"], found["critical_batch"]
        gain = (1 + critical["value"] / 256) / (1 + critical["value"] / batch)
        assert batch == pytest.approx(4 * critical["value"], rel=0.2)
        assert rate["recommended"] == pytest.approx(0.1 * gain, rel=1e-3)
        assert rate["low"] <= rate["recommended"] <= rate["high"]

    async def test_curves_alone_are_enough_and_name_no_kappa(self, shared_client: httpx.AsyncClient) -> None:
        project = f"curves {uuid4()}"
        runs = [curve(size, seed=seed, noise=0.03) for size in BATCH_SIZES for seed in range(3)]
        await sweep_of(shared_client, *runs, project=project, task="one", optimizer="SGD")

        found = await advice(shared_client, project)

        assert found["decision"] == "start"
        assert found["critical_batch"]["value"] == pytest.approx(CRITICAL_BATCH, rel=0.15)
        assert found["calibration"]["state"] == "uncalibrated"
        assert (found["noise_scale"]["value"], found["runs"]) == (None, [])
        assert "No run of it is stored" in found["sweeps"][0]["missing"]

    async def test_steps_that_a_run_has_logged_since_are_in_the_next_advice(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        """What is known of a task's runs is kept until one of them logs more."""
        project, run_id, stream_id = f"growing {uuid4()}", str(uuid4()), uuid4()
        run = make_run(project=project, task="one")
        first = make_batch(run_id=run_id, run=run, stream=make_stream(), measurements=rows_of(noise_scale=100.0))
        rows = make_measurements(first_seq=242, steps=range(240, 960), noise_scale=5000.0)
        more = make_batch(run_id=run_id, first_seq=242, measurements=rows)

        found = []
        for body in (first, None, more):
            if body is not None:
                answer = await shared_client.post(f"/api/v1/streams/{stream_id}/batches", json=body)
                assert answer.status_code == 200, answer.text
            found.append((await advice(shared_client, project))["noise_scale"]["value"])

        assert found[0] == found[1]
        assert found[2] > 3 * found[0]

    async def test_runs_alone_give_a_wide_interval_and_say_what_would_narrow_it(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        project = f"runs {uuid4()}"
        run_ids = [
            await stored_run(shared_client, project=project, task="one", noise_scale=NOISE_SCALE, seed=seed)
            for seed in range(2)
        ]

        found = await advice(shared_client, project)

        assert found["decision"] == "start"
        assert found["headline"].endswith("; not calibrated here")
        assert found["critical_batch"]["value"] == pytest.approx(NOISE_SCALE, rel=0.15)
        assert found["critical_batch"]["high"] > 1000 * found["critical_batch"]["low"]
        assert {one["run_id"] for one in found["runs"]} == set(run_ids)
        assert not found["changed_from"]["is_tuned"]
        assert "Sweep 5 batches to one loss, a run each: at most " in found["next_step"]
        # one device that has timed one batch: nobody knows how long the others take
        assert " steps; " in found["next_step"]
        assert "uncalibrated" in [one["code"] for one in found["warnings"]]

    async def test_a_run_whose_batch_grew_is_a_plan_of_its_examples_at_the_batch_of_its_largest_rate(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        """200 steps of 64 and 200 of 256 are no 400 steps of 256: that would be 1.6 times the examples."""
        project = f"grown {uuid4()}"
        rows = rows_of(num_steps=400, noise_scale=NOISE_SCALE)
        rows |= {"global_batch": [64.0] * 200 + [256.0] * 200, "lr": [0.1] * 200 + [0.05] * 200}
        batch = make_batch(
            run_id=str(uuid4()), run=make_run(project=project, task="one"), stream=make_stream(), measurements=rows
        )
        (await shared_client.post(f"/api/v1/streams/{uuid4()}/batches", json=batch)).raise_for_status()

        found = (await advice(shared_client, project))["changed_from"]

        assert (found["batch_size"], found["lr"], found["is_tuned"]) == (64.0, 0.1, False)
        assert found["steps"] == pytest.approx((200 * 64 + 200 * 256) / 64, rel=0.01)

    async def test_what_a_family_knows_helps_a_task_that_was_never_swept(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        project, family = f"family {uuid4()}", {"family": "vision"}
        await stored_run(shared_client, project=project, task="one", run=family)
        await planted_task(shared_client, "one", project=project, noise_scale=NOISE_SCALE)
        await stored_run(shared_client, project=project, task="two", run=family, noise_scale=NOISE_SCALE)
        await stored_run(shared_client, project=project, task="three", run={"family": "text"}, noise_scale=NOISE_SCALE)

        sister, stranger = [await advice(shared_client, project, task) for task in ("two", "three")]

        def width(found: dict[str, Any]) -> float:
            return found["critical_batch"]["high"] / found["critical_batch"]["low"]

        assert width(sister) < width(stranger) / 5
        assert "of other tasks of this family" in sister["calibration"]["text"]

    async def test_a_noise_scale_that_grew_gives_a_schedule_from_the_first_step(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        project = f"growth {uuid4()}"
        await stored_run(shared_client, project=project, task="one", noise_scale=100.0, later=5000.0, num_steps=400)

        found = await advice(shared_client, project, examples_per_step=1000)

        stages = found["schedule"]["stages"]
        assert (stages[0]["step"], stages[0]["examples"]) == (0, 0)
        assert len(stages) >= 2
        sizes = [stage["batch_size"] for stage in stages]
        assert sizes == sorted(sizes)
        assert sizes[-1] > 2 * sizes[0]
        assert sizes == [round_batch(size) for size in sizes]
        assert "noise scale of the longest earlier run goes from " in found["schedule"]["why"]
        assert "e+" not in found["schedule"]["why"]
        flags = await shared_client.get(
            f"/api/v1/projects/{project}/tasks/one/recommendation", params={"format": "nanogpt"}
        )
        assert flags.status_code == 200
        assert flags.headers["content-type"].startswith("text/plain")

    async def test_a_run_that_reads_otherwise_than_the_rest_does_not_contradict_the_batch_by_its_schedule(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        project = f"unlike {uuid4()}"
        await planted_task(shared_client, "one", project=project, noise_scale=NOISE_SCALE)
        await stored_run(shared_client, project=project, task="one", noise_scale=10 * NOISE_SCALE, num_steps=400)

        found = await advice(shared_client, project, examples_per_step=256)

        stages = [stage["batch_size"] for stage in found["schedule"]["stages"]]
        assert all(
            found["recommended_batch_size"] / 1.4 < size < found["recommended_batch_size"] * 1.4 for size in stages
        )

    async def test_a_run_at_a_rate_that_a_sweep_found_worse_does_not_count(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        project, run_id, described = f"untuned {uuid4()}", str(uuid4()), make_run(task="one")
        sweep_id, _ = await planted_task(shared_client, "one", project=project, noise_scale=NOISE_SCALE)
        rows = rows_of(noise_scale=20 * NOISE_SCALE, num_steps=400)
        rows["sum_loss"] = [2 * value for value in rows["sum_loss"]]
        described["project"] = project
        batch = make_batch(run_id=run_id, run=described, stream=make_stream(), measurements=rows)
        assert (await shared_client.post(f"/api/v1/streams/{uuid4()}/batches", json=batch)).status_code == 200
        before = await advice(shared_client, project)

        given = {"run_id": run_id, "batch_size": 256, "lr": 0.8, "seed": 0}
        await shared_client.post(f"/api/v1/sweeps/{sweep_id}/runs", json={"runs": [given]})

        after = await advice(shared_client, project)
        assert before["noise_scale"]["value"] > 2 * NOISE_SCALE
        assert after["noise_scale"]["value"] == pytest.approx(NOISE_SCALE, rel=0.15)
        assert "1 earlier run (noise scale" in after["reason"]

    async def test_a_decayed_learning_rate_does_not_count(self, shared_client: httpx.AsyncClient) -> None:
        """Its noise scale is 50 times as large for no other reason than the decay."""
        project, rows = f"decay {uuid4()}", rows_of(noise_scale=100.0, later=5000.0, num_steps=400)
        rows["lr"][200:] = [0.001] * 200
        described = make_run(project=project, task="one")
        batch = make_batch(run_id=str(uuid4()), run=described, stream=make_stream(), measurements=rows)
        assert (await shared_client.post(f"/api/v1/streams/{uuid4()}/batches", json=batch)).status_code == 200

        found = await advice(shared_client, project)

        assert found["noise_scale"]["value"] == pytest.approx(100.0, rel=0.1)

    async def test_limits_hold_before_the_first_step_too(self, shared_client: httpx.AsyncClient, planted: str) -> None:
        small = await advice(shared_client, planted, examples_per_device=8, num_devices=4, max_micro_batches=2)
        never = await advice(shared_client, planted, max_steps=50)

        assert small["recommended_batch_size"] == 64
        assert small["limited"]["binding"] == ["memory"]
        assert (never["decision"], never["recommended_batch_size"]) == ("insufficient_evidence", None)
        assert "too few" in never["limited"]["text"]

    async def test_without_evidence_it_says_what_is_missing_and_what_that_takes(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        project = f"nothing {uuid4()}"
        await sweep_of(shared_client, curve(16), project=project, task="one", optimizer="SGD")

        found = await advice(shared_client, project, optimizer="SGD")

        assert (found["decision"], found["recommended_batch_size"]) == ("insufficient_evidence", None)
        assert found["reason"].startswith("No run of this task with SGD has a resolved noise scale")
        assert "watch()" in found["next_step"]
        assert found["interval"] is found["critical_batch"] is found["schedule"] is None

    async def test_another_optimizer_is_another_question(self, shared_client: httpx.AsyncClient, planted: str) -> None:
        found = await advice(shared_client, planted, optimizer="AdamW")

        assert found["decision"] == "insufficient_evidence"
        assert "with AdamW" in found["reason"]

    async def test_the_unit_that_people_count_in_changes_no_batch(self, shared_client: httpx.AsyncClient) -> None:
        found = []
        for units in ({}, {"unit": "tokens", "units_per_example": 1024.0}):
            project = f"unit {uuid4()}"
            await stored_run(shared_client, project=project, task="one", run=units, noise_scale=NOISE_SCALE)
            found.append(await advice(shared_client, project, examples_per_step=512))

        assert found[1]["unit"] == "tokens"
        assert found[0]["recommended_batch_size"] == found[1]["recommended_batch_size"]
        assert found[0]["interval"] == found[1]["interval"]


class TestNames:
    async def test_names_may_hold_slashes_and_blanks(self, shared_client: httpx.AsyncClient) -> None:
        project, task = f"team a/{uuid4()}", "vision/digits 10"
        await stored_run(shared_client, project=project, task=task, noise_scale=NOISE_SCALE)
        address = f"/api/v1/projects/{quote(project, safe='')}/tasks"

        listed = (await shared_client.get(address)).json()["tasks"]
        found = (await shared_client.get(f"{address}/{quote(task, safe='')}/recommendation")).json()

        assert [one["name"] for one in listed] == [task]
        assert (found["project"], found["task"]) == (project, task)

    async def test_the_sdk_reads_the_answer(self, shared_client: httpx.AsyncClient, planted: str) -> None:
        answer = await advice(shared_client, planted, examples_per_step=256)

        found = recommendation_from(answer)

        assert (found.decision, found.recommended_batch_size) == ("start", 256)
        assert found.calibration is not None
        assert found.calibration.measurements == 1
        assert found.schedule is not None
        assert "Start with 256" in str(found)


class TestRefusals:
    async def test_an_unknown_task_is_not_found(self, shared_client: httpx.AsyncClient, planted: str) -> None:
        for project, task in ((planted, "two"), (f"none {uuid4()}", "one")):
            answer = await shared_client.get(f"/api/v1/projects/{project}/tasks/{task}/recommendation")

            assert_problem(answer, 404, "task-not-found")

    @pytest.mark.parametrize(
        ("query", "field"),
        [
            ({"to_step": 3}, "to_step"),
            ({"preference": 2}, "preference"),
            ({"preference": 0.5, "examples_per_step": 3}, "examples_per_step"),
            ({"batch": 3}, "batch"),
        ],
    )
    async def test_a_wrong_question_names_its_field(
        self, shared_client: httpx.AsyncClient, planted: str, query: dict[str, Any], field: str
    ) -> None:
        answer = await shared_client.get(f"/api/v1/projects/{planted}/tasks/one/recommendation", params=query)

        assert_problem(answer, 422, "invalid-input", field=field)
