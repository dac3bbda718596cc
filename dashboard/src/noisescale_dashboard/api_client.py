"""Answers of the REST API as dataclasses. The only file of the dashboard that speaks HTTP."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx
import orjson

from noisescale_dashboard import (
    access_answers,
    advice,
    answers,
    compare_answers,
    law_answers,
    outages,
    planner_answers,
    reproduction_answers,
    sweep_answers,
)

FORWARDED_HEADERS = ("authorization", "cookie", "origin", "sec-fetch-site", "host")
API = "/api/v1"
PREFERENCES = (0.001, 0.999)
"""The ends themselves would ask for a batch of nothing or of everything."""
BALANCED = 0.5
"""Where the slider stands before anybody moves it."""

SPARKLINES_AT_ONCE = 20
"""Some 30 ms of the server where none of them is known yet."""

STATED_PRICES = ("examples_per_step", "usd_per_hour_sooner", "fixed_hardware")
"""What says a step's worth instead of the preference; the API refuses two at once."""


@dataclass(eq=False)
class ApiProblem(Exception):
    """The API refused or did not answer; `status` is None when there was no answer."""

    request: str
    status: int | None
    title: str
    detail: str
    errors: tuple[tuple[str, str], ...] = ()
    """Field and message of what was refused."""

    @property
    def is_missing(self) -> bool:
        """Whether the thing asked for does not exist, or not for this visitor."""
        return self.status == 404


Query = Mapping[str, str | int | float | bool | list[str] | None]


