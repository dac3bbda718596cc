"""DAWNBench's entries, growth of compute, where a run's time goes, and what a search cost, over HTTP."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from calibrating_sweeps import planted_sweep
from costed_runs import costed_run
from factories import STARTED_AT

DAY = 86_400.0


async def asked(client: httpx.AsyncClient, path: str, **query: Any) -> dict[str, Any]:
    found: dict[str, Any] = (await client.get(f"/api/v1{path}", params=query)).raise_for_status().json()
    return found


async def test_every_submission_is_shown_and_left_off_the_front_only_with_a_reason(
    shared_client: httpx.AsyncClient,
) -> None:
    shown = 0
    for task in ("ImageNet", "CIFAR10", "SQuAD"):
        found = await asked(shared_client, "/cost/submissions", task=task)
        shown += len(found["rows"])
        assert all((row["excluded"] is not None) == (row["usd"] is None) for row in found["rows"])
        assert not any(row["is_on_front"] for row in found["rows"] if row["excluded"])
        assert {row["origin"] for row in found["rows"]} == {"dawnbench"}

    assert shown == 69


async def test_published_factors_stand_next_to_what_the_entries_say(shared_client: httpx.AsyncClient) -> None:
    found = await asked(shared_client, "/cost/submissions")

    factors = {one["said"]: one for one in found["factors"]}
    assert round(factors["times faster"]["computed"]) == factors["times faster"]["published"] == 809
    spot = factors["times cheaper, at a published spot price"]
    assert int(spot["computed"]) == spot["published"] == 79
    assert "published spot price of 14 USD" in spot["basis"]
    for hours in ("15 h to 3 h", "12 h to 3 h"):
        pair = factors[f"{hours} on the same hardware"]
        assert pair["computed"] == pytest.approx(pair["published"], rel=0.14)
    then = await asked(shared_client, "/cost/submissions", until="2018-09-07")
    assert len(then["rows"]) == 17
    assert round(then["improvement"]["times"]) == 809


async def test_a_task_that_dawnbench_has_not_is_refused_by_name(shared_client: httpx.AsyncClient) -> None:
    refused = await shared_client.get("/api/v1/cost/submissions", params={"task": "MNIST"})

    assert refused.status_code == 422
    assert "ImageNet, CIFAR10, SQuAD" in refused.text or "CIFAR10, ImageNet, SQuAD" in refused.text


async def test_compute_of_planted_runs_doubles_as_planted_and_splits_into_price_and_spending(
    shared_client: httpx.AsyncClient,
) -> None:
    """Each 60 days twice the parameters; one device for an hour, whose price grows by 1.5."""
    project = f"growth {uuid4()}"
    for place in range(8):
        await costed_run(
            shared_client, project=project, accuracy=[0.5], began=STARTED_AT + place * 60 * DAY, num_devices=1,
            usd_per_device_hour=1.5**place, config={"num_parameters": 10.0**9 * 2**place},
        )  # fmt: skip
    await costed_run(shared_client, project=project, accuracy=[0.5])

    found = await asked(shared_client, "/cost/growth", project=project)

    assert (len(found["runs"]), found["num_left_out"]) == (8, 1)
    assert found["runs"][0]["compute"]["basis"] == "parameters"
    assert found["runs"][0]["compute"]["pf_days"] == pytest.approx(6e9 * 256 / (1e15 * 86_400))
    assert found["growth"]["months"]["value"] == pytest.approx(60 / (365.25 / 12), rel=1e-6)
    parts = [found[name]["doublings_per_year"]["value"] for name in ("of_priced", "spending", "per_usd")]
    assert parts[0] == pytest.approx(parts[1] + parts[2])
    assert [one["months"] for one in found["lines"]] == [3.4, 3.5]
    assert found["lines"][0]["at_end"] == pytest.approx(found["growth"]["at_end"])


async def test_without_parameters_compute_is_device_hours_at_a_said_share_of_the_peak(
    shared_client: httpx.AsyncClient,
) -> None:
    project = f"growth {uuid4()}"
    await costed_run(shared_client, project=project, accuracy=[0.1, 0.2], num_devices=8, device="Tesla V100-SXM2-16GB")

    (run,) = (await asked(shared_client, "/cost/growth", project=project, utilisation=0.5))["runs"]

    assert run["compute"]["basis"] == "device_hours"
    assert run["compute"]["pf_days"] == pytest.approx(16 * 3600 * 125e12 * 0.5 / (1e15 * 86_400))
    assert "50% utilisation" in run["compute"]["said"]


async def test_logged_shares_name_the_cheapest_lever_and_what_is_not_logged(shared_client: httpx.AsyncClient) -> None:
    project = f"time {uuid4()}"
    shares = {"time/accelerator": [0.6, 0.6], "time/data": [0.2, 0.3]}
    run_id = await costed_run(
        shared_client, project=project, accuracy=[0.1, 0.2], extra=shares, device="NVIDIA A100-SXM4-80GB"
    )

    found = await asked(
        shared_client, f"/runs/{run_id}/time", examples_per_device=128, overhead_seconds=0.1, seconds_per_example=0.01
    )

    assert found["shares"] == pytest.approx({"accelerator": 0.6, "data": 0.25})
    assert found["unexplained"] == pytest.approx(0.15)
    assert found["missing"] == ["time/host", "time/network"]
    assert [one["share_of"] for one in found["levers"]] == ["data", "accelerator"]
    assert found["levers"][0]["most_times"] == pytest.approx(1 / 0.75)
    assert (found["memory"]["memory_gb"], found["memory"]["micro_batch"]) == (80, 32)
    assert found["memory"]["beyond"]["num_micro_batches"] == 4
    alone = await shared_client.get(f"/api/v1/runs/{run_id}/time", params={"examples_per_device": 128})
    assert alone.status_code == 422


async def test_shares_are_of_the_newest_hundred_values_of_all_processes(shared_client: httpx.AsyncClient) -> None:
    run_id = await costed_run(
        shared_client, steps=range(150), accuracy=[0.1] * 150, extra={"time/data": [0.2] * 50 + [0.6] * 100}
    )
    resumed = {"steps": range(150, 200), "accuracy": [0.1] * 50, "extra": {"time/data": [0.9] * 50}}
    await costed_run(shared_client, run_id=run_id, **resumed)

    found = await asked(shared_client, f"/runs/{run_id}/time")

    assert found["shares"] == pytest.approx({"data": 0.75})


@pytest.mark.parametrize("last", [1 << 10, 1 << 21, 1 << 26, 1 << 31])
async def test_techniques_of_a_run_of_any_length_are_told_from_all_of_it(
    shared_client: httpx.AsyncClient, last: int
) -> None:
    steps = [0, last // 2, last]
    run_id = await costed_run(shared_client, steps=steps, batches=(32.0, 64.0, 512.0), lrs=(0.001, 0.1, 0.01))

    found = await asked(shared_client, f"/runs/{run_id}/time")

    answers = {one["name"]: one["answer"] for one in found["techniques"]}
    assert answers["batch ramp"] == "yes"
    assert answers["learning-rate warm-up"] == "yes"


async def test_a_search_counts_every_trial_and_says_what_fewer_would_have_found(
    shared_client: httpx.AsyncClient,
) -> None:
    sweep_id, _ = await planted_sweep(shared_client, project=f"search {uuid4()}", task="one")

    found = await asked(shared_client, f"/sweeps/{sweep_id}/search-cost")

    bill = found["bill"]
    assert bill["num_trials"] > 0
    assert bill["num_timed"] <= bill["num_trials"]
    assert [one["batch_size"] for one in found["sizes"]] == sorted(one["batch_size"] for one in found["sizes"])
    for one in found["sizes"]:
        assert [row["num_trials"] for row in one["best_of"]] == list(range(1, one["num_rates"] + 1))
        assert one["best_of"][-1]["median"] == pytest.approx(one["best_steps"])
    assert found["critical_batches"][-1]["median"] == pytest.approx(256, rel=0.2)


async def test_a_trial_whose_records_are_of_one_moment_is_not_said_to_have_taken_no_time(
    shared_client: httpx.AsyncClient,
) -> None:
    project = f"search {uuid4()}"
    run_id = str(await costed_run(shared_client, project=project, accuracy=[0.1, 0.2], seconds=0.0))
    sweep = (await shared_client.post("/api/v1/sweeps", json={"project": project, "targets": [0.2]})).json()
    runs = [{"run_id": run_id, "batch_size": 32, "lr": 0.1, "seed": 0}]
    await shared_client.post(f"/api/v1/sweeps/{sweep['id']}/runs", json={"runs": runs})

    bill = (await asked(shared_client, f"/sweeps/{sweep['id']}/search-cost"))["bill"]

    assert (bill["num_trials"], bill["num_timed"], bill["winner_hours"], bill["usd"]) == (1, 0, None, None)


@pytest.mark.parametrize("day", ["0", "1536278400", "-1.5", "yesterday"])
async def test_a_day_is_a_day_and_no_number_of_seconds(shared_client: httpx.AsyncClient, day: str) -> None:
    refused = await shared_client.get("/api/v1/cost/submissions", params={"until": day})

    assert refused.status_code == 422
    assert "until" in refused.text
