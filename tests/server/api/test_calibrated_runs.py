"""A sweep of one's own calibrates the recommendation of every run of its task, and helps those of its family."""

from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from calibrating_sweeps import NOISE_SCALE, planted_sweep
from compared_tasks import rows_of, stored_run
from factories import make_batch, make_run, make_stream
from stored_runs import judge_all
from sweep_curves import BATCH_SIZES, TARGET, curve


async def advice(client: httpx.AsyncClient, run_id: str, **query: Any) -> dict[str, Any]:
    answer = await client.get(f"/api/v1/runs/{run_id}/recommendation", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def width(interval: dict[str, float]) -> float:
    return interval["high"] / interval["low"]


class TestCalibration:
    async def test_a_sweep_makes_the_advice_of_its_task_surer_and_moves_it_by_kappa(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        project = f"own {uuid4()}"
        run_id = await stored_run(shared_client, project=project, task="one", noise_scale=NOISE_SCALE)
        before = await advice(shared_client, run_id)

        await planted_sweep(shared_client, project=project, task="one")
        after = await advice(shared_client, run_id)

        assert (before["calibration"]["state"], after["calibration"]["state"]) == ("uncalibrated", "calibrated")
        kappa = after["calibration"]["kappa"]
        assert kappa["low"] < 2 < kappa["high"]
        assert after["calibration"]["measurements"] == 1
        assert after["calibration"]["text"].startswith("Calibrated here on 1 sweep: κ ")
        assert width(after["critical_batch"]) < width(before["critical_batch"]) / 10
        assert after["critical_batch"]["value"] == pytest.approx(256, rel=0.25)
        assert "uncalibrated" not in [one["code"] for one in after["warnings"]]

    async def test_keep_is_reachable(self, shared_client: httpx.AsyncClient) -> None:
        project = f"keep {uuid4()}"
        run_id = await stored_run(shared_client, project=project, task="one", noise_scale=NOISE_SCALE)
        await planted_sweep(shared_client, project=project, task="one")

        found = await advice(shared_client, run_id, examples_per_step=256)

        assert found["current_batch_size"] == 256
        assert found["decision"] == "keep"

    async def test_another_task_of_the_family_learns_less_and_another_project_nothing(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        project, family = f"family {uuid4()}", {"family": "vision"}
        await planted_sweep(shared_client, project=project, task="one", run=family)
        asked = {
            (project, "one", "vision"): "own",
            (project, "two", "vision"): "sister",
            (project, "three", "language"): "stranger",
            (f"other {uuid4()}", "one", "vision"): "elsewhere",
        }

        found = {
            name: (
                await advice(
                    shared_client,
                    await stored_run(
                        shared_client, project=where, task=task, run={"family": kind}, noise_scale=NOISE_SCALE
                    ),
                )
            )["calibration"]
            for (where, task, kind), name in asked.items()
        }

        sds = {name: one["kappa_log10_sd"] for name, one in found.items()}
        assert sds["own"] < sds["sister"] < sds["stranger"] == sds["elsewhere"] == pytest.approx(0.87)
        assert found["sister"]["state"] == "calibrated"
        assert "of other tasks of this family" in found["sister"]["text"]
        assert 1 < found["sister"]["kappa"]["value"] < 2.2
        assert found["stranger"]["state"] == found["elsewhere"]["state"] == "uncalibrated"

    async def test_another_optimizer_learns_nothing(self, shared_client: httpx.AsyncClient) -> None:
        project = f"optimizer {uuid4()}"
        await planted_sweep(shared_client, project=project, task="one")
        run_id, rows = str(uuid4()), rows_of(noise_scale=NOISE_SCALE)
        described, stream = make_run(project=project, task="one"), make_stream(optimizer="AdamW")
        batch = make_batch(run_id=run_id, run=described, stream=stream, measurements=rows)
        assert (await shared_client.post(f"/api/v1/streams/{uuid4()}/batches", json=batch)).status_code == 200

        found = (await advice(shared_client, run_id))["calibration"]

        assert found["state"] == "uncalibrated"

    @pytest.mark.parametrize("what", ["sweep", "runs"])
    async def test_what_is_deleted_takes_its_calibration_back(
        self, shared_client: httpx.AsyncClient, what: str
    ) -> None:
        project = f"back {uuid4()}"
        sweep_id, runs = await planted_sweep(shared_client, project=project, task="one")
        run_id = await stored_run(shared_client, project=project, task="one", noise_scale=NOISE_SCALE)
        before = (await advice(shared_client, run_id))["calibration"]["state"]

        for path in [f"sweeps/{sweep_id}"] if what == "sweep" else [f"runs/{one}" for one in runs]:
            assert (await shared_client.delete(f"/api/v1/{path}")).status_code == 204

        after = await advice(shared_client, run_id)
        assert (before, after["calibration"]["state"]) == ("calibrated", "uncalibrated")

    async def test_a_branch_leaves_an_interval_for_kappa(self, shared_client: httpx.AsyncClient) -> None:
        project = f"branch {uuid4()}"
        run_id = await stored_run(shared_client, project=project, task="one", noise_scale=NOISE_SCALE)
        before = (await advice(shared_client, run_id))["calibration"]
        details = {"local_critical_batch": {"low": 512, "high": 1024}}
        body = {"project": project, "task": "one", "kind": "branch", "run_id": run_id, "details": details}
        sweep_id = (await shared_client.post("/api/v1/sweeps", json=body)).json()["id"]
        arms = [{"batch_size": size, "lr": 0.1, "steps": [0], "values": [1.0]} for size in (256, 512, 1024)]

        await shared_client.post(f"/api/v1/sweeps/{sweep_id}/runs", json={"runs": arms})

        after = (await advice(shared_client, run_id))["calibration"]
        assert after["text"].startswith("Calibrated here on 1 branch: κ ")
        assert 512 / NOISE_SCALE / 1.1 < after["kappa"]["value"] < 1024 / NOISE_SCALE
        assert after["kappa_log10_sd"] < before["kappa_log10_sd"] / 2

    @pytest.mark.parametrize(
        "details", [{}, {"local_critical_batch": "large"}, {"local_critical_batch": {"low": True, "high": -1}}]
    )
    async def test_a_branch_that_says_nothing_of_batch_sizes_calibrates_nothing(
        self, shared_client: httpx.AsyncClient, details: dict[str, Any]
    ) -> None:
        project = f"mute {uuid4()}"
        run_id = await stored_run(shared_client, project=project, task="one", noise_scale=NOISE_SCALE)
        body = {"project": project, "task": "one", "kind": "branch", "run_id": run_id, "details": details}
        sweep_id = (await shared_client.post("/api/v1/sweeps", json=body)).json()["id"]
        arm = {"batch_size": 256, "lr": 0.1, "steps": [0], "values": [1.0]}

        attached = await shared_client.post(f"/api/v1/sweeps/{sweep_id}/runs", json={"runs": [arm]})

        assert attached.status_code == 200
        assert (await advice(shared_client, run_id))["calibration"]["state"] == "uncalibrated"

    async def test_a_sweep_that_counts_batches_in_another_unit_than_its_runs_says_nothing(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        """Batches of 4,096 tokens where the runs logged 256 sequences: κ would be off by the tokens of a sequence."""
        project = f"unit {uuid4()}"
        await planted_sweep(shared_client, project=project, task="one", scale=16.0)
        run_id = await stored_run(shared_client, project=project, task="one", noise_scale=NOISE_SCALE)

        found = (await advice(shared_client, run_id))["calibration"]

        assert found["state"] == "uncalibrated"

    async def test_the_table_decides_with_the_same_kappa_as_the_run_s_page(
        self, shared_app: FastAPI, shared_client: httpx.AsyncClient
    ) -> None:
        project = f"rows {uuid4()}"
        await planted_sweep(shared_client, project=project, task="one")
        own = await stored_run(shared_client, project=project, task="one", noise_scale=NOISE_SCALE)
        other = await stored_run(shared_client, project=project, task="two", noise_scale=NOISE_SCALE)
        await judge_all(shared_app)

        rows = (await shared_client.get("/api/v1/runs", params={"project": project})).json()["runs"]

        decided = {row["id"]: row["decision"] for row in rows}
        for run_id in (own, other):
            page = await advice(shared_client, run_id)
            answer = (await shared_client.get(f"/api/v1/runs/{run_id}")).json()
            alone, known = answer["decision"], page["calibration"]
            assert decided[run_id] == alone
            assert decided[run_id]["decision"] == page["decision"]
            assert (alone["low"], alone["high"]) == (page["interval"]["low"], page["interval"]["high"])
            assert answer["kappa"] == {**known["kappa"], "measurements": known["measurements"]}
        assert width(decided[own]) < width(decided[other]) / 3

    async def test_a_run_that_was_attached_before_it_trained_counts_once_it_has_finished(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        project, sweep_id, stream_id = f"late {uuid4()}", str(uuid4()), str(uuid4())
        body = {"id": sweep_id, "project": project, "task": "one", "targets": [TARGET], "optimizer": "SGD"}
        await shared_client.post("/api/v1/sweeps", json=body)
        described = make_run(project=project, task="one")
        run_id = (await shared_client.post("/api/v1/runs", json=described)).json()["id"]
        curves = [curve(size, seed=seed, noise=0.03) for size in BATCH_SIZES for seed in range(3)]
        late = {"run_id": run_id, "batch_size": 256, "lr": 0.1, "seed": 9}
        await shared_client.post(f"/api/v1/sweeps/{sweep_id}/runs", json={"runs": [*curves, late]})
        rows = rows_of(noise_scale=NOISE_SCALE)
        trained = make_batch(run_id=run_id, run=described, stream=make_stream(), measurements=rows)
        await shared_client.post(f"/api/v1/streams/{stream_id}/batches", json=trained)
        before = (await advice(shared_client, run_id))["calibration"]["state"]

        last = {"seq": trained["last_seq"] + 1, "status": "finished", "wall_time": 1.8e9}
        ended = make_batch(run_id=run_id, first_seq=last["seq"], finish=last)
        assert (await shared_client.post(f"/api/v1/streams/{stream_id}/batches", json=ended)).status_code == 200

        after = (await advice(shared_client, run_id))["calibration"]
        assert (before, after["state"]) == ("uncalibrated", "calibrated")
        assert after["kappa"]["low"] < 2 < after["kappa"]["high"]
