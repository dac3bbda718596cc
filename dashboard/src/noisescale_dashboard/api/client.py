"""Answers of the REST API as dataclasses."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx

from noisescale_dashboard.answers import access as access_answers
from noisescale_dashboard.answers import advice
from noisescale_dashboard.answers import alerts as alert_answers
from noisescale_dashboard.answers import common as answers
from noisescale_dashboard.answers import comparisons as compare_answers
from noisescale_dashboard.answers import cost as cost_answers
from noisescale_dashboard.answers import defaults as default_answers
from noisescale_dashboard.answers import keeping as keeping_answers
from noisescale_dashboard.answers import laws as law_answers
from noisescale_dashboard.answers import plans as planner_answers
from noisescale_dashboard.answers import rates as rate_answers
from noisescale_dashboard.answers import record as record_answers
from noisescale_dashboard.answers import reproductions as reproduction_answers
from noisescale_dashboard.answers import series as series_answers
from noisescale_dashboard.answers import server as server_answers
from noisescale_dashboard.answers import sweeps as sweep_answers
from noisescale_dashboard.answers import views as view_answers
from noisescale_dashboard.api.question_fields import FIELDS
from noisescale_dashboard.api.transport import ApiProblem, ApiTransport, Query

API = "/api/v1"
PREFERENCES = (0.001, 0.999)
"""The ends themselves would ask for a batch of nothing or of everything."""
BALANCED = 0.5
"""Where the slider stands before anybody moves it."""

SPARKLINES_AT_ONCE = 20
"""Some 30 ms of the server where none of them is known yet."""

FITS_AT_ONCE = 15
"""Sweeps of one question: those that were never fitted take their time."""

STATED_PRICES = tuple(one.asks for one in FIELDS if one.group == "price")
"""What says a step's worth instead of the preference; the API refuses two at once."""


