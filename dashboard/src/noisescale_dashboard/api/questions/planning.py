"""What pages ask before a training: plans, prices, comparisons over runs and tasks."""

from collections.abc import Mapping, Sequence

from noisescale_dashboard.answers import advice
from noisescale_dashboard.answers import comparisons as compare_answers
from noisescale_dashboard.answers import cost as cost_answers
from noisescale_dashboard.answers import plans as planner_answers
from noisescale_dashboard.api.question_fields import question
from noisescale_dashboard.api.questions.asking import API, Questions, checked_id
from noisescale_dashboard.api.transport import Query


class PlanQuestions(Questions):
    """Plans, costs and comparisons."""

    async def first_batch(self, visitor: Mapping[str, str], query: Query) -> advice.Recommendation:
        """The batch of a language model before its first step."""
        return advice.recommendation(await self._api.get(visitor, f"{API}/recommendation", query))

    async def submissions(self, visitor: Mapping[str, str], query: Query) -> cost_answers.Board:
        """DAWNBench's entries of a task."""
        return cost_answers.board(await self._api.get(visitor, f"{API}/cost/submissions", query))

    async def leaderboard(self, visitor: Mapping[str, str], query: Query) -> cost_answers.Board:
        """Runs of the visitor's that reached a target."""
        return cost_answers.board(await self._api.get(visitor, f"{API}/cost/leaderboard", query))

    async def compute_growth(self, visitor: Mapping[str, str], query: Query) -> cost_answers.ComputeGrowth:
        """Compute of the visitor's runs over time."""
        return cost_answers.compute_growth(await self._api.get(visitor, f"{API}/cost/growth", query))

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
        asked = {**question(preference, limits), "run_id": str(checked_id(run_id, "run")), "batch_size": 1}
        return (await self.trade_off(visitor, asked)).limits
