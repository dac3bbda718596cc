"""A stand-in for the REST API: a small real app that answers in the shapes of docs/rest.md, from made-up runs."""

import asyncio
import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse
from starlette.routing import BaseRoute

from fakes_access import add_access_routes
from fakes_advice import FLAGS, recommendation_json
from fakes_comments import FOREIGN, add_comment_routes
from fakes_compare import TASKS, FakeTask, compared_runs_json, comparison_json, model_sizes_json, sized_tasks_json
from fakes_cost import growth_json, leaderboard_json, search_cost_json, submissions_json, time_json
from fakes_laws import forecast_json, learning_rate_json, learning_rates_json, run_forecast_json
from fakes_planner import tradeoff_json
from fakes_reproductions import REPRODUCTIONS
from fakes_runs import (
    RUNS,
    FakeRun,
    groups_json,
    metrics_json,
    run_json,
    series_json,
    streams_json,
)
from fakes_sweeps import (
    SWEEPS,
    FakeSweep,
    critical_batch_json,
    hindsight_json,
    plan_json,
    published_json,
    quality_json,
    sweep_json,
)
from noisescale_server.api.recommendation import recommendation as language_model


class FakeApi:
    """Runs, and what is asked of them; `requests` remembers each call, `failing` makes every answer a `failing_status`,
    503 unless told, `failing_ends` those of paths that end so, `delay_seconds` makes each late."""

    def __init__(self, runs: tuple[FakeRun, ...] = RUNS, sweeps: tuple[FakeSweep, ...] = SWEEPS) -> None:
        self.runs = runs
        self.sweeps = sweeps
        self.tasks: tuple[FakeTask, ...] = TASKS
        self.reproductions: tuple[dict[str, Any], ...] = REPRODUCTIONS
        self.requests: list[Request] = []
        self.failing = False
        self.failing_status = 503
        self.failing_ends: tuple[str, ...] = ()
        self.delay_seconds = 0.0
        self.views: list[dict[str, Any]] = []
        self.comments: list[dict[str, Any]] = [dict(FOREIGN)]
        self.baseline_id: str | None = None
        self.folds: dict[str, dict[str, Any]] = {}
        self.refused_groups: tuple[str, ...] = ()
        self.archived: set[str] = set()
        self.deleted: list[str] = []
        self.tags: dict[str, list[str]] = {}
        self.said: dict[str, dict[str, Any]] = {}
        self.app = FastAPI()
        self.app.state.stand_in = self
        self.app.middleware("http")(self._remember)
        self.app.router.routes.extend(shared_routes())

    def paths(self) -> list[str]:
        return [request.url.path for request in self.requests]

    async def _remember(self, request: Request, call_next: Any) -> Any:
        self.requests.append(request)
        await asyncio.sleep(self.delay_seconds)
        if self.failing or request.url.path.endswith(self.failing_ends):
            if self.failing_status == 503:
                return problem(503, "Service unavailable", "the database does not answer")
            return problem(self.failing_status, "Internal server error", "an unexpected error, logged by the server")
        return await call_next(request)

    def find(self, run_id: str) -> FakeRun | None:
        return next((run for run in self.runs if run.id == run_id), None)

    async def list_runs(
        self,
        q: str = "",
        project: str = "",
        status: list[str] = Query([]),
        archived: bool = False,
        tag: str = "",
        decision: list[str] = Query([]),
        batch_min: float = 0,
        where: list[str] = Query([]),
        sweep: str = "",
        trials: str = "show",
        sort: str = "-updated_at",
        limit: int = 100,
        cursor: str = "",
        *,
        fold: bool = False,
    ) -> Any:
        if any("unknown" in one for one in where):
            return refused("where[0]", "has the unknown field 'unknown': use config. and a key")
        found = [row for row in self.matching(project, status) if q in row["name"]]
        found = [row for row in found if row["archived"] == archived and tag in ("", *row["tags"])]
        found = [row for row in found if not decision or row["decision"]["decision"] in decision]
        found = [row for row in found if row["global_batch"] >= batch_min]
        found = [row for row in found if not sweep or self.folds.get(row["id"], {}).get("id") == sweep]
        found = [row for row in found if trials == "show" or row["id"] not in self.folds]
        num_runs = len(found)
        if fold:
            first = {self.folds[row["id"]]["id"]: row["id"] for row in reversed(found) if row["id"] in self.folds}
            found = [row for row in found if row["id"] not in self.folds or row["id"] in first.values()]
        key = sort.lstrip("-")
        if key in ("name", "last_step", "loss", "global_batch"):
            found.sort(key=lambda row: row[key], reverse=sort.startswith("-"))
        first = int(cursor or 0)
        page = found[first : first + limit]
        after = str(first + limit) if first + limit < len(found) else None
        folds = [{"run_id": row["id"], **self.folds[row["id"]]} for row in page if fold and row["id"] in self.folds]
        return {"runs": page, "folds": folds, "next_cursor": after, "total": len(found), "num_runs": num_runs}

    def matching(self, project: str, status: list[str]) -> list[dict[str, Any]]:
        return [
            self.with_changes(run)
            for run in self.runs
            if project in ("", run.project) and (not status or run.status in status)
        ]

    async def run_groups(self, by: str, project: str = "", status: list[str] = Query([])) -> Any:
        rows = self.matching(project, status)
        of_decision = {row["id"]: row["decision"]["decision"] for row in rows}
        found = [
            of_decision[row["id"]]
            if by == "decision"
            else str(row["config"].get(by.removeprefix("config.")) if "." in by else row[by])
            for row in rows
        ]
        silent = [value for value, row in zip(found, rows, strict=True) if row["status"] == "silent"]
        groups = [
            {"value": value, "num_runs": found.count(value), "num_resolved": 1, "num_silent": silent.count(value),
             "noise_scale": 640.0, "global_batch": 512.0, "loss": 2.9}
            for value in sorted(set(found))
        ]  # fmt: skip
        return {"by": by, "groups": groups}

    def with_changes(self, run: FakeRun) -> dict[str, Any]:
        tags = self.tags.get(run.id, list(run.tags))
        said = self.said.get(run.id, {})
        state = {"archived": run.id in self.archived, "is_baseline": run.id == self.baseline_id}
        return {**run_json(run), **state, "tags": tags, **said}

    async def change_run(self, run_id: str, body: dict[str, Any]) -> Any:
        run = self.find(run_id)
        if run is None:
            return missing(run_id)
        if not body.get("name", "name").strip():
            return refused("name", "must not be blank")
        self.said[run_id] = {**self.said.get(run_id, {}), **body}
        return self.with_changes(run)

    async def change_runs(self, body: dict[str, Any]) -> Any:
        ids = [run_id for run_id in body["ids"] if self.find(run_id)]
        for run in (run for run in self.runs if run.id in ids):
            tags = self.tags.get(run.id, list(run.tags))
            kept = [tag for tag in tags if tag not in body.get("remove_tags", ())]
            self.tags[run.id] = [*kept, *(tag for tag in body.get("add_tags", ()) if tag not in kept)]
        if body.get("archived") is not None:
            self.archived = self.archived | set(ids) if body["archived"] else self.archived - set(ids)
        missing_ids = [run_id for run_id in body["ids"] if run_id not in ids]
        return {"changed": ids, "missing": missing_ids, "too_many_tags": []}

    async def delete_run(self, run_id: str) -> Any:
        self.deleted.append(run_id)
        self.runs = tuple(run for run in self.runs if run.id != run_id)
        return Response(status_code=204)

    async def list_projects(self) -> Any:
        names = sorted({run.project for run in self.runs})
        return {"projects": [{"name": name, "num_runs": len(self.runs), "tasks": ["digits"]} for name in names]}

    async def list_views(self, project: str) -> Any:
        return {"views": sorted(self.views, key=lambda one: one["name"])}

    async def add_view(self, project: str, body: dict[str, Any]) -> Any:
        if any(one["name"] == body["name"] for one in self.views):
            return refused("name", "is that of another view of the project: take another name")
        view_id = f"00000000-0000-4000-a000-{len(self.views):012d}"
        self.views.append({"id": view_id, "author": "Ada", "created_at": "2026-11-20T13:02:40Z", **body})
        return JSONResponse(self.views[-1], 201)

    async def rename_view(self, project: str, view_id: str, body: dict[str, Any]) -> Any:
        self.views = [{**one, **(body if one["id"] == view_id else {})} for one in self.views]
        return next(one for one in self.views if one["id"] == view_id)

    async def delete_view(self, project: str, view_id: str) -> Any:
        self.views = [one for one in self.views if one["id"] != view_id]
        return Response(status_code=204)

    async def read_run(self, run_id: str) -> Any:
        run = self.find(run_id)
        return self.with_changes(run) if run else missing(run_id)

    async def noise_scale(self, run_id: str, request: Request, points: int = 500, to: int | None = None) -> Any:
        run = self.find(run_id)
        if run is None:
            return missing(run_id)
        if (group := request.query_params.get("group")) in self.refused_groups:
            return problem(404, "Group not found", f"no group {group} in this run")
        first = int(request.query_params.get("from", 0))
        last = run.steps - 1 if to is None else min(to, run.steps - 1)
        kind = request.query_params.get("kind", "simple")
        return series_json(run, points=points, first=first, last=last, kind=kind)

    async def sparklines(self, ids: str, points: int = 28, *, details: bool = False) -> Any:
        known = {run_id: run for run_id in ids.split(",") if (run := self.find(run_id))}
        columns = ("step", "value", "low", "high", "global_batch", *(("state", "wall_time") if details else ()))
        found = {}
        for run_id, run in known.items():
            series = series_json(run, points=points, first=0, last=run.steps - 1)
            found[run_id] = {name: series["points"][name] for name in columns}
            if details:
                found[run_id]["events"] = [event for event in series["events"] if event["kind"] != "branch"]
        return {"runs": found}

    async def groups(self, run_id: str, points: int = 60) -> Any:
        run = self.find(run_id)
        return groups_json(run, points) if run else missing(run_id)

    async def metrics(self, run_id: str) -> Any:
        run = self.find(run_id)
        return metrics_json(run) if run else missing(run_id)

    async def streams(self, run_id: str) -> Any:
        run = self.find(run_id)
        return streams_json(run) if run else missing(run_id)

    async def recommendation(self, request: Request, run_id: str, preference: float = 0.5) -> Any:
        run, query = self.find(run_id), request.query_params
        if run is None:
            return missing(run_id)
        if float(query.get("max_hours", 1)) <= 0:
            return refused("max_hours", "Input should be greater than 0")
        return Response(FLAGS) if "format" in query else recommendation_json(run, preference, query)

    async def recommendations(self, ids: str, preference: float = 0.5) -> Any:
        known = [run for run_id in ids.split(",") if (run := self.find(run_id)) is not None]
        return {"recommendations": [recommendation_json(run, preference, {}) for run in known]}

    async def run_forecast(self, run_id: str) -> Any:
        run = self.find(run_id)
        return run_forecast_json(run) if run else missing(run_id)

    async def learning_rate(self, run_id: str) -> Any:
        run = self.find(run_id)
        return learning_rate_json(run) if run else missing(run_id)

    async def time_of_run(self, run_id: str) -> Any:
        return time_json() if self.find(run_id) else missing(run_id)

    async def search_cost(self, sweep_id: str) -> Any:
        return search_cost_json() if self.find_sweep(sweep_id) else missing_sweep(sweep_id)

    async def trade_off(self, request: Request) -> Any:
        query = request.query_params
        if float(query.get("max_hours", 1)) <= 0:
            return refused("max_hours", "Input should be greater than 1e-09")
        if query.get("task") == "young":
            return refused("task", "nothing is known of its critical batch: no run is resolved yet.")
        if "run_id" in query and self.find(query["run_id"]) is None:
            return missing(query["run_id"])
        return tradeoff_json(query)

    def find_sweep(self, sweep_id: str) -> FakeSweep | None:
        return next((sweep for sweep in self.sweeps if sweep.id == sweep_id), None)

    async def list_sweeps(self, limit: int = 100, cursor: str = "", run_id: str = "", kind: str = "") -> Any:
        rows = [
            row for row in map(sweep_json, self.sweeps) if run_id in ("", row["run_id"]) and kind in ("", row["kind"])
        ]
        first = int(cursor or 0)
        after = str(first + limit) if first + limit < len(rows) else None
        return {"sweeps": rows[first : first + limit], "next_cursor": after, "total": len(rows)}

    async def read_sweep(self, sweep_id: str) -> Any:
        sweep = self.find_sweep(sweep_id)
        return sweep_json(sweep, with_runs=True) if sweep else missing_sweep(sweep_id)

    async def rename_sweep(self, sweep_id: str, body: dict[str, Any]) -> Any:
        sweep = self.find_sweep(sweep_id)
        return sweep_json(sweep) | {"name": body["name"]} if sweep else missing_sweep(sweep_id)

    async def critical_batch(self, sweep_id: str, target: list[float] = Query([])) -> Any:
        sweep = self.find_sweep(sweep_id)
        if sweep is None:
            return missing_sweep(sweep_id)
        return critical_batch_json(sweep, target)

    async def critical_batches(self, ids: str) -> Any:
        known = [sweep for sweep in map(self.find_sweep, ids.split(",")) if sweep is not None and sweep.ladder]
        return {"sweeps": [critical_batch_json(sweep, [min(sweep.ladder)]) for sweep in known]}

    async def sweep_plan(self, sweep_id: str, target: float, ratio: float = 1.5) -> Any:
        sweep = self.find_sweep(sweep_id)
        return plan_json(sweep, target, ratio) if sweep else missing_sweep(sweep_id)

    async def sweep_quality(self, sweep_id: str) -> Any:
        sweep = self.find_sweep(sweep_id)
        return quality_json(sweep) if sweep else missing_sweep(sweep_id)

    async def learning_rates(self, sweep_id: str, target: float) -> Any:
        sweep = self.find_sweep(sweep_id)
        return learning_rates_json(sweep, target) if sweep else missing_sweep(sweep_id)

    async def sweep_forecast(self, sweep_id: str) -> Any:
        sweep = self.find_sweep(sweep_id)
        return forecast_json(sweep) if sweep else missing_sweep(sweep_id)

    async def list_reproductions(self, limit: int = 100) -> Any:
        rows = [{name: row[name] for name in row if name not in ("claim", "advice")} for row in self.reproductions]
        return {"reproductions": rows[:limit], "next_cursor": None, "total": len(rows)}

    async def read_reproduction(self, reproduction_id: str) -> Any:
        known = (row for row in self.reproductions if row["id"] == reproduction_id)
        missing_one = problem(404, "Reproduction not found", f"no reproduction has the id {reproduction_id}")
        return next(known, missing_one)

    async def comparison(self) -> Any:
        return comparison_json(self.tasks)

    async def sized_tasks(self, size_key: str = "num_parameters") -> Any:
        return sized_tasks_json(size_key)

    async def model_sizes(self, project: str, task: str, size_key: str = "num_parameters") -> Any:
        return model_sizes_json(size_key)

    async def compared_runs(self, run: list[str] = Query([]), x: str = "step", points: int = 200) -> Any:
        found = [(run_id, self.find(run_id)) for run_id in run]
        known = [one for _, one in found if one is not None]
        return compared_runs_json(known, [run_id for run_id, one in found if one is None], x, points)