class ApiClient:
    """Asks the API on behalf of one visitor at a time: `visitor` is the headers that came with the call."""

    def __init__(
        self, *, base_url: str, transport: httpx.AsyncBaseTransport | None = None, timeout_seconds: float = 10.0
    ) -> None:
        # to compress for a reader in the same process would be work for nothing
        headers = {"Accept-Encoding": "identity"} if transport is not None else None
        self._http = httpx.AsyncClient(base_url=base_url, transport=transport, timeout=timeout_seconds, headers=headers)
        self._being_read: dict[tuple[object, ...], asyncio.Task[httpx.Response]] = {}

    async def ready(self, visitor: Mapping[str, str]) -> None:
        """Nothing, where the API can answer."""
        await self._read(visitor, "/readyz")

    async def runs(self, visitor: Mapping[str, str], query: Query) -> answers.RunPage:
        """One page of runs, filtered and sorted by the server."""
        return answers.run_page(await self._get(visitor, f"{API}/runs", query))

    async def run_groups(self, visitor: Mapping[str, str], query: Query) -> tuple[answers.RunGroup, ...]:
        """Runs grouped by what `by` names, largest group first."""
        return answers.run_groups(await self._get(visitor, f"{API}/runs/summary", query))

    async def change_runs(
        self, visitor: Mapping[str, str], run_ids: Sequence[str], **changes: Any
    ) -> answers.ChangedRuns:
        """Tag or archive runs together: `archived`, `add_tags`, `remove_tags`."""
        body = {"ids": list(run_ids), **changes}
        return answers.changed_runs(await self._send("POST", visitor, f"{API}/runs/changes", body))

    async def change_run(self, visitor: Mapping[str, str], run_id: str, **changes: Any) -> answers.Run:
        """The run after the changes of `name`, `tags` and `remarks`."""
        return answers.run(await self._send("PATCH", visitor, _run_path(run_id), changes))

    async def delete_run(self, visitor: Mapping[str, str], run_id: str) -> None:
        """Delete a run with all its data."""
        await self._send("DELETE", visitor, _run_path(run_id), None)

    async def projects(self, visitor: Mapping[str, str]) -> tuple[answers.Project, ...]:
        """All projects the visitor may see."""
        return answers.projects(await self._get(visitor, f"{API}/projects"))

    async def run(self, visitor: Mapping[str, str], run_id: str) -> answers.Run:
        """One run."""
        return answers.run(await self._get(visitor, _run_path(run_id)))

    async def noise_scale(
        self, visitor: Mapping[str, str], run_id: str, query: Query | None = None
    ) -> answers.NoiseScaleSeries:
        """The noise scale over training."""
        return answers.noise_scale_series(await self._get(visitor, f"{_run_path(run_id)}/noise-scale", query))

    async def groups(
        self, visitor: Mapping[str, str], run_id: str, query: Query | None = None
    ) -> tuple[answers.Group, ...]:
        """The noise scale of each layer, in network order."""
        return answers.groups(await self._get(visitor, f"{_run_path(run_id)}/groups", query))

    async def metrics(
        self, visitor: Mapping[str, str], run_id: str, query: Query | None = None
    ) -> tuple[answers.Metric, ...]:
        """What was logged beside the gradients: evaluation loss, accuracy, score."""
        return answers.metrics(await self._get(visitor, f"{_run_path(run_id)}/metrics", query))

    async def streams(self, visitor: Mapping[str, str], run_id: str) -> tuple[answers.Stream, ...]:
        """The processes that logged into the run, with what was stored and lost."""
        return answers.streams(await self._get(visitor, f"{_run_path(run_id)}/streams"))

    async def recommendation(
        self, visitor: Mapping[str, str], run_id: str, preference: float, limits: Query | None = None
    ) -> advice.Recommendation:
        """Which batch size to use at a preference from 0 (fewest examples) to 1 (fewest steps), inside limits."""
        asked = _question(preference, limits or {})
        return advice.recommendation(await self._get(visitor, f"{_run_path(run_id)}/recommendation", asked))

    async def recommendations(
        self, visitor: Mapping[str, str], run_ids: Sequence[str], preference: float
    ) -> dict[str, advice.Recommendation]:
        """By id, those of at most 20 runs at a preference; runs that are gone are left out."""
        asked = {"ids": ",".join(run_ids), **_question(preference, {})}
        found = await self._get(visitor, f"{API}/runs/recommendations", asked)
        return {one["run_id"]: advice.recommendation(one) for one in found["recommendations"]}

    async def schedule_text(
        self, visitor: Mapping[str, str], run_id: str, trainer: str, preference: float, limits: Query | None = None
    ) -> str:
        """The schedule of the same recommendation as a trainer takes it."""
        asked = {**_question(preference, limits or {}), "format": trainer}
        return (await self._read(visitor, f"{_run_path(run_id)}/recommendation", asked)).text

    async def sweeps(self, visitor: Mapping[str, str], query: Query) -> sweep_answers.SweepPage:
        """One page of sweeps and branches, newest first."""
        return sweep_answers.sweep_page(await self._get(visitor, f"{API}/sweeps", query))

    async def sweep(self, visitor: Mapping[str, str], sweep_id: str) -> sweep_answers.Sweep:
        """One sweep with its runs."""
        return sweep_answers.sweep(await self._get(visitor, _sweep_path(sweep_id)))

    async def critical_batch(
        self, visitor: Mapping[str, str], sweep_id: str, query: Query | None = None
    ) -> sweep_answers.CriticalBatch:
        """Fit or refusal for each target of a sweep."""
        path = f"{_sweep_path(sweep_id)}/critical-batch"
        return sweep_answers.critical_batch(await self._get(visitor, path, query))

    async def sweep_plan(
        self, visitor: Mapping[str, str], sweep_id: str, query: Query | None = None
    ) -> sweep_answers.SweepPlan:
        """What to run next."""
        return sweep_answers.sweep_plan(await self._get(visitor, f"{_sweep_path(sweep_id)}/plan", query))

    async def sweep_quality(self, visitor: Mapping[str, str], sweep_id: str) -> tuple[sweep_answers.Quality, ...]:
        """Whether larger batches end at a worse metric."""
        return sweep_answers.qualities(await self._get(visitor, f"{_sweep_path(sweep_id)}/quality"))

    async def learning_rates(
        self, visitor: Mapping[str, str], sweep_id: str, query: Query | None = None
    ) -> law_answers.LearningRates:
        """The best learning rate at each batch size, and the curves through them."""
        path = f"{_sweep_path(sweep_id)}/learning-rates"
        return law_answers.learning_rates(await self._get(visitor, path, query))

    async def sweep_forecast(self, visitor: Mapping[str, str], sweep_id: str) -> law_answers.Forecast:
        """The critical batch over the targets, and where it leads."""
        return law_answers.forecast(await self._get(visitor, f"{_sweep_path(sweep_id)}/forecast"))

    async def published_sweeps(self, visitor: Mapping[str, str]) -> sweep_answers.PublishedSweeps:
        """Published sweeps, fitted as one's own are."""
        return sweep_answers.published_sweeps(await self._get(visitor, f"{API}/published-sweeps"))

    async def reproductions(self, visitor: Mapping[str, str], query: Query) -> reproduction_answers.ReproductionPage:
        """What `noisescale reproduce` has stored, newest first, without what it found."""
        return reproduction_answers.reproduction_page(await self._get(visitor, f"{API}/reproductions", query))

    async def reproduction(self, visitor: Mapping[str, str], reproduction_id: str) -> reproduction_answers.Reproduction:
        """One reproduction with what it found."""
        path = f"{API}/reproductions/{_checked(reproduction_id, 'reproduction')}"
        return reproduction_answers.reproduction(await self._get(visitor, path))

    async def comparison(self, visitor: Mapping[str, str], query: Query | None = None) -> compare_answers.Comparison:
        """Noise scale against critical batch over tasks, one's own and published."""
        return compare_answers.comparison(await self._get(visitor, f"{API}/comparison", query))

    async def sized_tasks(self, visitor: Mapping[str, str], query: Query) -> tuple[compare_answers.SizedTask, ...]:
        """Tasks whose runs have models of several sizes."""
        return compare_answers.sized_tasks(await self._get(visitor, f"{API}/comparison/sized-tasks", query))

    async def model_sizes(self, visitor: Mapping[str, str], query: Query) -> compare_answers.ModelSizes:
        """Whether larger models of a task have a larger noise scale at equal loss."""
        return compare_answers.model_sizes(await self._get(visitor, f"{API}/comparison/model-size", query))

    async def compared_runs(
        self, visitor: Mapping[str, str], run_ids: Sequence[str], query: Query
    ) -> compare_answers.ComparedRuns:
        """Runs along one axis, and the ratios of their noise scales to that of the first."""
        asked = {**query, "run": list(run_ids)}
        return compare_answers.compared_runs(await self._get(visitor, f"{API}/comparison/runs", asked))

    async def trade_off(self, visitor: Mapping[str, str], query: Query) -> planner_answers.TradeOff:
        """What a target takes at any batch size, inside limits: of a run, of a task, or of numbers that are said."""
        return planner_answers.trade_off(await self._get(visitor, f"{API}/tradeoff", query))

    async def limits(
        self, visitor: Mapping[str, str], run_id: str, preference: float, limits: Query
    ) -> tuple[planner_answers.Limit, ...]:
        """The batches that each limit of a run's recommendation allows, also of those that do not bind."""
        asked = {**_question(preference, limits), "run_id": str(_checked(run_id, "run")), "batch_size": 1}
        return (await self.trade_off(visitor, asked)).limits

    async def run_forecast(self, visitor: Mapping[str, str], run_id: str) -> law_answers.Forecast:
        """The run's noise scale over its loss, and where it leads."""
        return law_answers.forecast(await self._get(visitor, f"{_run_path(run_id)}/forecast", {"axis": "loss"}))

    async def me(self, visitor: Mapping[str, str]) -> access_answers.Me:
        """Who is looking."""
        return access_answers.me(await self._get(visitor, f"{API}/me"))

    async def keys(self, visitor: Mapping[str, str]) -> tuple[access_answers.Key, ...]:
        """API keys of the visitor, and of whom they manage."""
        return access_answers.keys(await self._get(visitor, f"{API}/keys"))

    async def make_key(self, visitor: Mapping[str, str], **fields: Any) -> access_answers.NewKey:
        """A new key: `name`, `scope`, `projects`, `days`."""
        return access_answers.new_key(await self._send("POST", visitor, f"{API}/keys", fields))

    async def rotate_key(self, visitor: Mapping[str, str], key_id: str) -> access_answers.NewKey:
        """The successor of a key."""
        path = f"{API}/keys/{quote(key_id, safe='')}/rotation"
        return access_answers.new_key(await self._send("POST", visitor, path, None))

    async def revoke_key(self, visitor: Mapping[str, str], key_id: str) -> None:
        """End a key."""
        await self._send("DELETE", visitor, f"{API}/keys/{quote(key_id, safe='')}", None)

    async def people(self, visitor: Mapping[str, str]) -> tuple[access_answers.Person, ...]:
        """The people that the visitor manages."""
        return access_answers.people(await self._get(visitor, f"{API}/people"))

    async def set_role(self, visitor: Mapping[str, str], project: str, person_id: str, role: str | None) -> None:
        """Make somebody viewer, member or admin of a project; None takes them out."""
        path = f"{API}/projects/{quote(project, safe='')}/members/{_checked(person_id, 'person')}"
        await self._send("DELETE" if role is None else "PUT", visitor, path, None if role is None else {"role": role})

    async def add_person(
        self, visitor: Mapping[str, str], *, name: str, email: str | None, is_administrator: bool
    ) -> str:
        """The id of somebody new, who logs in by a one-time link."""
        fields = {"name": name, "email": email, "is_administrator": is_administrator}
        return str((await self._send("POST", visitor, f"{API}/people", fields))["id"])

    async def make_login_link(self, visitor: Mapping[str, str], person_id: str) -> str:
        """A link that logs a person in once, within the hour."""
        path = f"{API}/people/{_checked(person_id, 'person')}/login-links"
        return str((await self._send("POST", visitor, path, None))["url"])

    async def log_out_everywhere(self, visitor: Mapping[str, str], person_id: str) -> None:
        """End every login of a person."""
        await self._send("DELETE", visitor, f"{API}/people/{_checked(person_id, 'person')}/sessions", None)

    async def audit(self, visitor: Mapping[str, str], *, limit: int) -> tuple[access_answers.AuditEntry, ...]:
        """What was done about access, newest first."""
        return access_answers.audit(await self._get(visitor, f"{API}/audit", {"limit": limit}))

    async def sparklines(
        self, visitor: Mapping[str, str], run_ids: Sequence[str], *, points: int = 28
    ) -> dict[str, answers.Points]:
        """A few points of each run, none of one without steps; what cannot be read is left out."""
        parts = [run_ids[start : start + SPARKLINES_AT_ONCE] for start in range(0, len(run_ids), SPARKLINES_AT_ONCE)]
        found: dict[str, answers.Points] = {}
        # one after the other: between two of them the server has time for others
        for part in parts:
            asked: Query = {"ids": ",".join(part), "points": points}
            try:
                known = answers.sparklines(await self._get(visitor, f"{API}/runs/sparklines", asked))
            except ApiProblem:
                continue
            found |= {run_id: known.get(run_id, answers.Points()) for run_id in part}
        return found

    async def several_series(
        self, visitor: Mapping[str, str], run_ids: list[str], *, points: int = 28, at_once: int = 8
    ) -> dict[str, answers.NoiseScaleSeries]:
        """A short series of each run; runs whose series cannot be read are left out of the picture."""
        gate = asyncio.Semaphore(at_once)

        async def one(run_id: str) -> tuple[str, answers.NoiseScaleSeries] | None:
            async with gate:
                try:
                    return run_id, await self.noise_scale(visitor, run_id, {"points": points})
                except ApiProblem:
                    return None

        found = await asyncio.gather(*(one(run_id) for run_id in run_ids))
        return dict(pair for pair in found if pair is not None)

    async def _get(self, visitor: Mapping[str, str], path: str, query: Query | None = None) -> Any:
        return orjson.loads((await self._read(visitor, path, query)).content)

    async def _read(self, visitor: Mapping[str, str], path: str, query: Query | None = None) -> httpx.Response:
        """The answer, of one request where several parts of a visitor's page ask for the same at the same time."""
        params = {name: value for name, value in (query or {}).items() if value is not None and value != ""}
        asked = (path, *map(str, params.items()), *sorted(visitor.items()))
        reading = self._being_read.get(asked)
        if reading is None:
            reading = asyncio.create_task(self._read_now(visitor, path, params))
            self._being_read[asked] = reading
            reading.add_done_callback(lambda ended: self._forget(asked, ended))
        # who goes away takes the answer from nobody else
        return await asyncio.shield(reading)

    def _forget(self, asked: tuple[object, ...], ended: asyncio.Task[httpx.Response]) -> None:
        if self._being_read.get(asked) is ended:
            del self._being_read[asked]
        if not ended.cancelled():
            # nobody may be left who hears of its failure
            ended.exception()

    async def _read_now(self, visitor: Mapping[str, str], path: str, params: Mapping[str, Any]) -> httpx.Response:
        request = f"GET {path}"
        try:
            response = await self._http.get(path, params=params, headers=dict(visitor))
        except httpx.TransportError as error:
            outages.remember(has_answered=False)
            raise ApiProblem(request, None, "The server did not answer", str(error)) from error
        outages.remember(has_answered=not response.is_server_error)
        if response.is_success:
            return response
        raise _problem(request, response)

    async def _send(self, method: str, visitor: Mapping[str, str], path: str, body: Mapping[str, Any] | None) -> Any:
        request = f"{method} {path}"
        # what is read from here on knows of the change
        self._being_read.clear()
        try:
            response = await self._http.request(method, path, json=body, headers=dict(visitor))
        except httpx.TransportError as error:
            outages.remember(has_answered=False)
            raise ApiProblem(request, None, "The server did not answer", str(error)) from error
        outages.remember(has_answered=not response.is_server_error)
        if response.is_success:
            return response.json() if response.content else None
        raise _problem(request, response)


