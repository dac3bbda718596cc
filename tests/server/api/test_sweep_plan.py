"""GET /api/v1/sweeps/{id}/plan."""

import math
import statistics
from typing import Any
from uuid import uuid4

import httpx
import pytest

from noisescale_server.analysis.sweeps.batch_sweep.bootstrap import Bootstrap
from noisescale_server.analysis.sweeps.batch_sweep.target_answer import TargetAnswer, target_answer
from noisescale_server.analysis.sweeps.fitting.sweep_fit import SweepFit
from noisescale_server.analysis.sweeps.plan import plan as plan_for
from noisescale_server.services.sweeps import curves as sweep_curves
from noisescale_server.services.sweeps.curves import RunCurve
from noisescale_server.storage.platform.tables import SweepRun
from problems import assert_problem
from sweep_curves import BATCH_SIZES, CRITICAL_BATCH, TARGET, curve, exact_steps, sweep_of, turning_curves


async def plan_of(shared_client: httpx.AsyncClient, sweep_id: str, **query: Any) -> dict[str, Any]:
    answer = await shared_client.get(f"/api/v1/sweeps/{sweep_id}/plan", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()["plan"]


def noisy(*batch_sizes: int, seeds: int = 3) -> list[dict[str, Any]]:
    return [curve(size, seed=seed, noise=0.1) for size in batch_sizes for seed in range(seeds)]


async def test_a_narrow_interval_needs_nothing_more(shared_client: httpx.AsyncClient) -> None:
    sweep_id = await sweep_of(shared_client, *noisy(*BATCH_SIZES))

    plan = await plan_of(shared_client, sweep_id, ratio=50)

    assert plan["proposals"] == []
    assert plan["examples"] == 0
    assert plan["expected_ratio"] == plan["present_ratio"] < 50


def answer_to(curves: list[dict[str, Any]], *, with_bootstrap: bool = False) -> TargetAnswer:
    runs = [SweepRun(batch_size=float(one["batch_size"]), lr=one["lr"], seed=one["seed"]) for one in curves]
    found = [RunCurve(run, one["steps"], one["values"]) for run, one in zip(runs, curves, strict=True)]
    settings = sweep_curves.settings(runs, found, "min")
    return target_answer(settings, TARGET, level=0.95, with_bootstrap=with_bootstrap)


def log_ratio(answer: TargetAnswer) -> float:
    return math.log(answer.outcome.critical_batch.high / answer.outcome.critical_batch.low)


@pytest.mark.thorough
def test_what_is_proposed_narrows_the_interval_as_foretold_in_the_median() -> None:
    found, foretold = [], []

    for first in range(0, 42, 6):
        curves = [curve(size, seed=first + seed, noise=0.1) for size in BATCH_SIZES for seed in range(6)]
        before = answer_to(curves)
        plan = plan_for(before, wanted_ratio=math.exp(0.8 * log_ratio(before)))
        added = [
            curve(proposal.batch_size, seed=1000 + first + seed, noise=0.1)
            for proposal in plan.proposals
            for seed in range(proposal.num_seeds)
        ]
        foretold.append(math.log(plan.expected_ratio) / log_ratio(before))
        found.append(log_ratio(answer_to(curves + added)) / math.log(plan.expected_ratio))

    assert max(foretold) <= 0.8
    assert statistics.median(found) == pytest.approx(1.0, abs=0.1)


async def test_each_proposal_says_what_it_costs(shared_client: httpx.AsyncClient) -> None:
    sweep_id = await sweep_of(shared_client, *noisy(*BATCH_SIZES))

    plan = await plan_of(shared_client, sweep_id, ratio=1.2)

    assert plan["examples"] == pytest.approx(sum(proposal["examples"] for proposal in plan["proposals"]))
    for proposal in plan["proposals"]:
        assert proposal["steps"] == pytest.approx(exact_steps(proposal["batch_size"]), rel=0.3)
        runs = len(proposal["learning_rates"]) * proposal["num_seeds"]
        one = proposal["steps"] * proposal["batch_size"]
        assert one * proposal["num_seeds"] <= proposal["examples"] <= 1.3 * runs * one


@pytest.mark.parametrize(("sizes", "is_larger"), [((1, 2, 4), True), ((65536, 131072, 262144), False)])
async def test_a_sweep_on_one_side_is_widened_on_the_other(
    shared_client: httpx.AsyncClient, sizes: tuple[int, ...], is_larger: bool
) -> None:
    sweep_id = await sweep_of(
        shared_client, *[curve(size, seed=seed, noise=0.03) for size in sizes for seed in range(4)]
    )

    plan = await plan_of(shared_client, sweep_id)

    proposed = [proposal["batch_size"] for proposal in plan["proposals"]]
    assert (max(proposed) > max(sizes)) if is_larger else (min(proposed) < min(sizes))
    assert plan["present_ratio"] is None
    assert plan["explanation"]


async def test_the_rate_of_a_new_batch_size_follows_its_neighbour(shared_client: httpx.AsyncClient) -> None:
    sweep_id = await sweep_of(shared_client, curve(16), curve(64))

    plan = await plan_of(shared_client, sweep_id)

    larger = next(proposal for proposal in plan["proposals"] if proposal["batch_size"] == 256)
    assert larger["learning_rates"] == pytest.approx([0.1, 0.2, 0.4])


async def test_a_rate_at_the_edge_of_its_grid_is_tried_beyond(shared_client: httpx.AsyncClient) -> None:
    runs = [curve(size, lr=lr) for size in BATCH_SIZES for lr in (0.1, 0.2)]
    sweep_id = await sweep_of(shared_client, *runs)

    plan = await plan_of(shared_client, sweep_id, ratio=100)

    assert [proposal["learning_rates"] for proposal in plan["proposals"]] == [[0.05, 0.2]] * len(BATCH_SIZES)


async def test_an_unknown_sweep_is_not_found(shared_client: httpx.AsyncClient) -> None:
    assert_problem(await shared_client.get(f"/api/v1/sweeps/{uuid4()}/plan"), 404, "sweep-not-found")


def test_of_a_sweep_that_turns_values_are_added_above_its_best_batch() -> None:
    found = answer_to(turning_curves())
    assert isinstance(found.outcome, SweepFit)
    assert found.outcome.turn is not None

    plan = plan_for(found, wanted_ratio=1.05)

    assert plan.proposals
    assert min(one.batch_size for one in plan.proposals) >= found.outcome.turn.best_batch.value


def test_seeds_are_drawn_again_from_the_best_batch_of_a_sweep_that_turns_upwards() -> None:
    found = answer_to(turning_curves(), with_bootstrap=True)

    assert isinstance(found.outcome, SweepFit)
    assert isinstance(found.bootstrap, Bootstrap)
    assert min(one.batch_size for one in found.bootstrap.luck) >= found.outcome.least_batch > 16
    assert found.bootstrap.critical_batch.value < 1.3 * CRITICAL_BATCH
