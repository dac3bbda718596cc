"""GET /api/v1/runs?fold=true: the trials of a sweep stand behind one row, wherever the list is sorted."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import httpx
from fastapi import FastAPI

from stored_runs import names, names_of_all_pages, resolved, store_run
from stored_sweeps import store_sweep

SUMMARY = "/api/v1/runs/summary"


async def three_trials_and_two_runs(app: FastAPI, client: httpx.AsyncClient) -> UUID:
    trials = {
        await store_run(
            app, name=f"b{batch}", **resolved(500, low=400, high=600, batch=float(batch)), finish_status="finished"
        ): float(batch)
        for batch in (16, 64, 4096)
    }
    await store_run(app, name="a run", **resolved(500, low=400, high=600, batch=400))
    await store_run(app, name="z run", **resolved(500, low=400, high=600, batch=2000))
    return await store_sweep(client, "batches of digits", trials)


async def test_trials_of_a_sweep_are_one_row_that_says_what_stands_behind_it(
    client: httpx.AsyncClient, app: FastAPI
) -> None:
    sweep_id = await three_trials_and_two_runs(app, client)

    page = await client.get("/api/v1/runs", params={"fold": True, "sort": "name"})

    assert names(page) == ["a run", "b16", "z run"]
    found = page.json()
    assert (found["total"], found["num_runs"]) == (3, 5)
    held = {"num_runs": 3, "batch_low": 16, "batch_high": 4096, "loss": 0.31}
    sweep = {"kind": "sweep", "id": str(sweep_id), "name": "batches of digits"}
    assert found["folds"] == [{"run_id": found["runs"][1]["id"], **sweep, **held}]


async def test_a_folded_list_is_the_same_page_by_page(client: httpx.AsyncClient, app: FastAPI) -> None:
    await three_trials_and_two_runs(app, client)

    for sort, expected in {"-name": ["z run", "b64", "a run"], "-global_batch": ["b4096", "z run", "a run"]}.items():
        assert await names_of_all_pages(client, limit=1, fold=True, sort=sort) == expected


async def test_trials_come_last_where_the_list_goes_by_what_a_change_would_bring(
    client: httpx.AsyncClient, app: FastAPI
) -> None:
    await three_trials_and_two_runs(app, client)

    assert (await names_of_all_pages(client, limit=2, sort="-misfit"))[0] == "b16"
    folded = await names_of_all_pages(client, limit=2, fold=True, sort="-misfit")
    assert (folded[:2], len(folded)) == (["z run", "a run"], 3)


async def test_a_sweep_is_unfolded_and_trials_are_hidden(client: httpx.AsyncClient, app: FastAPI) -> None:
    sweep_id = await three_trials_and_two_runs(app, client)

    unfolded = await client.get("/api/v1/runs", params={"sweep": str(sweep_id), "sort": "global_batch"})
    hidden = await client.get("/api/v1/runs", params={"trials": "hide", "sort": "name"})

    assert names(unfolded) == ["b16", "b64", "b4096"]
    assert names(hidden) == ["a run", "z run"]
    assert (hidden.json()["total"], hidden.json()["folds"]) == (2, [])


async def test_what_reproduce_trains_is_folded_by_its_task(client: httpx.AsyncClient, app: FastAPI) -> None:
    for task in ("digits", "digits", "iris"):
        await store_run(app, project="reproduce", task=task, tags=["reproduce"])
    await store_run(app, project="reproduce", task="digits", name="mine")

    page = (await client.get("/api/v1/runs", params={"fold": True})).json()

    assert {(fold["kind"], fold["id"], fold["name"], fold["num_runs"]) for fold in page["folds"]} == {
        ("reproduction", None, "digits", 2),
        ("reproduction", None, "iris", 1),
    }
    assert page["total"] == 3


async def test_a_run_in_two_sweeps_stands_behind_the_one_that_had_it_first(
    client: httpx.AsyncClient, app: FastAPI
) -> None:
    run_id = await store_run(app, **resolved())
    first = await store_sweep(client, "first", {run_id: 250})
    await store_sweep(client, "second", {run_id: 250})

    page = (await client.get("/api/v1/runs", params={"fold": True})).json()

    assert [(fold["id"], fold["num_runs"]) for fold in page["folds"]] == [(str(first), 1)]
    assert page["total"] == 1


async def test_a_page_behind_the_last_row_is_empty(client: httpx.AsyncClient, app: FastAPI) -> None:
    await three_trials_and_two_runs(app, client)
    page = (await client.get("/api/v1/runs", params={"fold": True, "sort": "name", "limit": 2})).json()

    last = (
        await client.get("/api/v1/runs", params={"fold": True, "sort": "name", "cursor": page["next_cursor"]})
    ).json()

    assert [run["name"] for run in last["runs"]] == ["z run"]
    assert last["next_cursor"] is None


async def test_runs_are_counted_by_decision_and_by_status_in_one_answer_each(
    client: httpx.AsyncClient, app: FastAPI
) -> None:
    for decision, finished in (("increase", None), ("increase", "finished"), ("keep", "failed"), (None, None)):
        await store_run(app, decision=decision, finish_status=finished)

    by_decision = (await client.get(SUMMARY, params={"by": "decision"})).json()["groups"]
    by_status = (await client.get(SUMMARY, params={"by": "status"})).json()["groups"]

    assert {group["value"]: group["num_runs"] for group in by_decision} == {
        "increase": 2,
        "keep": 1,
        "insufficient_evidence": 1,
    }
    assert {group["value"]: group["num_runs"] for group in by_status} == {"running": 2, "finished": 1, "failed": 1}


async def test_groups_say_how_many_of_their_runs_are_silent(client: httpx.AsyncClient, app: FastAPI) -> None:
    await store_run(app, task="a", updated_at=datetime.now(UTC) - timedelta(minutes=2))
    await store_run(app, task="a")
    await store_run(app, task="a", updated_at=datetime.now(UTC) - timedelta(hours=2))

    groups = (await client.get(SUMMARY, params={"by": "task"})).json()["groups"]

    assert [(group["num_runs"], group["num_silent"]) for group in groups] == [(3, 1)]


async def test_runs_are_sorted_by_what_a_change_would_save(client: httpx.AsyncClient, app: FastAPI) -> None:
    for name, decision, saving in (
        ("a", "increase", 0.1),
        ("b", "decrease", 0.4),
        ("c", "keep", 0.9),
        ("d", None, None),
    ):
        await store_run(app, name=name, decision=decision, decision_saving=saving)

    assert (await names_of_all_pages(client, limit=1, sort="-saving"))[:2] == ["b", "a"]