def visitor_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Those request headers by which the API knows the visitor."""
    lower = {name.lower(): value for name, value in headers.items()}
    return {name: lower[name] for name in FORWARDED_HEADERS if name in lower}


def _question(preference: float, limits: Query) -> dict[str, Any]:
    low, high = PREFERENCES
    # a slider that nobody moved states no price: the answer is then that of the run's row, and asks for one
    is_silent = preference == BALANCED or any(limits.get(name) is not None for name in STATED_PRICES)
    return {"preference": None if is_silent else min(max(preference, low), high), **limits}


def _run_path(run_id: str) -> str:
    return f"{API}/runs/{_checked(run_id, 'run')}"


def _sweep_path(sweep_id: str) -> str:
    return f"{API}/sweeps/{_checked(sweep_id, 'sweep')}"


def _checked(given: str, what: str) -> UUID:
    # an id comes from the address bar: only a UUID may become part of a path of the API
    try:
        return UUID(given)
    except ValueError as error:
        raise ApiProblem(
            f"GET {API}/{what}s/…", 404, f"{what.capitalize()} not found", f"a {what} id is a UUID"
        ) from error


def _problem(request: str, response: httpx.Response) -> ApiProblem:
    is_problem = response.headers.get("content-type", "").startswith("application/problem+json")
    body = response.json() if is_problem else {}
    title = body.get("title") or response.reason_phrase or "Refused"
    errors = tuple((str(one.get("field")), str(one.get("message"))) for one in body.get("errors") or ())
    return ApiProblem(request, response.status_code, title, body.get("detail") or title, errors)
