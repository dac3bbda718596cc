"""GET /api/v1/sweeps/{id}/learning-rates."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from problems import assert_problem
from sweep_curves import BATCH_SIZES, CRITICAL_BATCH, curve, sweep_of

RATES = (0.0125, 0.025, 0.05, 0.1, 0.2, 0.4)


async def learning_rates(client: httpx.AsyncClient, sweep_id: str, **query: Any) -> dict[str, Any]:
    answer = await client.get(f"/api/v1/sweeps/{sweep_id}/learning-rates", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def tuned(batch_size: float, best: float) -> list[dict[str, Any]]:
    """Runs whose best rate is `best`: the planted curves are best at 0.1, whatever their rate is called."""
    return [{**curve(batch_size, lr=lr, seed=0), "lr": lr * best / 0.1} for lr in RATES]


@pytest.fixture(scope="module")
async def saturating(shared_client: httpx.AsyncClient) -> str:
    """SGD: 0.4 / (1 + B_crit / B), on grids of a factor of two about it."""
    runs = [run for size in (4, *BATCH_SIZES, 16384) for run in tuned(size, 0.4 / (1 + CRITICAL_BATCH / size))]
    return await sweep_of(shared_client, *runs, optimizer="SGD")


class TestSweep:
    async def test_each_batch_size_has_its_best_rate_with_whiskers(
        self, shared_client: httpx.AsyncClient, saturating: str
    ) -> None:
        found = await learning_rates(shared_client, saturating)

        assert [rate["batch_size"] for rate in found["rates"]] == [4, *BATCH_SIZES, 16384]
        for rate in found["rates"]:
            assert rate["lr"] == pytest.approx(0.4 / (1 + CRITICAL_BATCH / rate["batch_size"]))
            assert rate["high"] / rate["low"] == pytest.approx(2.0)
            assert (rate["num_rates"], rate["is_at_grid_edge"]) == (len(RATES), False)

    async def test_the_planted_curve_is_possible_and_its_parameters_lie_inside(
        self, shared_client: httpx.AsyncClient, saturating: str
    ) -> None:
        found = await learning_rates(shared_client, saturating)

        curves = {one["name"]: one for one in found["curves"]}
        assert set(curves) == {"square_root", "power", "saturating_linear", "saturating", "surge"}
        linear = curves["saturating_linear"]
        assert linear["has_support"]
        assert linear["estimates"]["batch_scale"]["low"] < CRITICAL_BATCH < linear["estimates"]["batch_scale"]["high"]
        assert not curves["power"]["has_support"]
        assert curves["power"]["points"] == []
        assert len(linear["points"]) == 33

    async def test_the_claims_about_sgd_hold(self, shared_client: httpx.AsyncClient, saturating: str) -> None:
        found = await learning_rates(shared_client, saturating)

        assert found["claims"][0]["holds"] is True
        assert found["claims"][0]["estimate"]["low"] < 1.0
        assert found["claims"][2]["holds"] is True

    async def test_beyond_the_critical_batch_and_the_largest_tuned_one_there_is_a_warning(
        self, shared_client: httpx.AsyncClient, saturating: str
    ) -> None:
        found = await learning_rates(shared_client, saturating)

        (points,) = (one["points"] for one in found["curves"] if one["name"] == "saturating_linear")
        past = [point for point in points if point["is_past_critical"]]
        assert past
        assert all(point["batch_size"] > 16384 and point["is_extrapolated"] for point in past)
        assert any("past B_crit" in warning for warning in found["warnings"])

    async def test_the_edge_of_a_grid_is_flagged(self, shared_client: httpx.AsyncClient) -> None:
        runs = [curve(size, lr=lr) for size in BATCH_SIZES for lr in (0.1, 0.2)]
        sweep_id = await sweep_of(shared_client, *runs)

        found = await learning_rates(shared_client, sweep_id)

        assert all(rate["is_at_grid_edge"] and rate["low"] is None for rate in found["rates"])
        assert found["curves"] == []
        assert "try rates beyond" in found["explanation"]
        assert any("last one tried" in warning for warning in found["warnings"])

    async def test_a_sweep_of_one_rate_has_none(self, shared_client: httpx.AsyncClient) -> None:
        sweep_id = await sweep_of(shared_client, *(curve(size) for size in BATCH_SIZES))

        found = await learning_rates(shared_client, sweep_id)

        assert (found["rates"], found["curves"], found["can_tell"]) == ([], [], False)

    async def test_an_unknown_sweep_is_not_found(self, shared_client: httpx.AsyncClient) -> None:
        assert_problem(await shared_client.get(f"/api/v1/sweeps/{uuid4()}/learning-rates"), 404, "sweep-not-found")


class TestKeptAnswers:
    async def test_a_run_that_is_attached_changes_them_and_nothing_else_does(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        sweep_id = await sweep_of(shared_client, *(run for size in BATCH_SIZES for run in tuned(size, 0.1)))
        before = await learning_rates(shared_client, sweep_id)

        again = await learning_rates(shared_client, sweep_id)
        replaced = {"runs": [{**curve(16, lr=0.1, seed=7), "lr": 0.15}]}
        assert (await shared_client.post(f"/api/v1/sweeps/{sweep_id}/runs", json=replaced)).status_code == 200
        after = await learning_rates(shared_client, sweep_id)

        assert again == before
        assert after["rates"][0]["num_rates"] == before["rates"][0]["num_rates"] + 1

    async def test_a_sweep_that_comes_back_under_its_id_without_runs_answers_for_its_own_targets(
        self, shared_client: httpx.AsyncClient
    ) -> None:
        sweep = {"id": str(uuid4()), "project": "demo", "task": "planted"}
        path = f"/api/v1/sweeps/{sweep['id']}"
        await shared_client.post("/api/v1/sweeps", json={**sweep, "targets": [0.5]})
        before = await learning_rates(shared_client, sweep["id"])

        assert (await shared_client.delete(path)).status_code == 204
        await shared_client.post("/api/v1/sweeps", json={**sweep, "targets": [0.3]})
        after = await learning_rates(shared_client, sweep["id"])

        assert (before["target"], after["target"]) == (0.5, 0.3)
