"""What devices beyond the recommended batch buy, as GET /api/v1/tradeoff says it: against hand numbers."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from factories import make_batch, make_measurements, make_run

PLANNED = {"critical_batch": 1000, "steps": 2000, "at_batch": 1000}
MACHINES = {"step_seconds": 3.6, "num_devices": 10, "usd_per_device_hour": 2, "examples_per_step": 1000}
"""A device for every 100 examples; a step of any batch takes a thousandth of an hour."""


async def beyond(client: httpx.AsyncClient, **query: Any) -> dict[str, Any]:
    answer = await client.get("/api/v1/tradeoff", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["beyond"]
    return found


async def test_forty_devices_are_one_run_or_two_or_the_four_of_the_recommended_batch(
    shared_client: httpx.AsyncClient,
) -> None:
    found = await beyond(shared_client, **PLANNED, **MACHINES, max_devices=40)

    assert (found["num_devices"], found["is_assumed"], found["num_used"]) == (40, False, 10)
    assert found["of_critical_batch"]["value"] == pytest.approx(10)
    assert [(way["num_runs"], way["num_devices"], way["is_best"]) for way in found["ways"]] == [
        (1, 40, False),
        (2, 20, False),
        (4, 10, True),
    ]
    # S_min = 1000: 1,250, 1,500 and 2,000 steps of 3.6 s
    assert [way["row"]["hours"]["value"] for way in found["ways"]] == pytest.approx([1.25, 1.5, 2.0])
    assert [way["row"]["usd"]["value"] for way in found["ways"]] == pytest.approx([100, 60, 40])
    assert [way["efficiency"]["value"] for way in found["ways"]] == pytest.approx([0.2, 1 / 3, 0.5])
    assert [way["runs_per_day"]["value"] for way in found["ways"]] == pytest.approx([19.2, 32, 48])
    assert [way["times_as_many"]["value"] for way in found["ways"]] == pytest.approx([1, 5 / 3, 2.5])
    assert found["ways"][2]["best_of"] == pytest.approx(1.02937537)
    assert found["ways"][2]["chance_of_top"] == pytest.approx(1 - 0.95**4)


async def test_a_search_is_fifty_nine_trials_of_the_recommended_batch_in_rounds(
    shared_client: httpx.AsyncClient,
) -> None:
    found = (await beyond(shared_client, **PLANNED, **MACHINES, max_devices=40))["search"]

    assert (found["num_trials"], found["num_rounds"]) == (59, 15)
    assert found["hours"]["value"] == pytest.approx(15 * 2.0)
    assert found["usd"]["value"] == pytest.approx(59 * 40)


async def test_devices_that_do_not_divide_stay_idle_and_are_told(shared_client: httpx.AsyncClient) -> None:
    found = await beyond(shared_client, **PLANNED, **MACHINES, max_devices=35)

    three = found["ways"][-1]
    assert (three["num_runs"], three["num_devices"], three["num_idle"]) == (3, 10, 5)
    assert [(way["num_devices"], way["num_idle"]) for way in found["ways"][:2]] == [(35, 0), (17, 1)]


async def test_an_interval_of_the_critical_batch_is_carried_to_every_way(shared_client: httpx.AsyncClient) -> None:
    ends = {"critical_batch_low": 500, "critical_batch_high": 2000}
    found = await beyond(shared_client, **PLANNED, **MACHINES, **ends, max_devices=40)

    one, four = found["ways"][0], found["ways"][2]
    assert (one["efficiency"]["low"], one["efficiency"]["high"]) == pytest.approx((1 / 9, 1 / 3))
    # B = 4,000 in a run planned at 1,000: 2,000 × (1 + B_crit/4000) / (1 + B_crit/1000) steps
    hours = [2 * (1 + at / 4000) / (1 + at / 1000) for at in (2000, 500)]
    assert (one["row"]["hours"]["low"], one["row"]["hours"]["high"]) == pytest.approx(hours)
    assert (one["runs_per_day"]["low"], one["runs_per_day"]["high"]) == pytest.approx([24 / at for at in hours[::-1]])
    # the recommended batch is the one of the plan: its steps are as planned whatever B_crit
    assert four["row"]["hours"]["low"] == pytest.approx(four["row"]["hours"]["high"])
    assert (four["times_as_many"]["low"], four["times_as_many"]["high"]) == pytest.approx(
        [4 * (1 + at / 4000) / (1 + at / 1000) for at in (2000, 500)]
    )


async def test_where_nobody_says_how_many_devices_there_are_four_times_as_many_are_assumed(
    shared_client: httpx.AsyncClient,
) -> None:
    found = await beyond(shared_client, **PLANNED, **MACHINES)

    assert (found["num_devices"], found["is_assumed"]) == (40, True)


async def test_a_run_that_fills_all_devices_is_compared_with_two_on_half_of_them(
    shared_client: httpx.AsyncClient,
) -> None:
    found = await beyond(shared_client, **PLANNED, **MACHINES, max_devices=10)

    assert [(way["num_runs"], way["num_devices"]) for way in found["ways"]] == [(1, 10), (2, 5)]
    assert found["ways"][0]["is_best"]


async def test_without_a_plan_the_efficiency_is_known_and_no_hours_are(shared_client: httpx.AsyncClient) -> None:
    found = await beyond(shared_client, critical_batch=1000, **MACHINES, max_devices=40)

    assert found["ways"][0]["efficiency"]["value"] == pytest.approx(0.2)
    assert found["ways"][0]["times_as_many"]["value"] == pytest.approx(1)
    assert found["ways"][0]["runs_per_day"] is None
    assert found["search"]["hours"] is None


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (PLANNED, "devices that come with the batch"),
        ({**PLANNED, "step_seconds": 2, "num_devices": 1}, "devices that come with the batch"),
        ({**PLANNED, **MACHINES, "max_hours": 0.5}, "a batch inside the limits"),
        ({**PLANNED, **MACHINES, "num_devices": 1, "at_batch": 5000, "max_devices": 2, "max_examples": 1e9}, None),
    ],
)
async def test_what_is_missing_is_said(
    query: dict[str, Any], words: str | None, shared_client: httpx.AsyncClient
) -> None:
    found = await beyond(shared_client, **query)

    assert (found["missing"] is None) == (words is None)
    assert words is None or (words in found["missing"] and found["ways"] == [])


async def language_model(client: httpx.AsyncClient, *, noise_scale: float) -> str:
    """400 of 800 steps at batch 256 of tokens, on 2 devices."""
    run_id = str(uuid4())
    batch = make_batch(
        run_id=run_id,
        run=make_run(unit="tokens", planned_steps=800, num_devices=2, usd_per_device_hour=3.6),
        measurements=make_measurements(steps=range(400), noise_scale=noise_scale, global_batch=256.0),
    )
    answer = await client.post(f"/api/v1/streams/{uuid4()}/batches", json=batch)
    assert answer.status_code == 200, answer.text
    return run_id


async def test_a_larger_model_is_known_of_language_models_alone(shared_client: httpx.AsyncClient) -> None:
    typed = await beyond(shared_client, **PLANNED, **MACHINES, max_devices=40)
    found = await beyond(shared_client, run_id=await language_model(shared_client, noise_scale=100), max_devices=64)

    assert typed["larger_model"] is None
    assert typed["larger_model_text"].startswith("Not known")
    model, times = found["larger_model"], 64 / found["num_used"]
    assert model["times"] == pytest.approx(times)
    assert model["critical_batch"] == pytest.approx(
        {"value": times**0.44, "low": times**0.42, "high": times**0.68, "level": 0.95}
    )
    assert times**0.32 <= model["hours"]["low"] < model["hours"]["value"] < model["hours"]["high"] <= times
    assert "loss it reaches is not known" in found["larger_model_text"]


async def test_a_run_that_fills_all_devices_has_none_left_for_parameters(shared_client: httpx.AsyncClient) -> None:
    run_id = await language_model(shared_client, noise_scale=300)

    found = await beyond(shared_client, run_id=run_id, max_devices=2)

    assert found["larger_model"] is None
    assert "none are left" in found["larger_model_text"]