class ApiClient:
    """Asks the API on behalf of one visitor at a time: `visitor` is the headers that came with the call."""

    def __init__(
        self, *, base_url: str, transport: httpx.AsyncBaseTransport | None = None, timeout_seconds: float = 10.0
    ) -> None:
        self._api = ApiTransport(base_url=base_url, transport=transport, timeout_seconds=timeout_seconds)

    async def ready(self, visitor: Mapping[str, str]) -> None:
        """Raise unless the API can answer."""
        await self._api.read(visitor, "/readyz")

    async def runs(self, visitor: Mapping[str, str], query: Query) -> answers.RunPage:
        """One page of runs, filtered and sorted by the server."""
        return answers.run_page(await self._api.get(visitor, f"{API}/runs", query))

    async def run_groups(self, visitor: Mapping[str, str], query: Query) -> answers.RunGroups:
        """Runs grouped by what `by` names, largest group first."""
        return answers.run_groups(await self._api.get(visitor, f"{API}/runs/summary", query))

    async def change_runs(
        self, visitor: Mapping[str, str], run_ids: Sequence[str], **changes: Any
    ) -> answers.ChangedRuns:
        """Tag or archive runs together: `archived`, `add_tags`, `remove_tags`."""
        body = {"ids": list(run_ids), **changes}
        return answers.changed_runs(await self._api.send("POST", visitor, f"{API}/runs/changes", body))

    async def change_run(self, visitor: Mapping[str, str], run_id: str, **changes: Any) -> answers.Run:
        """The run after the changes of `name`, `tags` and `remarks`."""
        return answers.run(await self._api.send("PATCH", visitor, _run_path(run_id), changes))

    async def delete_run(self, visitor: Mapping[str, str], run_id: str) -> None:
        """Delete a run with all its data."""
        await self._api.send("DELETE", visitor, _run_path(run_id), None)

    async def projects(self, visitor: Mapping[str, str]) -> tuple[answers.Project, ...]:
        """All projects the visitor may see."""
        return answers.projects(await self._api.get(visitor, f"{API}/projects", {"counts": False}))

    async def run(self, visitor: Mapping[str, str], run_id: str) -> answers.Run:
        """One run."""
        return answers.run(await self._api.get(visitor, _run_path(run_id)))

    async def noise_scale(
        self, visitor: Mapping[str, str], run_id: str, query: Query | None = None
    ) -> series_answers.NoiseScaleSeries:
        """The noise scale over training."""
        return series_answers.noise_scale_series(
            await self._api.get(visitor, f"{_run_path(run_id)}/noise-scale", query)
        )

    async def groups(
        self, visitor: Mapping[str, str], run_id: str, query: Query | None = None
    ) -> tuple[series_answers.Group, ...]:
        """The noise scale of each layer, in network order."""
        pages = await self._pages(visitor, f"{_run_path(run_id)}/groups", query)
        return tuple(group for page in pages for group in series_answers.groups(page))

    async def metrics(
        self, visitor: Mapping[str, str], run_id: str, query: Query | None = None
    ) -> tuple[series_answers.Metric, ...]:
        """What was logged beside the gradients: evaluation loss, accuracy, score."""
        return series_answers.metrics(await self._api.get(visitor, f"{_run_path(run_id)}/metrics", query))

    async def streams(self, visitor: Mapping[str, str], run_id: str) -> tuple[series_answers.Stream, ...]:
        """The processes that logged into the run, with what was stored and lost."""
        pages = await self._pages(visitor, f"{_run_path(run_id)}/streams")
        return tuple(stream for page in pages for stream in series_answers.streams(page))

    async def _pages(self, visitor: Mapping[str, str], place: str, query: Query | None = None) -> list[Any]:
        """The answers page by page, up to the last one."""
        pages = [await self._api.get(visitor, place, query)]
        while (cursor := pages[-1]["next_cursor"]) is not None:
            pages.append(await self._api.get(visitor, place, {**(query or {}), "cursor": cursor}))
        return pages

    async def recommendation(
        self, visitor: Mapping[str, str], run_id: str, preference: float, limits: Query | None = None
    ) -> advice.Recommendation:
        """Which batch size to use at a preference from 0 (fewest examples) to 1 (fewest steps), inside limits."""
        asked = _question(preference, limits or {})
        return advice.recommendation(await self._api.get(visitor, f"{_run_path(run_id)}/recommendation", asked))

    async def recommendations(
        self, visitor: Mapping[str, str], run_ids: Sequence[str], preference: float
    ) -> dict[str, advice.Recommendation]:
        """By id, those of at most 20 runs at a preference; runs that are gone are left out."""
        asked = {"ids": ",".join(run_ids), **_question(preference, {})}
        found = await self._api.get(visitor, f"{API}/runs/recommendations", asked)
        return {one["run_id"]: advice.recommendation(one) for one in found["recommendations"]}

    async def schedule_text(
        self, visitor: Mapping[str, str], run_id: str, trainer: str, preference: float, limits: Query | None = None
    ) -> str:
        """The schedule of the same recommendation as a trainer takes it."""
        asked = {**_question(preference, limits or {}), "format": trainer}
        return (await self._api.read(visitor, f"{_run_path(run_id)}/recommendation", asked)).text

    async def sweeps(self, visitor: Mapping[str, str], query: Query) -> sweep_answers.SweepPage:
        """One page of sweeps and branches, newest first."""
        return sweep_answers.sweep_page(await self._api.get(visitor, f"{API}/sweeps", query))

    async def sweep(self, visitor: Mapping[str, str], sweep_id: str) -> sweep_answers.Sweep:
        """One sweep with its runs."""
        return sweep_answers.sweep(await self._api.get(visitor, _sweep_path(sweep_id)))

    async def rename_sweep(self, visitor: Mapping[str, str], sweep_id: str, name: str) -> sweep_answers.Sweep:
        """The sweep under its new name."""
        return sweep_answers.sweep(await self._api.send("PATCH", visitor, _sweep_path(sweep_id), {"name": name}))

    async def critical_batch(
        self, visitor: Mapping[str, str], sweep_id: str, query: Query | None = None
    ) -> sweep_answers.CriticalBatch:
        """Fit or refusal for each target of a sweep."""
        path = f"{_sweep_path(sweep_id)}/critical-batch"
        return sweep_answers.critical_batch(await self._api.get(visitor, path, query))

    async def critical_batches(
        self, visitor: Mapping[str, str], sweep_ids: Sequence[str]
    ) -> dict[str, sweep_answers.TargetFit | None]:
        """By id, what each sweep says about its hardest target; None where it could not be read."""
        parts = [sweep_ids[start : start + FITS_AT_ONCE] for start in range(0, len(sweep_ids), FITS_AT_ONCE)]
        found: dict[str, sweep_answers.TargetFit | None] = dict.fromkeys(sweep_ids)
        # one after the other: those that were never fitted take their time
        for part in parts:
            try:
                known = await self._api.get(visitor, f"{API}/sweeps/critical-batches", {"ids": ",".join(part)})
            except ApiProblem:
                continue
            found |= {one["sweep_id"]: sweep_answers.critical_batch(one).targets[0] for one in known["sweeps"]}
        return found

    async def sweep_plan(
        self, visitor: Mapping[str, str], sweep_id: str, query: Query | None = None
    ) -> sweep_answers.SweepPlan:
        """What to run next."""
        return sweep_answers.sweep_plan(await self._api.get(visitor, f"{_sweep_path(sweep_id)}/plan", query))

    async def sweep_quality(self, visitor: Mapping[str, str], sweep_id: str) -> tuple[sweep_answers.Quality, ...]:
        """Whether larger batches end at a worse metric."""
        return sweep_answers.qualities(await self._api.get(visitor, f"{_sweep_path(sweep_id)}/quality"))

    async def learning_rates(
        self, visitor: Mapping[str, str], sweep_id: str, query: Query | None = None
    ) -> law_answers.LearningRates:
        """The best learning rate at each batch size, and the curves through them."""
        path = f"{_sweep_path(sweep_id)}/learning-rates"
        return law_answers.learning_rates(await self._api.get(visitor, path, query))

    async def sweep_forecast(self, visitor: Mapping[str, str], sweep_id: str) -> law_answers.Forecast:
        """The critical batch over the targets, and where it leads."""
        return law_answers.forecast(await self._api.get(visitor, f"{_sweep_path(sweep_id)}/forecast"))

    async def server(self, visitor: Mapping[str, str]) -> server_answers.Server:
        """Version and health of the server, and what the visitor's projects have stored."""
        return server_answers.server(await self._api.get(visitor, f"{API}/server"))

    async def published_sweeps(self, visitor: Mapping[str, str]) -> sweep_answers.PublishedSweeps:
        """Published sweeps, fitted as one's own are."""
        return sweep_answers.published_sweeps(await self._api.get(visitor, f"{API}/published-sweeps"))

    async def first_batch(self, visitor: Mapping[str, str], query: Query) -> advice.Recommendation:
        """The batch of a language model before its first step."""
        return advice.recommendation(await self._api.get(visitor, f"{API}/recommendation", query))

    async def hindsight(self, visitor: Mapping[str, str]) -> record_answers.AdviceRecord:
        """How often the advice was right, by the sweeps that the visitor sees."""
        return record_answers.record(await self._api.get(visitor, f"{API}/hindsight"))

    async def submissions(self, visitor: Mapping[str, str], query: Query) -> cost_answers.Board:
        """DAWNBench's entries of a task."""
        return cost_answers.board(await self._api.get(visitor, f"{API}/cost/submissions", query))

    async def leaderboard(self, visitor: Mapping[str, str], query: Query) -> cost_answers.Board:
        """Runs of the visitor's that reached a target."""
        return cost_answers.board(await self._api.get(visitor, f"{API}/cost/leaderboard", query))

    async def search_cost(self, visitor: Mapping[str, str], sweep_id: str, query: Query) -> cost_answers.SearchCost:
        """What the search of a sweep cost."""
        return cost_answers.search_cost(await self._api.get(visitor, f"{_sweep_path(sweep_id)}/search-cost", query))

    async def time_of_run(self, visitor: Mapping[str, str], run_id: str) -> cost_answers.TimeOfRun:
        """Where a run's time goes."""
        return cost_answers.time_of_run(await self._api.get(visitor, f"{_run_path(run_id)}/time"))

    async def compute_growth(self, visitor: Mapping[str, str], query: Query) -> cost_answers.ComputeGrowth:
        """Compute of the visitor's runs over time."""
        return cost_answers.compute_growth(await self._api.get(visitor, f"{API}/cost/growth", query))

    async def reproductions(self, visitor: Mapping[str, str], query: Query) -> reproduction_answers.ReproductionPage:
        """What `noisescale reproduce` has stored, newest first, without what it found."""
        return reproduction_answers.reproduction_page(await self._api.get(visitor, f"{API}/reproductions", query))

    async def reproduction(self, visitor: Mapping[str, str], reproduction_id: str) -> reproduction_answers.Reproduction:
        """One reproduction with what it found."""
        path = f"{API}/reproductions/{_checked(reproduction_id, 'reproduction')}"
        return reproduction_answers.reproduction(await self._api.get(visitor, path))

    async def comparison(self, visitor: Mapping[str, str], query: Query | None = None) -> compare_answers.Comparison:
        """Noise scale against critical batch over tasks, one's own and published."""
        return compare_answers.comparison(await self._api.get(visitor, f"{API}/comparison", query))

    async def sized_tasks(self, visitor: Mapping[str, str], query: Query) -> tuple[compare_answers.SizedTask, ...]:
        """Tasks whose runs have models of several sizes."""
        return compare_answers.sized_tasks(await self._api.get(visitor, f"{API}/comparison/sized-tasks", query))

    async def model_sizes(self, visitor: Mapping[str, str], query: Query) -> compare_answers.ModelSizes:
        """Whether larger models of a task have a larger noise scale at equal loss."""
        return compare_answers.model_sizes(await self._api.get(visitor, f"{API}/comparison/model-size", query))

    async def compared_runs(
        self, visitor: Mapping[str, str], run_ids: Sequence[str], query: Query
    ) -> compare_answers.ComparedRuns:
        """Runs along one axis, and the ratios of their noise scales to that of the first."""
        asked = {**query, "run": list(run_ids)}
        return compare_answers.compared_runs(await self._api.get(visitor, f"{API}/comparison/runs", asked))

    async def trade_off(self, visitor: Mapping[str, str], query: Query) -> planner_answers.TradeOff:
        """What a target takes at any batch size, inside limits: of a run, of a task, or of numbers that are said."""
        return planner_answers.trade_off(await self._api.get(visitor, f"{API}/tradeoff", query))

    async def limits(
        self, visitor: Mapping[str, str], run_id: str, preference: float, limits: Query
    ) -> tuple[planner_answers.Limit, ...]:
        """The batches that each limit of a run's recommendation allows, also of those that do not bind."""
        asked = {**_question(preference, limits), "run_id": str(_checked(run_id, "run")), "batch_size": 1}
        return (await self.trade_off(visitor, asked)).limits

    async def run_forecast(self, visitor: Mapping[str, str], run_id: str) -> law_answers.Forecast:
        """The run's noise scale over its loss, and where it leads."""
        return law_answers.forecast(await self._api.get(visitor, f"{_run_path(run_id)}/forecast", {"axis": "loss"}))

    async def learning_rate(self, visitor: Mapping[str, str], run_id: str) -> rate_answers.RateVerdict:
        """Whether the run's learning rate is too low, right or too high."""
        return rate_answers.rate_verdict(await self._api.get(visitor, f"{_run_path(run_id)}/learning-rate"))

    async def me(self, visitor: Mapping[str, str]) -> access_answers.Me:
        """Who is looking."""
        return access_answers.me(await self._api.get(visitor, f"{API}/me"))

    async def keys(self, visitor: Mapping[str, str]) -> tuple[access_answers.Key, ...]:
        """API keys of the visitor, and of whom they manage."""
        return access_answers.keys(await self._api.get(visitor, f"{API}/keys"))

    async def make_key(self, visitor: Mapping[str, str], **fields: Any) -> access_answers.NewKey:
        """A new key: `name`, `scope`, `projects`, `days`."""
        return access_answers.new_key(await self._api.send("POST", visitor, f"{API}/keys", fields))

    async def rotate_key(self, visitor: Mapping[str, str], key_id: str) -> access_answers.NewKey:
        """The successor of a key."""
        path = f"{API}/keys/{quote(key_id, safe='')}/rotation"
        return access_answers.new_key(await self._api.send("POST", visitor, path, None))

    async def revoke_key(self, visitor: Mapping[str, str], key_id: str) -> None:
        """End a key."""
        await self._api.send("DELETE", visitor, f"{API}/keys/{quote(key_id, safe='')}", None)

    async def project_defaults(self, visitor: Mapping[str, str], project: str) -> default_answers.ProjectDefaults:
        """What the project assumes of prices."""
        path = f"{API}/projects/{quote(project, safe='')}/defaults"
        return default_answers.project_defaults(await self._api.get(visitor, path))

    async def set_project_defaults(
        self, visitor: Mapping[str, str], project: str, fields: Mapping[str, Any]
    ) -> default_answers.ProjectDefaults:
        """Let the project assume exactly this."""
        path = f"{API}/projects/{quote(project, safe='')}/defaults"
        return default_answers.project_defaults(await self._api.send("PUT", visitor, path, dict(fields)))

    async def keeping(self, visitor: Mapping[str, str], project: str) -> keeping_answers.Keeping:
        """How the project is kept and shared."""
        path = f"{API}/projects/{quote(project, safe='')}"
        retention = await self._api.get(visitor, f"{path}/retention")
        return keeping_answers.keeping(retention, await self._api.get(visitor, f"{path}/public"))

    async def keep(
        self, visitor: Mapping[str, str], project: str, *, days: float | str | None, is_public: bool
    ) -> keeping_answers.Keeping:
        """Let the project be kept and shared so."""
        path = f"{API}/projects/{quote(project, safe='')}"
        retention = await self._api.send("PUT", visitor, f"{path}/retention", {"fold_after_days": days})
        public = await self._api.send("PUT", visitor, f"{path}/public", {"is_public": is_public})
        return keeping_answers.keeping(retention, public)

    async def make_run_link(self, visitor: Mapping[str, str], run_id: str, hours: str) -> keeping_answers.RunLink:
        """A link that shows the run alone for so many hours."""
        path = f"{API}/runs/{quote(run_id, safe='')}/links"
        body = {"hours": int(hours) if hours.isdecimal() and hours.isascii() else hours}
        return keeping_answers.run_link(await self._api.send("POST", visitor, path, body))

    async def end_run_links(self, visitor: Mapping[str, str], run_id: str) -> int:
        """How many links of the run have ended: all there were."""
        path = f"{API}/runs/{quote(run_id, safe='')}/links"
        links = [keeping_answers.run_link(one) for one in (await self._api.get(visitor, path))["links"]]
        for link in links:
            await self._api.send("DELETE", visitor, f"{path}/{link.id}", None)
        return len(links)

    async def alerts(self, visitor: Mapping[str, str], project: str) -> alert_answers.Alerts:
        """Rules, receivers and newest events of a project."""
        at = _alerts(project)
        found = [await self._api.get(visitor, f"{at}/{name}") for name in ("rules", "receivers", "events")]
        return alert_answers.alerts(*found)

    async def alert_dry_run(self, visitor: Mapping[str, str], project: str, rule: Mapping[str, Any]) -> str:
        """What a rule would have told of last week, as a sentence."""
        found = await self._api.send("POST", visitor, f"{_alerts(project)}/dry-run", {"rule": dict(rule)})
        return str(found["text"])

    async def add_alert_rule(self, visitor: Mapping[str, str], project: str, rule: Mapping[str, Any]) -> None:
        """Watch for something in a project."""
        await self._api.send("POST", visitor, f"{_alerts(project)}/rules", dict(rule))

    async def alert_rule(self, visitor: Mapping[str, str], project: str, rule_id: str) -> alert_answers.AlertRule:
        """One of the project's rules.

        Raises:
            ApiProblem: Where there is none of this id.
        """
        found = await self.alerts(visitor, project)
        rule = next((one for one in found.rules if one.id == rule_id), None)
        if rule is None:
            path = f"{_alerts(project)}/rules"
            raise ApiProblem(path, 404, "No such rule", "The rule is not there any more: load the page again.")
        return rule

    async def change_alert_rule(
        self, visitor: Mapping[str, str], project: str, rule_id: str, rule: Mapping[str, Any]
    ) -> None:
        """Let a rule be exactly this."""
        await self._api.send("PUT", visitor, f"{_alerts(project)}/rules/{_checked(rule_id, 'rule')}", dict(rule))

    async def test_alert_receiver(self, visitor: Mapping[str, str], project: str, receiver_id: str) -> None:
        """Send a receiver a test."""
        path = f"{_alerts(project)}/receivers/{_checked(receiver_id, 'receiver')}/test"
        await self._api.send("POST", visitor, path, None)

    async def delete_alert_receiver(self, visitor: Mapping[str, str], project: str, receiver_id: str) -> None:
        """Tell somebody no more."""
        path = f"{_alerts(project)}/receivers/{_checked(receiver_id, 'receiver')}"
        await self._api.send("DELETE", visitor, path, None)

    async def delete_alert_rule(self, visitor: Mapping[str, str], project: str, rule_id: str) -> None:
        """Watch for it no more."""
        await self._api.send("DELETE", visitor, f"{_alerts(project)}/rules/{_checked(rule_id, 'rule')}", None)

    async def add_alert_receiver(self, visitor: Mapping[str, str], project: str, fields: Mapping[str, Any]) -> str:
        """The secret of a new receiver's signatures."""
        return str((await self._api.send("POST", visitor, f"{_alerts(project)}/receivers", dict(fields)))["secret"])

    async def shared_views(self, visitor: Mapping[str, str], project: str) -> tuple[view_answers.SharedView, ...]:
        """The views that a project's team shares, by name."""
        return view_answers.shared_views(await self._api.get(visitor, _views(project)))

    async def share_view(self, visitor: Mapping[str, str], project: str, **fields: str) -> None:
        """Share what a page shows: `name`, `page`, `query`."""
        await self._api.send("POST", visitor, _views(project), fields)

    async def rename_shared_view(self, visitor: Mapping[str, str], project: str, view_id: str, name: str) -> None:
        """Give a shared view another name."""
        await self._api.send("PATCH", visitor, f"{_views(project)}/{_checked(view_id, 'view')}", {"name": name})

    async def delete_shared_view(self, visitor: Mapping[str, str], project: str, view_id: str) -> None:
        """Share a view no more."""
        await self._api.send("DELETE", visitor, f"{_views(project)}/{_checked(view_id, 'view')}", None)

    async def people(self, visitor: Mapping[str, str]) -> tuple[access_answers.Person, ...]:
        """The people that the visitor manages."""
        return access_answers.people(await self._api.get(visitor, f"{API}/people"))

    async def set_role(self, visitor: Mapping[str, str], project: str, person_id: str, role: str | None) -> None:
        """Make somebody viewer, member or admin of a project; None takes them out."""
        path = f"{API}/projects/{quote(project, safe='')}/members/{_checked(person_id, 'person')}"
        await self._api.send(
            "DELETE" if role is None else "PUT", visitor, path, None if role is None else {"role": role}
        )

    async def add_person(
        self, visitor: Mapping[str, str], *, name: str, email: str | None, is_administrator: bool
    ) -> str:
        """The id of somebody new, who logs in by a one-time link."""
        fields = {"name": name, "email": email, "is_administrator": is_administrator}
        return str((await self._api.send("POST", visitor, f"{API}/people", fields))["id"])

    async def change_person(self, visitor: Mapping[str, str], person_id: str, **fields: bool) -> None:
        """Change whether a person `is_administrator` of all projects, or `is_disabled`."""
        await self._api.send("PATCH", visitor, f"{API}/people/{_checked(person_id, 'person')}", fields)

    async def make_login_link(self, visitor: Mapping[str, str], person_id: str) -> str:
        """A link that logs a person in once, within the hour."""
        path = f"{API}/people/{_checked(person_id, 'person')}/login-links"
        return str((await self._api.send("POST", visitor, path, None))["url"])

    async def log_out_everywhere(self, visitor: Mapping[str, str], person_id: str) -> None:
        """End every login of a person."""
        await self._api.send("DELETE", visitor, f"{API}/people/{_checked(person_id, 'person')}/sessions", None)

    async def audit(self, visitor: Mapping[str, str], *, limit: int) -> tuple[access_answers.AuditEntry, ...]:
        """What was done about access, newest first."""
        return access_answers.audit(await self._api.get(visitor, f"{API}/audit", {"limit": limit}))

    async def sparklines(
        self, visitor: Mapping[str, str], run_ids: Sequence[str], *, points: int = 28
    ) -> dict[str, series_answers.Points]:
        """A few points of each run, none of one without steps; what cannot be read is left out."""
        parts = [run_ids[start : start + SPARKLINES_AT_ONCE] for start in range(0, len(run_ids), SPARKLINES_AT_ONCE)]
        found: dict[str, series_answers.Points] = {}
        # one after the other: between two of them the server has time for others
        for part in parts:
            asked: Query = {"ids": ",".join(part), "points": points}
            try:
                known = series_answers.sparklines(await self._api.get(visitor, f"{API}/runs/sparklines", asked))
            except ApiProblem:
                continue
            found |= {run_id: known.get(run_id, series_answers.Points()) for run_id in part}
        return found

    async def several_series(
        self, visitor: Mapping[str, str], run_ids: Sequence[str], *, points: int
    ) -> dict[str, series_answers.ShortSeries]:
        """A short series of each run with what has happened in it; runs without steps are left out."""
        asked: Query = {"ids": ",".join(run_ids), "points": points, "details": True}
        return (
            series_answers.short_series(await self._api.get(visitor, f"{API}/runs/sparklines", asked))
            if run_ids
            else {}
        )


def _views(project: str) -> str:
    return f"{API}/projects/{quote(project, safe='')}/views"


def _alerts(project: str) -> str:
    return f"{API}/projects/{quote(project, safe='')}/alerts"


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
