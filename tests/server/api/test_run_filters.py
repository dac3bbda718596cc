"""GET /api/v1/runs: each filter lets through what it says."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI

from problems import assert_problem
from stored_runs import names, resolved, store_run


@pytest.fixture(scope="module")
async def runs(shared_app: FastAPI) -> dict[str, UUID]:
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    small = resolved(100.0, low=90, high=110, batch=32.0)
    large = resolved(900.0, low=800, high=999, batch=512.0)
    return {
        "a": await store_run(shared_app, name="a", tags=["x", "y"], **small),
        "b": await store_run(shared_app, name="b_50%", tags=["x"], **large),
        "c": await store_run(shared_app, name="c", project="other", task="text", updated_at=long_ago),
        "d": await store_run(shared_app, name="d", archived=True, finish_status="finished"),
    }


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["a", "b_50%", "c"]),
        ("archived=true", ["d"]),
        ("project=demo", ["a", "b_50%"]),
        ("project=nothing", []),
        ("task=text", ["c"]),
        ("project=demo&task=text", []),
        ("status=crashed", ["c"]),
        ("status=running&status=crashed", ["a", "b_50%", "c"]),
        ("status=finished&archived=true", ["d"]),
        ("tag=x", ["a", "b_50%"]),
        ("tag=x&tag=y", ["a"]),
        ("q=B_5", ["b_50%"]),
        ("q=%25", ["b_50%"]),
        ("q=_", ["b_50%"]),
        ("batch_min=32&batch_max=32", ["a"]),
        ("batch_min=33", ["b_50%"]),
        ("noise_scale_max=100", ["a"]),
        ("noise_scale_min=100.5&noise_scale_max=1e6", ["b_50%"]),
    ],
)
async def test_each_filter_lets_through_what_it_says(
    shared_client: httpx.AsyncClient, runs: dict[str, UUID], query: str, found: list[str]
) -> None:
    page = await shared_client.get(f"/api/v1/runs?sort=name&{query}")

    assert names(page) == found
    assert page.json()["total"] == len(found)


async def test_ids_choose_runs(shared_client: httpx.AsyncClient, runs: dict[str, UUID]) -> None:
    page = await shared_client.get("/api/v1/runs", params={"ids": f"{runs['c']},{runs['a']},{uuid4()}", "sort": "name"})

    assert names(page) == ["a", "c"]


@pytest.mark.parametrize("length", [6, 8, 20, 36])
async def test_the_beginning_of_an_id_finds_its_run_as_a_part_of_the_name_does(
    shared_client: httpx.AsyncClient, runs: dict[str, UUID], length: int
) -> None:
    page = await shared_client.get(f"/api/v1/runs?q={str(runs['b'])[:length].upper()}")

    assert names(page) == ["b_50%"]


async def test_fewer_characters_of_an_id_are_looked_for_in_names_alone(
    shared_client: httpx.AsyncClient, runs: dict[str, UUID]
) -> None:
    page = await shared_client.get(f"/api/v1/runs?q={str(runs['b'])[:5]}")

    assert names(page) == []


@pytest.fixture(scope="module")
async def configured(shared_app: FastAPI) -> None:
    configs: dict[str, dict[str, object]] = {
        "adamw": {"lr": 0.1, "optimizer": "adamw", "deep": True},
        "lion": {"lr": "3e-4", "optimizer": "lion", "odd=key": "a < b"},
        "plain": {"lr": None, "note": '"quoted"'},
    }
    for name, config in configs.items():
        await store_run(shared_app, project="conditions", task="text", name=name, config=config, **resolved())
    await store_run(shared_app, project="conditions", name="large", config={"lr": 1e300}, num_devices=8)


class TestConditions:
    """`where`: a field, a comparison and a value."""

    @pytest.mark.parametrize(
        ("where", "found"),
        [
            (["config.lr < 0.1"], ["lion"]),
            (["config.lr <= 0.1"], ["adamw", "lion"]),
            (["config.lr>0.1"], ["large"]),
            (["config.lr = 1e-1"], ["adamw"]),
            (["config.lr = 0.0003"], ["lion"]),
            (["config.lr != 0.1"], ["large", "lion", "plain"]),
            (["config.lr = null"], ["plain"]),
            (["config.lr != null"], ["adamw", "large", "lion"]),
            (["config.optimizer = adamw"], ["adamw"]),
            (["config.optimizer = adamw", "config.deep = true"], ["adamw"]),
            (["config.deep = false"], []),
            (['"config.odd=key" = a < b'], ["lion"]),
            (['config.note = "\\"quoted\\""'], ["plain"]),
            (["task = text", "config.lr >= 0.1"], ["adamw"]),
            (["devices = 8"], ["large"]),
            (["lr = 0.1", "batch < 251"], ["adamw", "lion", "plain"]),
            (["config.nothing > 1"], []),
        ],
    )
    async def test_a_condition_lets_through_what_it_says(
        self, shared_client: httpx.AsyncClient, configured: None, where: list[str], found: list[str]
    ) -> None:
        page = await shared_client.get("/api/v1/runs", params={"project": "conditions", "sort": "name", "where": where})

        assert names(page) == found

    @pytest.mark.parametrize(
        ("where", "way_out"),
        [
            ("config.lr", "such as config.lr < 0.1"),
            ("colour = red", "use one of project, task"),
            ("config. = 1", "use one of project, task"),
            ("config.optimizer < adamw", "give a number"),
            ("devices = many", "give a number"),
            ("config.lr = nan", None),
            ('config.lr = "open', "close it"),
            ("config.lr < 1e9999", "give a number"),
            ('config.note = "\\u0000"', "leave it out"),
            ('"config.\\ud800" = 1', "leave it out"),
        ],
    )
    async def test_what_is_no_condition_is_refused_with_the_way_out(
        self, shared_client: httpx.AsyncClient, where: str, way_out: str | None
    ) -> None:
        answer = await shared_client.get("/api/v1/runs", params={"where": ["task = text", where]})

        if way_out is None:
            assert names(answer) == []
            return
        assert_problem(answer, 422, "invalid-input", field="where[1]")
        assert way_out in answer.json()["errors"][0]["message"]
        assert answer.json()["errors"][0]["value"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"pattern": "^b.*%$"}, ["b_50%"]),
        ({"pattern": "^(A|c)$"}, ["a", "c"]),
        ({"without": ["B_"]}, ["a", "c"]),
        ({"without": ["B_", "c"]}, ["a"]),
        ({"q": "b", "without": ["50"]}, []),
    ],
)
async def test_names_are_searched_by_pattern_and_by_what_they_have_not(
    shared_client: httpx.AsyncClient, runs: dict[str, UUID], query: dict[str, object], found: list[str]
) -> None:
    page = await shared_client.get(
        "/api/v1/runs", params={"sort": "name", "ids": ",".join(map(str, runs.values())), **query}
    )

    assert names(page) == found


@pytest.mark.parametrize("path", ["/api/v1/runs", "/api/v1/runs/summary?by=task"])
async def test_an_open_bracket_is_no_pattern(shared_client: httpx.AsyncClient, path: str) -> None:
    answer = await shared_client.get(path, params={"pattern": "run-("} | ({"by": "task"} if "by" in path else {}))

    assert_problem(answer, 422, "invalid-input", field="pattern")
    assert "search with q" in answer.json()["errors"][0]["message"]