@cache
def shared_routes() -> tuple[BaseRoute, ...]:
    """The routes of all stand-ins: FastAPI takes longer to make them than most tests take to ask them."""
    app = FastAPI(openapi_url=None)
    add_access_routes(app)
    add_comment_routes(app)
    app.get("/api/v1/runs")(answered_by(FakeApi.list_runs))
    app.post("/api/v1/runs/changes")(answered_by(FakeApi.change_runs))
    app.delete("/api/v1/runs/{run_id}")(answered_by(FakeApi.delete_run))
    app.get("/api/v1/projects")(answered_by(FakeApi.list_projects))
    app.get("/api/v1/projects/{project}/views")(answered_by(FakeApi.list_views))
    app.post("/api/v1/projects/{project}/views")(answered_by(FakeApi.add_view))
    app.patch("/api/v1/projects/{project}/views/{view_id}")(answered_by(FakeApi.rename_view))
    app.delete("/api/v1/projects/{project}/views/{view_id}")(answered_by(FakeApi.delete_view))
    app.get("/api/v1/runs/summary")(answered_by(FakeApi.run_groups))
    app.get("/api/v1/runs/sparklines")(answered_by(FakeApi.sparklines))
    app.get("/api/v1/runs/recommendations")(answered_by(FakeApi.recommendations))
    app.get("/api/v1/runs/{run_id}")(answered_by(FakeApi.read_run))
    app.patch("/api/v1/runs/{run_id}")(answered_by(FakeApi.change_run))
    for name, answer in (
        ("noise-scale", FakeApi.noise_scale),
        ("groups", FakeApi.groups),
        ("metrics", FakeApi.metrics),
        ("streams", FakeApi.streams),
        ("recommendation", FakeApi.recommendation),
        ("forecast", FakeApi.run_forecast),
        ("learning-rate", FakeApi.learning_rate),
        ("time", FakeApi.time_of_run),
    ):
        app.get(f"/api/v1/runs/{{run_id}}/{name}")(answered_by(answer))
    app.get("/api/v1/sweeps")(answered_by(FakeApi.list_sweeps))
    app.get("/api/v1/sweeps/critical-batches")(answered_by(FakeApi.critical_batches))
    app.get("/api/v1/sweeps/{sweep_id}")(answered_by(FakeApi.read_sweep))
    app.patch("/api/v1/sweeps/{sweep_id}")(answered_by(FakeApi.rename_sweep))
    app.get("/api/v1/sweeps/{sweep_id}/critical-batch")(answered_by(FakeApi.critical_batch))
    app.get("/api/v1/sweeps/{sweep_id}/plan")(answered_by(FakeApi.sweep_plan))
    app.get("/api/v1/sweeps/{sweep_id}/quality")(answered_by(FakeApi.sweep_quality))
    app.get("/api/v1/sweeps/{sweep_id}/search-cost")(answered_by(FakeApi.search_cost))
    app.get("/api/v1/sweeps/{sweep_id}/learning-rates")(answered_by(FakeApi.learning_rates))
    app.get("/api/v1/sweeps/{sweep_id}/forecast")(answered_by(FakeApi.sweep_forecast))
    app.get("/api/v1/published-sweeps")(published_json)
    app.get("/api/v1/hindsight")(hindsight_json)
    app.include_router(language_model.router, prefix="/api/v1")  # the server's own: it rests on no data
    app.get("/api/v1/cost/submissions")(submissions_json)
    app.get("/api/v1/cost/leaderboard")(leaderboard_json)
    app.get("/api/v1/cost/growth")(growth_json)
    app.get("/api/v1/reproductions")(answered_by(FakeApi.list_reproductions))
    app.get("/api/v1/reproductions/{reproduction_id}")(answered_by(FakeApi.read_reproduction))
    app.get("/api/v1/tradeoff")(answered_by(FakeApi.trade_off))
    app.get("/api/v1/comparison")(answered_by(FakeApi.comparison))
    app.get("/api/v1/comparison/sized-tasks")(answered_by(FakeApi.sized_tasks))
    app.get("/api/v1/comparison/model-size")(answered_by(FakeApi.model_sizes))
    app.get("/api/v1/comparison/runs")(answered_by(FakeApi.compared_runs))
    return tuple(app.router.routes)


