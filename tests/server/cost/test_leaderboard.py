"""GET /api/v1/cost/leaderboard: hours, device-hours and USD to a target, each as the clock and the prices say."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from costed_runs import costed_run
from factories import STARTED_AT, make_stream

HOUR = 3600.0


async def board(client: httpx.AsyncClient, **query: Any) -> dict[str, Any]:
    wanted = {"target": 0.9, "metric": "accuracy", "goal": "max", **query}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    found: dict[str, Any] = (await client.get("/api/v1/cost/leaderboard", params=wanted)).raise_for_status().json()
    return found


async def test_a_run_is_there_with_its_hours_device_hours_and_usd(shared_client: httpx.AsyncClient) -> None:
    project = f"cost {uuid4()}"
    await costed_run(
        shared_client, project=project, accuracy=[0.5, 0.8, 0.93, 0.95], num_devices=4, usd_per_device_hour=2.0,
        device="V100",
    )  # fmt: skip
    await costed_run(shared_client, project=project, accuracy=[0.5, 0.6], num_devices=4)

    found = await board(shared_client, project=project)

    assert (found["num_runs"], found["num_reached"], found["num_unpriced"]) == (2, 1, 0)
    (row,) = found["rows"]
    assert (row["hours"], row["device_hours"], row["usd"]) == pytest.approx((3.0, 12.0, 24.0))
    assert (row["step"], row["value"], row["origin"]) == (2, 0.93, "own")
    assert row["price_said"] == "2 USD a device-hour: the run says"
    assert row["is_on_front"]
    assert row["is_record"]
    assert row["excluded"] is None
    assert found["assumptions"]


async def test_a_pause_between_two_processes_costs_hours_and_no_money(shared_client: httpx.AsyncClient) -> None:
    """Two hours of work, five of waiting, two of work."""
    project, run_id = f"cost {uuid4()}", uuid4()
    about: dict[str, Any] = {"project": project, "num_devices": 2, "usd_per_device_hour": 1.0, "run_id": run_id}
    await costed_run(shared_client, accuracy=[0.1, 0.2], **about)
    later = STARTED_AT + 7 * HOUR
    await costed_run(
        shared_client, accuracy=[0.5, 0.95], began=later, steps=[2, 3], stream=make_stream(started_at=later), **about
    )

    (row,) = (await board(shared_client, project=project))["rows"]

    assert (row["hours"], row["paused_hours"]) == pytest.approx((9.0, 5.0))
    assert (row["device_hours"], row["usd"]) == pytest.approx((8.0, 8.0))


async def test_the_front_and_the_records_are_those_of_the_runs(shared_client: httpx.AsyncClient) -> None:
    project, day = f"cost {uuid4()}", 86_400.0
    for place, (hours, price) in enumerate([(8, 1.0), (4, 4.0), (6, 9.0), (2, None)]):
        await costed_run(
            shared_client, project=project, accuracy=[0.1] * (hours - 1) + [0.95], began=STARTED_AT + place * day,
            name=f"{hours} h", num_devices=1, usd_per_device_hour=price, device="A100",
        )  # fmt: skip

    found = await board(shared_client, project=project)

    assert [row["name"] for row in found["rows"]] == ["2 h", "4 h", "6 h", "8 h"]
    assert [row["name"] for row in found["rows"] if row["is_on_front"]] == ["4 h", "8 h"]
    assert [one["name"] for one in found["records"]] == ["8 h", "4 h", "2 h"]
    assert found["improvement"]["times"] == pytest.approx(4)
    assert found["improvement_usd"] is not None
    assert (found["num_unpriced"], found["rows"][0]["excluded"]) == (1, found["why_unpriced"])
    assert [(one["device"], one["num_devices"], one["times"]) for one in found["same_hardware"]] == [("A100", 1, 4.0)]
    for step in found["steps"]:
        product = 1.0
        for part in step["parts"]:
            product *= part["times"]
        assert product == pytest.approx(step["times"])
    by_money = await board(shared_client, project=project, sort="usd")
    assert [row["name"] for row in by_money["rows"]] == ["8 h", "4 h", "6 h", "2 h"]


async def test_a_project_says_a_price_where_the_run_does_not_and_the_reader_where_neither(
    shared_client: httpx.AsyncClient,
) -> None:
    project = f"cost {uuid4()}"
    await costed_run(shared_client, project=project, accuracy=[0.95], num_devices=3)

    asked = await board(shared_client, project=project, usd_per_device_hour=5)
    assert asked["rows"][0]["usd"] == pytest.approx(15)
    assert asked["rows"][0]["price_said"].endswith("as asked")
    said = {"device_hour_price": 2.0, "currency": "EUR", "usd_per_unit": 1.5}
    (await shared_client.put(f"/api/v1/projects/{project}/defaults", json=said)).raise_for_status()

    by_project = await board(shared_client, project=project, usd_per_device_hour=5)

    assert by_project["rows"][0]["usd"] == pytest.approx(9)
    assert by_project["rows"][0]["price_said"] == "3 USD a device-hour: the project's default"


async def test_spot_machines_are_cheaper_and_take_longer_and_may_not_pay(shared_client: httpx.AsyncClient) -> None:
    project = f"cost {uuid4()}"
    await costed_run(shared_client, project=project, accuracy=[0.1, 0.95], num_devices=2, usd_per_device_hour=1.0)

    cheap = await board(shared_client, project=project, spot_price_share=0.3)
    dear = await board(
        shared_client, project=project, spot_price_share=0.9, interruptions_per_device_hour=0.1, restart_hours=1,
    )  # fmt: skip

    assert cheap["rows"][0]["on_spot"] == {"hours": pytest.approx(2), "usd": pytest.approx(1.2), "pays": True}
    assert dear["rows"][0]["on_spot"] == {"hours": pytest.approx(2.5), "usd": pytest.approx(4.5), "pays": False}
    refused = await shared_client.get(
        "/api/v1/cost/leaderboard",
        params={"target": 0.9, "metric": "accuracy", "goal": "max", "project": project, "spot_price_share": 0.5,
                "interruptions_per_device_hour": 9, "restart_hours": 9},
    )  # fmt: skip
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "interruptions_per_device_hour"


async def test_the_training_loss_counts_where_no_metric_is_named(shared_client: httpx.AsyncClient) -> None:
    """Its mean over 32 steps; the losses of the tests lie about 1.5."""
    project = f"cost {uuid4()}"
    await costed_run(shared_client, project=project, steps=range(96), seconds=60)

    reached = await board(shared_client, project=project, metric=None, goal="min", target=1.7)
    missed = await board(shared_client, project=project, metric=None, goal="min", target=1.0)

    assert reached["metric"] == "training loss, mean of 32 steps"
    assert reached["rows"][0]["step"] == 31
    assert reached["rows"][0]["hours"] == pytest.approx(32 * 60 / 3600)
    assert (missed["num_runs"], missed["num_reached"]) == (1, 0)


async def test_batch_and_algorithm_are_parted_where_each_trained_at_one_batch_up_to_the_target(
    shared_client: httpx.AsyncClient,
) -> None:
    """By the newest batch a run that ramped from 256 to 4,096 would have paid for 4,096 from its first step on."""
    said = {}
    for name, batches in {
        "steady": [1024.0], "ramped": [256.0] * 8 + [4096.0], "later": [1024.0] * 16 + [4096.0],
    }.items():  # fmt: skip
        about: dict[str, Any] = {"project": f"cost {uuid4()}", "num_devices": 1, "device": "A100", "seconds": 900}
        await costed_run(shared_client, accuracy=[0.1] * 31 + [0.95], batches=[256.0], **about)
        fast = [0.1] * 15 + [0.95] * 2
        await costed_run(shared_client, accuracy=fast, batches=batches, began=STARTED_AT + 86_400.0, **about)
        (step,) = (await board(shared_client, project=about["project"], critical_batch=512))["steps"]
        said[name] = {part["cause"]: part["basis"] for part in step["parts"]}

    assert "batch 256 → 1,024" in said["steady"]["larger batch"] == said["later"]["larger batch"]
    assert "changed" in said["ramped"]["batch and algorithm"]


async def test_the_checklist_is_filled_from_config_and_what_was_logged(shared_client: httpx.AsyncClient) -> None:
    project = f"cost {uuid4()}"
    config = {"trainer": {"bf16": True}, "engineering_hours": 6, "change": "mixed precision"}
    await costed_run(
        shared_client, project=project, accuracy=[0.1, 0.5, 0.95], lrs=[0.001, 0.1], batches=[256, 1024], config=config
    )

    (row,) = (await board(shared_client, project=project))["rows"]

    answers = {one["name"]: one["answer"] for one in row["techniques"]}
    assert answers["mixed precision"] == answers["batch ramp"] == answers["learning-rate warm-up"] == "yes"
    assert answers["progressive resizing"] == "unknown"
    assert (row["engineering_hours"], row["change"]) == (6.0, "mixed precision")


async def test_a_board_of_nothing_is_empty(shared_client: httpx.AsyncClient) -> None:
    found = await board(shared_client, project=f"nothing {uuid4()}")

    assert (found["rows"], found["front"], found["records"], found["improvement"]) == ([], [], [], None)


async def test_a_board_that_was_looked_at_follows_what_its_runs_log_and_what_is_said_of_them(
    shared_client: httpx.AsyncClient,
) -> None:
    """Rows are kept while their run does not change: one run logs, another is renamed, the project says a price."""
    project, ahead, behind = f"cost {uuid4()}", uuid4(), uuid4()
    about: dict[str, Any] = {"project": project, "num_devices": 2}
    await costed_run(shared_client, accuracy=[0.5, 0.95], run_id=ahead, config={"bf16": True}, **about)
    await costed_run(shared_client, accuracy=[0.5, 0.6], run_id=behind, **about)
    first = await board(shared_client, project=project)
    assert [(row["key"], row["usd"]) for row in first["rows"]] == [(str(ahead), None)]

    later = STARTED_AT + 2 * HOUR
    await costed_run(
        shared_client, accuracy=[0.97], steps=[2], began=later, stream=make_stream(started_at=later), run_id=behind,
        **about,
    )  # fmt: skip
    (await shared_client.patch(f"/api/v1/runs/{ahead}", json={"name": "the first"})).raise_for_status()
    said = await shared_client.put(f"/api/v1/projects/{project}/defaults", json={"device_hour_price": 3.0})
    said.raise_for_status()
    found = await board(shared_client, project=project)

    assert [row["key"] for row in found["rows"]] == [str(ahead), str(behind)]
    assert found["rows"][0]["name"] == "the first"
    assert [row["usd"] for row in found["rows"]] == [pytest.approx(2 * 3.0 * row["hours"]) for row in found["rows"]]
    assert found["num_reached"] == 2
