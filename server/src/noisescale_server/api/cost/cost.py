"""/api/v1/cost and what belongs to it: boards of time and money to a target, growth of compute, cost of searching."""

from datetime import date
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from noisescale_core.advice.question import Question
from noisescale_server.analysis.cost.bottleneck import Lever
from noisescale_server.analysis.cost.growth import UTILISATION, Device, DeviceTrend, Growth
from noisescale_server.analysis.cost.search import FewerTrials
from noisescale_server.analysis.cost.techniques import Technique
from noisescale_server.api.cost.schemas import (
    LeaderboardAnswer,
    SubmissionsAnswer,
    leaderboard_answer,
    submissions_answer,
)
from noisescale_server.api.platform.deps import ReadSession, RunId, Text
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.api.recommendation.schemas import question_model
from noisescale_server.api.sweeps.schemas import Value
from noisescale_server.api.sweeps.sweeps import SweepId
from noisescale_server.services.cost import growth, leaderboard, search_cost, submissions, time_of_run
from noisescale_server.services.cost.board_rows import Wanted
from noisescale_server.services.cost.growth import PublishedLine, RunCompute
from noisescale_server.services.cost.leaderboard import LOSS_SAID, SortedBy
from noisescale_server.services.cost.search_cost import Bill, OfBatchSize
from noisescale_server.services.cost.time_of_run import LargerBatch, Memory
from noisescale_server.services.platform.errors import refuse

router = APIRouter(tags=["cost"])

PRICES = (
    "usd_per_device_hour",
    "spot_price_share",
    "interruptions_per_device_hour",
    "restart_hours",
    "checkpoint_hours",
)


def _written(day: object) -> object:
    """Raise for seconds since 1970, which pydantic takes for a day, too."""
    if isinstance(day, str) and day.lstrip("+-").replace(".", "", 1).isdigit():
        raise ValueError("must be a day, such as 2018-09-07")
    return day


Day = Annotated[date, BeforeValidator(_written)]
Size = Annotated[float, Field(gt=1e-9, le=1e15)]


if TYPE_CHECKING:
    Prices = BaseModel
    Price = BaseModel
else:
    Prices = question_model("CostPrices", PRICES)
    Price = question_model("CostPrice", PRICES[:1])


class LeaderboardQuery(Prices):
    """Which runs, what they have to reach, and what machines cost."""

    target: Annotated[Value, Field(description="of the metric")]
    metric: Annotated[Text | None, Field(min_length=1, description="name of a logged one; default: the loss")] = None
    goal: Literal["min", "max"] = "min"
    project: Text | None = None
    task: Text | None = None
    critical_batch: Annotated[Size | None, Field(description="in examples: parts batch and algorithm")] = None
    sort: SortedBy = "hours"
    limit: Annotated[int, Field(ge=1, le=1_000)] = 100


class SubmissionsQuery(BaseModel):
    """Which entries of DAWNBench."""

    model_config = ConfigDict(extra="forbid")

    task: Annotated[Text, Field(description="ImageNet, CIFAR10 or SQuAD")] = "ImageNet"
    until: Annotated[Day | None, Field(description="the last day, included")] = None
    critical_batch: Annotated[Size | None, Field(description="in the entries' batches")] = None


class GrowthQuery(Price):
    """Which runs, and how their compute is counted."""

    project: Text | None = None
    task: Text | None = None
    parameters: Annotated[Text, Field(min_length=1, description="key of the config: number of parameters")] = (
        "num_parameters"
    )
    utilisation: Annotated[float, Field(gt=0, le=1, description="share of a device's peak")] = UTILISATION
    level: Annotated[float, Field(ge=0.5, le=0.999, description="confidence level")] = 0.95


class SearchCostQuery(Price):
    """At which target, and what machines cost."""

    target: Annotated[Value | None, Field(description="default: the sweep's hardest")] = None


class TimeQuery(BaseModel):
    """A larger batch per device, to price two ways to it; the three need each other."""

    model_config = ConfigDict(extra="forbid")

    examples_per_device: Annotated[Size | None, Field(description="of one device in a step")] = None
    overhead_seconds: Annotated[float | None, Field(ge=0, le=1e9, description="α of a pass")] = None
    seconds_per_example: Annotated[Size | None, Field(description="β")] = None