def answered_by(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method as a route of the stand-in whose app is asked."""

    async def answer(**given: Any) -> Any:
        request = given["request"]
        return await method(request.app.state.stand_in, **(given if "request" in own else own_of(given)))

    def own_of(given: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in given.items() if name != "request"}

    _, *parameters = inspect.signature(method).parameters.values()
    own = {one.name: one.replace(kind=one.KEYWORD_ONLY) for one in parameters}
    asked = inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY, annotation=Request)
    answer.__signature__ = inspect.Signature([asked, *(one for one in own.values() if one.name != "request")])  # type: ignore[attr-defined]
    return answer


def problem(status: int, title: str, detail: str) -> JSONResponse:
    body = {"type": "/errors/fake", "title": title, "status": status, "detail": detail, "errors": []}
    return JSONResponse(body, status, media_type="application/problem+json")


def missing(run_id: str) -> JSONResponse:
    return problem(404, "Run not found", f"no run {run_id}: it was deleted or never existed")


def refused(field: str, message: str) -> JSONResponse:
    body = {
        "title": "Input cannot be accepted",
        "detail": f"{field}: {message}",
        "errors": [{"field": field, "message": message, "value": None}],
    }
    return JSONResponse(body, 422, media_type="application/problem+json")


def missing_sweep(sweep_id: str) -> JSONResponse:
    return problem(404, "Sweep not found", f"no sweep {sweep_id}: it was deleted or never existed")


def main() -> None:
    """Serve the dashboard on these runs at http://127.0.0.1:8311, to look at it without a server."""
    import httpx
    import uvicorn

    from noisescale_dashboard.api.client import ApiClient
    from noisescale_dashboard.app import create_app
    from noisescale_dashboard.serving.settings import DashboardSettings

    client = ApiClient(base_url="http://api", transport=httpx.ASGITransport(app=FakeApi().app))
    uvicorn.run(create_app(DashboardSettings(), client), host="127.0.0.1", port=8311, log_level="warning")


if __name__ == "__main__":
    main()
