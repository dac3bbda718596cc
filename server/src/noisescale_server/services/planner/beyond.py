"""What devices beyond the recommended batch buy instead: runs side by side, trials of a search, a larger model."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from noisescale_core.advice.limits.predictions import Banded, Span, banded
from noisescale_core.theory import beyond
from noisescale_core.theory.beyond import LargerModel
from noisescale_server.services.planner.asked import AskedPlan
from noisescale_server.services.planner.limits import Inside
from noisescale_server.services.planner.rows import Row, row_at

ASSUMED_TIMES: Final = 4
"""Devices that there are, where nobody said how many: so many times those that the best or the critical batch fills."""

HOURS_PER_DAY = 24.0

OF_TOKENS = "tokens"
"""The unit of a language model, of which alone a law is published."""

NOT_KNOWN = (
    "Not known: the published laws are of language models. Compare tests, over runs of your own, whether a larger "
    "model has a larger noise scale at equal loss."
)
OF_LANGUAGE_MODELS = (
    "At as many tokens a parameter B_crit goes as tokens^0.44, published between 0.42 and 0.68; from scratch, one "
    "epoch, Adam or AdamW. A model that is split over devices without loss is assumed, so this is the least time. "
    "What loss it reaches is not known here; nor whether its size moves B_crit at the same tokens, where published "
    "points disagree."
)
NONE_LEFT = "The recommended batch fills all devices: none are left for more parameters."
NEEDS_DEVICES = (
    "Needs devices that come with the batch: how many run it, and that more can be added. How fast parts of devices "
    "that stay would be, nobody has timed."
)
NEEDS_A_BATCH = "Needs a batch inside the limits: what no batch meets, no copy of it meets either."
NEEDS_TWO = "There is one device: nothing is left beside the run."


@dataclass(frozen=True, slots=True)
class Way:
    """The devices divided among runs that train side by side.

    Attributes:
        num_runs: Side by side.
        num_devices: Of each run.
        num_idle: Devices that no run gets.
        is_best: As many as fit of the recommended batch.
        row: What one of the runs takes, and its batch.
        efficiency: Share of its examples that is put to use, B_crit / (B_crit + B).
        times_as_many: Runs finished in a time, divided by as many one after another on all devices.
        runs_per_day: Finished by all together; None without a step time and a plan.
        best_of: How far the best of them lies above their mean, in standard deviations between runs.
        chance_of_top: Probability that as many random trials hold one among the best 5 % of all settings.
    """

    num_runs: int
    num_devices: int
    num_idle: int
    is_best: bool
    row: Row
    efficiency: Banded
    times_as_many: Banded
    runs_per_day: Banded | None
    best_of: float
    chance_of_top: float


@dataclass(frozen=True, slots=True)
class Search:
    """A random search whose trials are runs of the recommended batch, side by side.

    Attributes:
        num_trials: Of which one is among the best 5 % of all settings, with 95 %.
        num_rounds: In which they run.
        hours: All rounds; None without a step time and a plan.
        usd: All trials; None without that or a price.
    """

    num_trials: int
    num_rounds: int
    hours: Banded | None
    usd: Banded | None


@dataclass(frozen=True, slots=True)
class Beyond:
    """What the devices beyond the recommended batch buy.

    Attributes:
        num_devices: That there are.
        is_assumed: Nobody said how many there are.
        num_used: By the recommended batch; None where none is recommended.
        of_critical_batch: Devices that B_crit fills: one run wastes half of its examples there.
        ways: The devices divided, from one run on all of them; empty where `missing` says what is.
        search: None without ways.
        larger_model: As many times as large as devices are left for; None where no law is known, or none are left.
        larger_model_text: What that rests on, or why it is not known.
        missing: What it would need; None where nothing is missing.
    """

    num_devices: int | None
    is_assumed: bool
    num_used: int | None
    of_critical_batch: Banded | None
    ways: tuple[Way, ...]
    search: Search | None
    larger_model: LargerModel | None
    larger_model_text: str
    missing: str | None


def beyond_the_batch(asked: AskedPlan, found: Inside, *, unit: str) -> Beyond:
    """The devices that there are, divided among runs of the recommended batch and fewer, larger ones.

    Args:
        asked: B_crit, plan, machines and how many devices there are.
        found: The recommended batch and the limits.
        unit: What is counted, by which a language model is known.
    """
    of_a_device = asked.machines.examples_of_a_device
    if of_a_device is None:
        return _nothing(NEEDS_DEVICES)
    critical = asked.critical_batch
    filled = banded(critical.through(lambda batch: batch / of_a_device))
    if found.batch is None:
        return _nothing(NEEDS_A_BATCH, of_critical_batch=filled)
    used = _devices_of(found.batch, of_a_device)
    said = asked.machines.max_devices
    there = said or ASSUMED_TIMES * max(used, _devices_of(critical.value, of_a_device))
    if there < 2:
        return _nothing(NEEDS_TWO, of_critical_batch=filled)
    numbers = beyond.ways_to_divide(there, used)
    ways = tuple(_way(asked, found, there, number, of_a_device, used) for number in numbers)
    model, said_of_model = _larger_model(asked, found.batch, there / used, unit)
    return Beyond(
        num_devices=there,
        is_assumed=said is None,
        num_used=used,
        of_critical_batch=filled,
        ways=ways,
        search=_search(asked, found, max(there // used, 1)),
        larger_model=model,
        larger_model_text=said_of_model,
        missing=None,
    )


def _nothing(why: str, of_critical_batch: Banded | None = None) -> Beyond:
    return Beyond(None, False, None, of_critical_batch, (), None, None, "", why)


def _devices_of(batch: float, of_a_device: float) -> int:
    """Whole devices, one at least; one part in 10⁹ less, as a batch that divides evenly needs no device more."""
    return max(1, math.ceil(batch / of_a_device * (1 - 1e-9)))


def _way(asked: AskedPlan, found: Inside, there: int, num_runs: int, of_a_device: float, used: int) -> Way:
    is_best = num_runs == there // used
    # the recommended batch itself, where its devices fit so often; else all that there are, in equal parts
    each = used if is_best else there // num_runs
    batch = float(found.batch) if is_best and found.batch is not None else each * of_a_device
    row, of_all = row_at(asked, batch, found.allowed), there * of_a_device
    critical = asked.critical_batch
    ahead = critical.through(
        lambda at: beyond.times_as_many(num_runs=num_runs, batch_of_each=batch, batch_of_all=of_all, critical_batch=at)
    )
    return Way(
        num_runs=num_runs,
        num_devices=each,
        num_idle=there - num_runs * each,
        is_best=is_best,
        row=row,
        efficiency=banded(critical.through(lambda at: 1.0 if at == math.inf else at / (at + batch))),
        times_as_many=banded(ahead),
        runs_per_day=_through(row.hours, lambda hours: num_runs * HOURS_PER_DAY / hours),
        best_of=beyond.best_of(num_runs),
        chance_of_top=beyond.chance_of_top(num_runs),
    )


def _through(found: Banded | None, function: Callable[[float], float]) -> Banded | None:
    """A monotone function of a number and of its ends, in order; None of what is not known."""
    if found is None:
        return None

    def span(low: float, high: float) -> Span:
        return Span(*sorted((function(low), function(high))))

    both = span(found.low, found.high)
    statistical, model = (span(ends.low, ends.high) for ends in (found.statistical, found.model))
    return Banded(function(found.value), both.low, both.high, statistical, model, found.level)


def _search(asked: AskedPlan, found: Inside, side_by_side: int) -> Search:
    assert found.batch is not None, "asked of a batch alone"
    trials = beyond.trials_needed()
    rounds = math.ceil(trials / side_by_side)
    row = row_at(asked, float(found.batch), found.allowed)
    return Search(
        num_trials=trials,
        num_rounds=rounds,
        hours=_through(row.hours, lambda hours: hours * rounds),
        usd=_through(row.usd, lambda usd: usd * trials),
    )


def _larger_model(asked: AskedPlan, batch: float, times: float, unit: str) -> tuple[LargerModel | None, str]:
    """What so many times the parameters take, and what that rests on; or why it is not known."""
    if unit != OF_TOKENS:
        return None, NOT_KNOWN
    if times <= 1:
        return None, NONE_LEFT
    known = asked.critical_batch.interval
    return beyond.larger_model(times=times, batch=batch, critical_batch=known), OF_LANGUAGE_MODELS
