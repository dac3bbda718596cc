"""What pages ask about runs: the list, one run, its series and recommendation, and what people say of it."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from noisescale_dashboard.answers import advice
from noisescale_dashboard.answers import comments as comment_answers
from noisescale_dashboard.answers import common as answers
from noisescale_dashboard.answers import cost as cost_answers
from noisescale_dashboard.answers import laws as law_answers
from noisescale_dashboard.answers import projects as project_answers
from noisescale_dashboard.answers import series as rate_answers
from noisescale_dashboard.answers import series as series_answers
from noisescale_dashboard.api.question_fields import question
from noisescale_dashboard.api.questions.asking import API, Questions, checked_id, run_path
from noisescale_dashboard.api.transport import ApiProblem, Query

SPARKLINES_AT_ONCE = 20
"""Some 30 ms of the server where none of them is known yet."""


class RunQuestions(Questions):
    """Runs, their series and recommendations."""

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
        return answers.run(await self._api.send("PATCH", visitor, run_path(run_id), changes))

    async def delete_run(self, visitor: Mapping[str, str], run_id: str) -> None:
        """Delete a run with all its data."""
        await self._api.send("DELETE", visitor, run_path(run_id), None)

    async def projects(self, visitor: Mapping[str, str]) -> tuple[answers.Project, ...]:
        """All projects the visitor may see."""
        return answers.projects(await self._api.get(visitor, f"{API}/projects", {"counts": False}))

    async def run(self, visitor: Mapping[str, str], run_id: str) -> answers.Run:
        """One run."""
        return answers.run(await self._api.get(visitor, run_path(run_id)))

    async def noise_scale(
        self, visitor: Mapping[str, str], run_id: str, query: Query | None = None
    ) -> series_answers.NoiseScaleSeries:
        """The noise scale over training."""
        return series_answers.noise_scale_series(await self._api.get(visitor, f"{run_path(run_id)}/noise-scale", query))

    async def groups(
        self, visitor: Mapping[str, str], run_id: str, query: Query | None = None
    ) -> tuple[series_answers.Group, ...]:
        """The noise scale of each layer, in network order."""
        pages = await self._pages(visitor, f"{run_path(run_id)}/groups", query)
        return tuple(group for page in pages for group in series_answers.groups(page))

    async def metrics(
        self, visitor: Mapping[str, str], run_id: str, query: Query | None = None
    ) -> tuple[series_answers.Metric, ...]:
        """What was logged beside the gradients: evaluation loss, accuracy, score."""
        return series_answers.metrics(await self._api.get(visitor, f"{run_path(run_id)}/metrics", query))

    async def streams(self, visitor: Mapping[str, str], run_id: str) -> tuple[series_answers.Stream, ...]:
        """The processes that logged into the run, with what was stored and lost."""
        pages = await self._pages(visitor, f"{run_path(run_id)}/streams")
        return tuple(stream for page in pages for stream in series_answers.streams(page))

    async def recommendation(
        self, visitor: Mapping[str, str], run_id: str, preference: float, limits: Query | None = None
    ) -> advice.Recommendation:
        """Which batch size to use at a preference from 0 (fewest examples) to 1 (fewest steps), inside limits."""
        asked = question(preference, limits or {})
        return advice.recommendation(await self._api.get(visitor, f"{run_path(run_id)}/recommendation", asked))

    async def recommendations(
        self, visitor: Mapping[str, str], run_ids: Sequence[str], preference: float
    ) -> dict[str, advice.Recommendation]:
        """By id, those of at most 20 runs at a preference; runs that are gone are left out."""
        asked = {"ids": ",".join(run_ids), **question(preference, {})}
        found = await self._api.get(visitor, f"{API}/runs/recommendations", asked)
        return {one["run_id"]: advice.recommendation(one) for one in found["recommendations"]}

    async def schedule_text(
        self, visitor: Mapping[str, str], run_id: str, trainer: str, preference: float, limits: Query | None = None
    ) -> str:
        """The schedule of the same recommendation as a trainer takes it."""
        asked = {**question(preference, limits or {}), "format": trainer}
        return (await self._api.read(visitor, f"{run_path(run_id)}/recommendation", asked)).text

    async def run_forecast(self, visitor: Mapping[str, str], run_id: str) -> law_answers.Forecast:
        """The run's noise scale over its loss, and where it leads."""
        return law_answers.forecast(await self._api.get(visitor, f"{run_path(run_id)}/forecast", {"axis": "loss"}))

    async def learning_rate(self, visitor: Mapping[str, str], run_id: str) -> rate_answers.RateVerdict:
        """Whether the run's learning rate is too low, right or too high."""
        return rate_answers.rate_verdict(await self._api.get(visitor, f"{run_path(run_id)}/learning-rate"))

    async def time_of_run(self, visitor: Mapping[str, str], run_id: str) -> cost_answers.TimeOfRun:
        """Where a run's time goes."""
        return cost_answers.time_of_run(await self._api.get(visitor, f"{run_path(run_id)}/time"))

    async def comments(self, visitor: Mapping[str, str], run_id: str, limit: int) -> comment_answers.Comments:
        """What was said about the run, newest first, at most so many."""
        return comment_answers.comments(await self._api.get(visitor, f"{run_path(run_id)}/comments", {"limit": limit}))

    async def add_comment(self, visitor: Mapping[str, str], run_id: str, text: str) -> None:
        """Say something about the run."""
        await self._api.send("POST", visitor, f"{run_path(run_id)}/comments", {"text": text})

    async def edit_comment(self, visitor: Mapping[str, str], run_id: str, comment_id: str, text: str) -> None:
        """Put what the visitor has said in other words."""
        path = f"{run_path(run_id)}/comments/{checked_id(comment_id, 'comment')}"
        await self._api.send("PATCH", visitor, path, {"text": text})

    async def delete_comment(self, visitor: Mapping[str, str], run_id: str, comment_id: str) -> None:
        """Take a comment away."""
        path = f"{run_path(run_id)}/comments/{checked_id(comment_id, 'comment')}"
        await self._api.send("DELETE", visitor, path, None)

    async def make_run_link(self, visitor: Mapping[str, str], run_id: str, hours: str) -> project_answers.RunLink:
        """A link that shows the run alone for so many hours."""
        path = f"{API}/runs/{quote(run_id, safe='')}/links"
        body = {"hours": int(hours) if hours.isdecimal() and hours.isascii() else hours}
        return project_answers.run_link(await self._api.send("POST", visitor, path, body))

    async def end_run_links(self, visitor: Mapping[str, str], run_id: str) -> int:
        """How many links of the run have ended: all there were."""
        path = f"{API}/runs/{quote(run_id, safe='')}/links"
        links = [project_answers.run_link(one) for one in (await self._api.get(visitor, path))["links"]]
        for link in links:
            await self._api.send("DELETE", visitor, f"{path}/{link.id}", None)
        return len(links)

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