class GrowthAnswer(Answer):
    """Compute of runs over time; `of_priced` is made up of `spending` and `per_usd`, where they follow lines."""

    runs: tuple[RunCompute, ...]
    num_left_out: int
    why_left_out: str
    growth: Growth | None
    spending: Growth | None
    per_usd: Growth | None
    of_priced: Growth | None
    lines: tuple[PublishedLine, ...]
    published_source: str
    peaks_source: str
    devices: tuple[Device, ...]
    device_trend: DeviceTrend
    level: float


class SearchCostAnswer(Answer):
    """What the search of a sweep cost, and what fewer trials would have found."""

    unit: str
    target: float | None
    bill: Bill
    sizes: tuple[OfBatchSize, ...]
    critical_batches: tuple[FewerTrials, ...]


class TimeAnswer(Answer):
    """Where a run's time goes, what can be done, and what it uses of known techniques."""

    shares: dict[str, float]
    missing: tuple[str, ...]
    unexplained: float | None
    levers: tuple[Lever, ...]
    techniques: tuple[Technique, ...]
    memory: Memory


@router.get("/cost/leaderboard")
async def get_leaderboard(query: Annotated[LeaderboardQuery, Query()], session: ReadSession) -> LeaderboardAnswer:
    """Runs of one's own by hours and USD to a target, with the front, the records, and what made them faster."""
    wanted = Wanted(
        target=query.target,
        metric=query.metric,
        rises=query.goal == "max",
        project=query.project,
        task=query.task,
        critical_batch=query.critical_batch,
        prices=_prices(query),
    )
    found = await leaderboard.of_runs(session, wanted, sorted_by=query.sort, limit=query.limit)
    return leaderboard_answer(found, metric=query.metric or LOSS_SAID, target=query.target, goal=query.goal)


@router.get("/cost/submissions")
async def get_submissions(query: Annotated[SubmissionsQuery, Query()]) -> SubmissionsAnswer:
    """DAWNBench's entries of a task, and the published factors next to what they say."""
    return submissions_answer(submissions.of_task(query.task, query.until, query.critical_batch), query.until)


@router.get("/cost/growth")
async def get_growth(query: Annotated[GrowthQuery, Query()], session: ReadSession) -> GrowthAnswer:
    """Compute of runs against their dates, and its doubling time with an interval."""
    found = await growth.of_runs(
        session,
        project=query.project,
        task=query.task,
        parameters=query.parameters,
        utilisation=query.utilisation,
        level=query.level,
        prices=_prices(query),
    )
    return GrowthAnswer(**{name: getattr(found, name) for name in found.__slots__}, level=query.level)


@router.get("/sweeps/{sweep_id}/search-cost")
async def get_search_cost(
    sweep_id: SweepId, query: Annotated[SearchCostQuery, Query()], session: ReadSession
) -> SearchCostAnswer:
    """Every trial in hours and USD, the best of n trials, and B_crit with fewer of them."""
    row, found = await search_cost.of_sweep(session, sweep_id, target=query.target, prices=_prices(query))
    return SearchCostAnswer(unit=row.sweep.unit, **{name: getattr(found, name) for name in found.__slots__})


@router.get("/runs/{run_id}/time")
async def get_time(run_id: RunId, query: Annotated[TimeQuery, Query()], session: ReadSession) -> TimeAnswer:
    """Where the run's time goes, the cheapest lever, and the checklist of techniques."""
    found = await time_of_run.of_run(session, run_id, _larger(query))
    return TimeAnswer(**{name: getattr(found, name) for name in found.__slots__})


def _prices(query: BaseModel) -> Question:
    said = {name: getattr(query, name) for name in PRICES if name in type(query).model_fields}
    return Question(**said)


def _larger(query: TimeQuery) -> LargerBatch | None:
    given = (query.examples_per_device, query.overhead_seconds, query.seconds_per_example)
    if all(one is None for one in given):
        return None
    examples, overhead, each = given
    if examples is None or overhead is None or each is None:
        raise refuse("examples_per_device", "needs overhead_seconds and seconds_per_example: a pass takes α + β m")
    return LargerBatch(examples, overhead, each)
