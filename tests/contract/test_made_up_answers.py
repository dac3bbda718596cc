"""What dashboard tests take for answers of the API has the fields and types of the API's own description, no other."""

from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema_rs
import pytest
from fastapi.routing import APIRoute

from fakes_api import FakeApi
from noisescale_server.app import create_app
from noisescale_server.process.settings import Settings

API = "/api/v1"


def asked() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every GET that the stand-in knows: path of the description, path, query."""
    api = FakeApi()
    runs, sweeps = ",".join(run.id for run in api.runs), ",".join(sweep.id for sweep in api.sweeps)
    for path, query in (
        ("/runs", {}),
        ("/projects", {}),
        ("/runs/summary", {"by": "task"}),
        ("/runs/sparklines", {"ids": runs}),
        ("/runs/sparklines", {"ids": runs, "details": True}),
        ("/runs/recommendations", {"ids": runs}),
        ("/sweeps", {}),
        ("/sweeps/critical-batches", {"ids": sweeps}),
        ("/published-sweeps", {}),
        ("/hindsight", {}),
        ("/cost/submissions", {"task": "ImageNet"}),
        ("/cost/leaderboard", {"target": 0.9, "metric": "accuracy", "goal": "max"}),
        ("/cost/growth", {}),
        ("/server", {}),
        ("/reproductions", {}),
        ("/tradeoff", {}),
        ("/tradeoff", {"run_id": api.runs[0].id, "num_devices": 8, "max_hours": 2}),
        ("/comparison", {}),
        ("/comparison/sized-tasks", {}),
        ("/comparison/model-size", {"project": "demo", "task": "digits"}),
        ("/comparison/runs", {"run": [run.id for run in api.runs]}),
        ("/me", {}),
        ("/keys", {}),
        ("/people", {}),
        ("/audit", {}),
    ):
        yield path, path, query
    for name in (
        "defaults",
        "retention",
        "public",
        "baseline",
        "views",
        "alerts/rules",
        "alerts/receivers",
        "alerts/events",
    ):
        yield f"/projects/{{project}}/{name}", f"/projects/vision/{name}", {}
    for run in api.runs:
        names = (
            "",
            "/noise-scale",
            "/groups",
            "/metrics",
            "/streams",
            "/links",
            "/comments",
            "/recommendation",
            "/forecast",
            "/learning-rate",
            "/time",
        )
        for name in names:
            yield f"/runs/{{run_id}}{name}", f"/runs/{run.id}{name}", {}
        yield "/runs/{run_id}/recommendation", f"/runs/{run.id}/recommendation", {"num_devices": 8}
    for sweep in api.sweeps:
        for name in ("", "/quality", "/forecast", "/search-cost"):
            yield f"/sweeps/{{sweep_id}}{name}", f"/sweeps/{sweep.id}{name}", {}
        for name in ("/critical-batch", "/plan", "/learning-rates") if sweep.ladder else ():
            yield f"/sweeps/{{sweep_id}}{name}", f"/sweeps/{sweep.id}{name}", {"target": min(sweep.ladder)}
    for one in api.reproductions:
        yield "/reproductions/{reproduction_id}", f"/reproductions/{one['id']}", {}


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    """The API's own, in which an object may leave a field out but has no other, save the one of a newer server."""
    found = create_app(Settings(database_url="postgresql://nowhere/none")).openapi()
    for schema in found["components"]["schemas"].values():
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
            schema["properties"]["of_the_future"] = {}
            schema.pop("required", None)
    return found


def test_every_get_of_the_stand_in_is_asked() -> None:
    known = {route.path for route in FakeApi().app.routes if isinstance(route, APIRoute) and "GET" in route.methods}

    assert {f"{API}{template}" for template, _, _ in asked()} == known


@pytest.mark.thorough
async def test_made_up_answers_are_what_the_api_describes(description: dict[str, Any]) -> None:
    transport = httpx.ASGITransport(app=FakeApi().app)
    misfits: dict[str, str] = {}
    async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
        for template, path, query in asked():
            answer = await client.get(f"{API}{path}", params=query)
            assert answer.status_code == 200, (path, answer.text)
            misfits |= dict(misfit(description, template, answer.json()))

    assert not misfits, "\n".join(f"{where}: {why}" for where, why in misfits.items())


def misfit(description: dict[str, Any], template: str, answer: Any) -> Iterator[tuple[str, str]]:
    """Where the answer is not what the description says of this path, and why, each place once."""
    content = description["paths"][f"{API}{template}"]["get"]["responses"]["200"]["content"]
    schema = {"components": description["components"], **content["application/json"]["schema"]}
    for error in jsonschema_rs.Draft202012Validator(schema).iter_errors(answer):
        where = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path]
        yield f"{template}{''.join(part if part[0] == '.' else '[]' for part in where)}", error.message[:300]
