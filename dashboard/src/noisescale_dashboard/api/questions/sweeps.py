"""What pages ask about sweeps, branches and reproductions, and how often the advice was right."""

from collections.abc import Mapping, Sequence

from noisescale_dashboard.answers import cost as cost_answers
from noisescale_dashboard.answers import laws as law_answers
from noisescale_dashboard.answers import record as record_answers
from noisescale_dashboard.answers import reproductions as reproduction_answers
from noisescale_dashboard.answers import sweeps as sweep_answers
from noisescale_dashboard.api.questions.asking import API, Questions, checked_id, sweep_path
from noisescale_dashboard.api.transport import ApiProblem, Query

FITS_AT_ONCE = 15
"""Sweeps of one question: those that were never fitted take their time."""


class SweepQuestions(Questions):
    """Sweeps, branches and reproductions."""

    async def sweeps(self, visitor: Mapping[str, str], query: Query) -> sweep_answers.SweepPage:
        """One page of sweeps and branches, newest first."""
        return sweep_answers.sweep_page(await self._api.get(visitor, f"{API}/sweeps", query))

    async def sweep(self, visitor: Mapping[str, str], sweep_id: str) -> sweep_answers.Sweep:
        """One sweep with its runs."""
        return sweep_answers.sweep(await self._api.get(visitor, sweep_path(sweep_id)))

    async def rename_sweep(self, visitor: Mapping[str, str], sweep_id: str, name: str) -> sweep_answers.Sweep:
        """The sweep under its new name."""
        return sweep_answers.sweep(await self._api.send("PATCH", visitor, sweep_path(sweep_id), {"name": name}))

    async def critical_batch(
        self, visitor: Mapping[str, str], sweep_id: str, query: Query | None = None
    ) -> sweep_answers.CriticalBatch:
        """Fit or refusal for each target of a sweep."""
        path = f"{sweep_path(sweep_id)}/critical-batch"
        return sweep_answers.critical_batch(await self._api.get(visitor, path, query))

    async def critical_batches(
        self, visitor: Mapping[str, str], sweep_ids: Sequence[str]
    ) -> dict[str, sweep_answers.TargetFit | None]:
        """By id, what each sweep says about its hardest target; None where it could not be read.

        Those whose runs have reached no target are left out.
        """
        parts = [sweep_ids[start : start + FITS_AT_ONCE] for start in range(0, len(sweep_ids), FITS_AT_ONCE)]
        found: dict[str, sweep_answers.TargetFit | None] = dict.fromkeys(sweep_ids)
        # one after the other: those that were never fitted take their time
        for part in parts:
            try:
                known = await self._api.get(visitor, f"{API}/sweeps/critical-batches", {"ids": ",".join(part)})
            except ApiProblem:
                continue
            said = {one["sweep_id"]: sweep_answers.critical_batch(one).targets[0] for one in known["sweeps"]}
            found = {sweep_id: one for sweep_id, one in found.items() if sweep_id not in part}
            found.update(said)
        return found

    async def sweep_plan(
        self, visitor: Mapping[str, str], sweep_id: str, query: Query | None = None
    ) -> sweep_answers.SweepPlan:
        """What to run next."""
        return sweep_answers.sweep_plan(await self._api.get(visitor, f"{sweep_path(sweep_id)}/plan", query))

    async def sweep_quality(self, visitor: Mapping[str, str], sweep_id: str) -> tuple[sweep_answers.Quality, ...]:
        """Whether larger batches end at a worse metric."""
        return sweep_answers.qualities(await self._api.get(visitor, f"{sweep_path(sweep_id)}/quality"))

    async def learning_rates(
        self, visitor: Mapping[str, str], sweep_id: str, query: Query | None = None
    ) -> law_answers.LearningRates:
        """The best learning rate at each batch size, and the curves through them."""
        path = f"{sweep_path(sweep_id)}/learning-rates"
        return law_answers.learning_rates(await self._api.get(visitor, path, query))

    async def sweep_forecast(self, visitor: Mapping[str, str], sweep_id: str) -> law_answers.Forecast:
        """The critical batch over the targets, and where it leads."""
        return law_answers.forecast(await self._api.get(visitor, f"{sweep_path(sweep_id)}/forecast"))

    async def search_cost(self, visitor: Mapping[str, str], sweep_id: str, query: Query) -> cost_answers.SearchCost:
        """What the search of a sweep cost."""
        return cost_answers.search_cost(await self._api.get(visitor, f"{sweep_path(sweep_id)}/search-cost", query))

    async def published_sweeps(self, visitor: Mapping[str, str]) -> sweep_answers.PublishedSweeps:
        """Published sweeps, fitted as one's own are."""
        return sweep_answers.published_sweeps(await self._api.get(visitor, f"{API}/published-sweeps"))

    async def reproductions(self, visitor: Mapping[str, str], query: Query) -> reproduction_answers.ReproductionPage:
        """What `noisescale reproduce` has stored, newest first, without what it found."""
        return reproduction_answers.reproduction_page(await self._api.get(visitor, f"{API}/reproductions", query))

    async def reproduction(self, visitor: Mapping[str, str], reproduction_id: str) -> reproduction_answers.Reproduction:
        """One reproduction with what it found."""
        path = f"{API}/reproductions/{checked_id(reproduction_id, 'reproduction')}"
        return reproduction_answers.reproduction(await self._api.get(visitor, path))

    async def hindsight(self, visitor: Mapping[str, str]) -> record_answers.AdviceRecord:
        """How often the advice was right, by the sweeps that the visitor sees."""
        return record_answers.record(await self._api.get(visitor, f"{API}/hindsight"))
