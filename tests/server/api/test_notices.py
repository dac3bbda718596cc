"""What a reader should know of the measurement: flags of the latest window as sentences."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from factories import make_batch, make_measurements, without_estimates


async def trained(client: httpx.AsyncClient, rows: dict[str, list[Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The run and its recommendation after these rows, the last ones of the run."""
    end = {"seq": rows["seq"][-1] + 1, "status": "finished", "wall_time": 1e9}
    body = make_batch(measurements=rows, finish=end)
    answer = await client.post(f"/api/v1/streams/{uuid4()}/batches", json=body)
    assert answer.status_code == 200, answer.text
    run = (await client.get(f"/api/v1/runs/{body['run_id']}")).json()
    return run, (await client.get(f"/api/v1/runs/{body['run_id']}/recommendation")).json()


def codes(found: list[dict[str, Any]]) -> list[str]:
    return [one["code"] for one in found]


class TestNotices:
    @pytest.mark.parametrize("said", ["preference=0.7", "examples_per_step=300"])
    async def test_a_reader_who_says_what_a_step_is_worth_is_not_asked_for_it(
        self, shared_client: httpx.AsyncClient, said: str
    ) -> None:
        run, unasked = await trained(shared_client, make_measurements(steps=range(400)))

        asked = (await shared_client.get(f"/api/v1/runs/{run['id']}/recommendation?{said}")).json()

        assert codes(unasked["warnings"]) == ["uncalibrated", "no_price"]
        assert codes(asked["warnings"]) == ["uncalibrated"]

    async def test_a_flag_of_the_latest_window_is_a_notice_also_when_the_newest_row_lacks_it(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        rows = make_measurements(steps=range(400))
        rows["flags"][385] = 2048 | 1024 | 2**30

        run, advice = await trained(shared_client, rows)

        assert codes(run["notices"]) == ["heterogeneous_ranks", "compressed_gradient"]
        assert run["notices"][0]["text"].startswith("Ranks see different data")
        assert codes(advice["warnings"]) == ["heterogeneous_ranks", "uncalibrated", "no_price"]

    async def test_what_was_before_the_latest_window_is_not_said_any_more(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        rows = make_measurements(steps=range(400))
        rows["flags"][100] = 256

        run, advice = await trained(shared_client, rows)
        then = f"/api/v1/runs/{run['id']}/recommendation?to_step=102"

        assert run["notices"] == []
        assert codes(advice["warnings"]) == ["uncalibrated", "no_price"]
        assert codes((await shared_client.get(then)).json()["warnings"]) == [
            "coupled_examples",
            "uncalibrated",
            "no_price",
        ]

    async def test_duplicated_small_batches_are_a_reason_and_a_notice_without_any_estimate(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        rows = without_estimates(make_measurements(steps=range(40)), range(40), flags=4096)
        # a duty cycle: the last row was not measured
        rows["flags"][-1] = 0

        run, advice = await trained(shared_client, rows)

        assert run["noise_scale"]["reason"] == "duplicated_small_batches"
        assert codes(run["notices"]) == ["duplicated_small_batches"]
        assert advice["headline"] == "Measurement needs a look"
        series = (await shared_client.get(f"/api/v1/runs/{run['id']}/noise-scale")).json()
        assert series["latest"]["reason"] == "duplicated_small_batches"

    async def test_a_run_without_rows_has_none(self, shared_client: httpx.AsyncClient) -> None:
        run = (await shared_client.post("/api/v1/runs", json={"project": "demo"})).json()

        found = {name: run[name] for name in ("notices", "notes", "kinds", "num_ranks", "measure_every")}

        assert found == {"notices": [], "notes": [], "kinds": [], "num_ranks": None, "measure_every": None}
