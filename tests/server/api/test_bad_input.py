"""Hostile input anywhere gets a 4xx that names the field, and never a 500."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from noisescale_server.app import create_app
from noisescale_server.process.settings import Settings
from problems import assert_problem
from stored_runs import resolved, store_run

RUN_ID = "11111111-2222-4333-8444-555555555555"
JSON = {"Content-Type": "application/json"}


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


BAD_RUN_FIELDS = [
    ("project", "null", "project"),
    ("project", '""', "project"),
    ("project", '"  "', "project"),
    ("project", "7", "project"),
    ("project", "true", "project"),
    ("project", '"a\\u0000b"', "project"),
    ("project", '"a\\u202eb"', "project"),
    ("project", '"a\\nb"', "project"),
    ("project", json.dumps("x" * 257), "project"),
    ("task", '["a"]', "task"),
    ("task", '"\\u0000"', "task"),
    ("name", '"\\u001b[31m"', "name"),
    ("tags", '"a"', "tags"),
    ("tags", '["a", "a"]', "tags"),
    ("tags", '["a", ""]', "tags[1]"),
    ("tags", '["\\u0000"]', "tags[0]"),
    ("tags", "[1]", "tags[0]"),
    ("tags", json.dumps([str(n) for n in range(33)]), "tags"),
    ("config", "[]", "config"),
    ("config", '{"a": NaN}', "config"),
    ("config", '{"a": [1, -Infinity]}', "config"),
    ("config", '{"a": 1e999}', "config"),
    ("config", '{"a": "\\u0000"}', "config"),
    ("config", '{"\\u0000": 1}', "config"),
    ("config", nested(9), "config"),
    ("config", nested(1_000), "body"),
    ("config", json.dumps({"a": "x" * 70_000}), "config"),
    ("unit", "null", "unit"),
    ("example", "3", "example"),
    ("units_per_example", "0", "units_per_example"),
    ("units_per_example", "-1", "units_per_example"),
    ("units_per_example", "NaN", "units_per_example"),
    ("units_per_example", "1e999", "units_per_example"),
    ("units_per_example", "true", "units_per_example"),
    ("units_per_example", '"1"', "units_per_example"),
    ("num_devices", "0", "num_devices"),
    ("num_devices", "1.5", "num_devices"),
    ("num_devices", "true", "num_devices"),
    ("num_devices", "9223372036854775808", "num_devices"),
    ("usd_per_device_hour", "-0.01", "usd_per_device_hour"),
    ("usd_per_device_hour", "Infinity", "usd_per_device_hour"),
    ("planned_steps", "9223372036854775808", "planned_steps"),
    ("planned_steps", "0", "planned_steps"),
    ("planned_steps", "false", "planned_steps"),
    ("id", '"x"', "id"),
    ("id", "7", "id"),
    ("surprise", "1", "surprise"),
    ("status", '"finished"', "status"),
]


class TestCreate:
    @pytest.mark.parametrize(("name", "value", "field"), BAD_RUN_FIELDS)
    async def test_a_bad_field_is_named(
        self, shared_client: httpx.AsyncClient, name: str, value: str, field: str
    ) -> None:
        project = "" if name == "project" else '"project": "demo", '

        answer = await shared_client.post("/api/v1/runs", content=f'{{{project}"{name}": {value}}}', headers=JSON)

        assert_problem(answer, 422, "invalid-input", field=field)

    async def test_a_missing_project_is_named(self, shared_client: httpx.AsyncClient) -> None:
        answer = await shared_client.post("/api/v1/runs", content="{}", headers=JSON)

        assert_problem(answer, 422, "invalid-input", field="project")

    async def test_numbers_at_the_limits_are_kept(self, shared_client: httpx.AsyncClient) -> None:
        body = {
            "project": "demo",
            "planned_steps": 2**63 - 1,
            "units_per_example": 5e-324,
            "usd_per_device_hour": 1e308,
        }

        answer = await shared_client.post("/api/v1/runs", json=body)

        assert answer.status_code == 201
        assert {name: answer.json()[name] for name in body} == body

    async def test_text_that_could_be_markup_or_sql_is_kept_as_it_is(self, shared_client: httpx.AsyncClient) -> None:
        name = "<a href='javascript:1'>'; DROP TABLE run; -- %s :x {} \\ 🎲 $\\href{}$"

        answer = await shared_client.post("/api/v1/runs", json={"project": "demo", "name": name})

        assert answer.json()["name"] == name

    @pytest.mark.parametrize("depth", [1, 7])
    async def test_a_config_of_eight_levels_is_kept(self, shared_client: httpx.AsyncClient, depth: int) -> None:
        config = json.loads(nested(depth))

        answer = await shared_client.post("/api/v1/runs", json={"project": "demo", "config": config})

        assert answer.json()["config"] == config


class TestChange:
    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ('{"name": null}', "name"),
            ('{"name": ""}', "name"),
            ('{"name": "a\\u0000"}', "name"),
            ('{"tags": null}', "tags"),
            ('{"tags": [true]}', "tags[0]"),
            ('{"archived": 1}', "archived"),
            ('{"archived": "true"}', "archived"),
            ('{"archived": null}', "archived"),
            ('{"task": " "}', "task"),
            ('{"project": "other"}', "project"),
            ('{"id": "x"}', "id"),
            ("[]", "body"),
            ("", "body"),
        ],
    )
    async def test_a_bad_field_is_named(
        self, shared_client: httpx.AsyncClient, shared_app: FastAPI, body: str, field: str
    ) -> None:
        run_id = await store_run(shared_app)

        answer = await shared_client.patch(f"/api/v1/runs/{run_id}", content=body, headers=JSON)

        assert_problem(answer, 422, "invalid-input", field=field)


class TestList:
    @pytest.mark.parametrize(
        ("query", "field"),
        [
            ("q=%00", "q"),
            ("project=a%00", "project"),
            ("tag=%E2%80%AE", "tag[0]"),
            ("task=" + "x" * 300, "task"),
            ("status=done", "status[0]"),
            ("sort=id", "sort"),
            ("sort=--name", "sort"),
            ("limit=0", "limit"),
            ("limit=501", "limit"),
            ("limit=1e9", "limit"),
            ("limit=9223372036854775808", "limit"),
            ("archived=perhaps", "archived"),
            ("batch_min=nan", "batch_min"),
            ("batch_max=inf", "batch_max"),
            ("batch_max=1e999", "batch_max"),
            ("noise_scale_min=-Infinity", "noise_scale_min"),
            ("batch_min=2&batch_max=1", "batch_min"),
            ("noise_scale_min=2&noise_scale_max=1", "noise_scale_min"),
            ("ids=x", "ids[0]"),
            ("ids=" + RUN_ID + ",", "ids[1]"),
            ("ids=" + ",".join([RUN_ID] * 201), "ids"),
            ("statuss=running", "statuss"),
            ("cursor=%00", "cursor"),
            ("cursor=" + "A" * 3_000, "cursor"),
        ],
    )
    async def test_a_bad_parameter_is_named(self, shared_client: httpx.AsyncClient, query: str, field: str) -> None:
        answer = await shared_client.get(f"/api/v1/runs?{query}")

        assert_problem(answer, 422, "invalid-input", field=field)


HOSTILE = [
    "%00",
    "a%00b",
    "%FF",
    "%ED%A0%80",
    "nan",
    "NaN",
    "inf",
    "-inf",
    "1e999",
    "-1",
    "0",
    "1.5",
    "true",
    "null",
    "[]",
    "{}",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "1e18",
    "5e-324",
    "%27;--",
    "%25",
    "../..",
    "%E2%80%AE",
    "",
    "9" * 5_000,
    "x" * 5_000,
]


HOSTILE_BODIES = (
    *(b"", b"[]", b"null", b"\xff", b'"x"', b"NaN", b"{", b"{}"),
    *(b"[" * 5_000, b'{"\\ud800": 1}', b"1" * 5_000),
)


def _every_operation() -> Iterator[tuple[str, str, dict[str, Any]]]:
    openapi = create_app(Settings(database_url="postgresql://nowhere/none")).openapi()
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


EVERY_OPERATION = tuple(_every_operation())
EVERY_QUERY = [
    (path, parameter["name"])
    for method, path, operation in EVERY_OPERATION
    for parameter in operation.get("parameters", [])
    if method == "GET" and parameter["in"] == "query"
]
EVERY_PATH_WITH_AN_ID = [(method, path) for method, path, _ in EVERY_OPERATION if "{" in path]


def some_quickly(cases: list[tuple[str, str]], between: str, *, every: int = 5) -> list[Any]:
    """Each case with every fifth hostile value, each time from another one on, and slowly with all of them."""
    names = [between.join(case) for case in cases]
    some = [HOSTILE[number % every :: every] for number in range(len(cases))]
    quick = [pytest.param(*case, few, id=name) for case, few, name in zip(cases, some, names, strict=True)]
    whole = [
        pytest.param(*case, HOSTILE, id=f"{name}, all", marks=pytest.mark.slow)
        for case, name in zip(cases, names, strict=True)
    ]
    return quick + whole


EVERY_BODY = [
    pytest.param(method, path, id=f"{method} {path}")
    for method, path, operation in EVERY_OPERATION
    if "requestBody" in operation
]


async def send(client: httpx.AsyncClient, method: str, target: str, body: bytes = b"{}") -> httpx.Response:
    """The answer, having checked that it is no 5xx, and a problem when it is an error."""
    answer = await client.request(
        method, target, content=body if method in {"POST", "PATCH", "PUT"} else None, headers=JSON
    )
    assert answer.status_code < 500, (target[:300], answer.text)
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json", (target[:300], answer.text)
    return answer


@pytest.fixture(scope="module")
async def run_id(shared_app: FastAPI) -> str:
    return str(await store_run(shared_app, **resolved()))


class TestEveryEndpoint:
    @pytest.mark.parametrize(("path", "name", "values"), some_quickly(EVERY_QUERY, "?"))
    async def test_no_query_value_makes_a_500(
        self, shared_client: httpx.AsyncClient, run_id: str, path: str, name: str, values: list[str]
    ) -> None:
        target = path.replace("{run_id}", run_id).replace("{stream_id}", RUN_ID)

        for value in values:
            await send(shared_client, "GET", f"{target}?{name}={value}")

    @pytest.mark.parametrize(("method", "path", "values"), some_quickly(EVERY_PATH_WITH_AN_ID, " "))
    async def test_no_id_in_the_path_makes_a_500(
        self, shared_client: httpx.AsyncClient, method: str, path: str, values: list[str]
    ) -> None:
        for value in values:
            target = path.replace("{run_id}", value or "%20").replace("{stream_id}", value or "%20")

            answer = await send(shared_client, method, target)

            assert answer.status_code in {404, 405, 422}

    @pytest.mark.parametrize(("method", "path"), EVERY_BODY)
    async def test_no_body_makes_a_500(
        self, shared_client: httpx.AsyncClient, run_id: str, method: str, path: str
    ) -> None:
        target = path.replace("{run_id}", run_id).replace("{stream_id}", str(uuid4()))

        for body in HOSTILE_BODIES:
            answer = await send(shared_client, method, target, body)

            assert answer.status_code == 422 or body == b"{}"


class TestTextsInPaths:
    @pytest.mark.parametrize(
        ("method", "path", "field"),
        [
            ("DELETE", "/keys/%00", "key_id"),
            ("POST", "/keys/a%00/rotation", "key_id"),
            ("DELETE", f"/projects/a%00/members/{RUN_ID}", "project"),
            ("PUT", f"/projects/a%E2%80%AE/members/{RUN_ID}", "project"),
        ],
    )
    async def test_a_control_character_is_named(
        self, shared_client: httpx.AsyncClient, method: str, path: str, field: str
    ) -> None:
        answer = await shared_client.request(method, f"/api/v1{path}", json={"role": "viewer"})

        assert_problem(answer, 422, "invalid-input", field=field)


class TestMoments:
    @pytest.mark.parametrize("text", ["0.5", "1790000000", "-1", "1_000"])
    async def test_a_number_is_no_moment(self, shared_client: httpx.AsyncClient, text: str) -> None:
        answer = await shared_client.get("/api/v1/runs", params={"updated_after": text})

        assert_problem(answer, 422, "invalid-input", field="updated_after")


class TestMethods:
    @pytest.mark.parametrize(
        "path",
        ["runs/summary", "runs/sparklines", "runs/recommendations", "runs/changes", "sweeps/critical-batches"],
    )
    @pytest.mark.parametrize("method", ["PATCH", "DELETE"])
    async def test_a_fixed_path_is_no_id(self, shared_client: httpx.AsyncClient, method: str, path: str) -> None:
        answer = await shared_client.request(method, f"/api/v1/{path}")

        assert_problem(answer, 405, "method-not-allowed")
        assert answer.headers["allow"] == ("POST" if path == "runs/changes" else "GET")
