"""What the reader has, as ranges of batches: deadlines, budgets, memory, devices, data.

Hours and money need the time of a step and are said in hours and USD. Limits that rest on the plan depend on B_crit:
the plan at the present batch is the target, and another batch takes S = S_min + E_min / B steps to it
(McCandlish et al. 2018, arXiv:1812.06162, eq. 2.11).
"""

import math
from dataclasses import replace

from noisescale_core.advice.limits.pace import SHARE, Pace
from noisescale_core.advice.limits.worth import STEPS_TO_TIME, Missing
from noisescale_core.advice.parts.numbers import number
from noisescale_core.advice.parts.parts import RunSetting
from noisescale_core.advice.question import Limits
from noisescale_core.theory import limits
from noisescale_core.theory.cost import SECONDS_PER_HOUR, StepTime
from noisescale_core.theory.limits import Limit, LimitKind
from noisescale_core.theory.trade_off import TradeOff

SIZE_NAMES = ("dataset_size", "num_examples", "num_train_examples", "train_examples")
"""Names by which a run's config tells how many examples its data hold."""


def missing_for(run: RunSetting, given: Limits, pace: Pace | None) -> Missing | None:
    """What the limits cannot be held against; None where all can.

    Args:
        run: As it stands.
        given: The limits.
        pace: Time and price of a step.
    """
    if not given.of_plan:
        return None
    names = " and ".join(given.of_plan)
    if run.steps_left <= 0:
        return Missing(
            f"A deadline or a budget ({names}) is held against the rest of the plan, and no plan reaches beyond now.",
            f"Pass planned_steps{f' beyond {run.steps_done:,}' if run.planned_steps else ''} to noisescale.init().",
        )
    if (given.max_hours is not None or given.max_usd is not None) and pace is None:
        return Missing(f"{names}: no step time has been measured yet.", "Train a few hundred steps more.")
    if given.max_usd is not None and pace is not None and not pace.usd_per_step(pace.batch):
        known = {"num_devices": pace.num_devices, "usd_per_device_hour": pace.usd_per_device_hour}
        missing = " and ".join(name for name, value in known.items() if not value)
        return Missing(
            f"max_usd: what a step costs is not known without {missing}.",
            f"Pass {missing} to noisescale.init(), or with the question.",
        )
    return _not_timed(run, given, pace) if pace is not None and pace.hardware == "one_batch" else None


def _not_timed(run: RunSetting, given: Limits, pace: Pace) -> Missing | None:
    """That the present batch misses a limit of time or money, where no step time at another batch is known."""
    assert run.batch_size is not None
    found = _of_time_and_money(
        TradeOff.from_run(
            steps=run.steps_left, batch=run.batch_size, critical_batch=run.batch_size, target="the end of the plan"
        ),
        given,
        pace,
    )
    missed = next((limit for limit in found if limit.words), None)
    if missed is None:
        return None
    return Missing(missed.words, f"Train {STEPS_TO_TIME:,} steps or more at another batch, or loosen the limit.")


def trade_off_of(run: RunSetting, critical_batch: float) -> TradeOff | None:
    """Steps and examples from now to the end of the plan; None without a plan.

    Args:
        run: As it stands.
        critical_batch: B_crit in examples.
    """
    if run.steps_left <= 0 or run.batch_size is None:
        return None
    return TradeOff.from_run(
        steps=run.steps_left, batch=run.batch_size, critical_batch=critical_batch, target="the end of the plan"
    )


def limits_at(critical_batch: float, run: RunSetting, given: Limits, pace: Pace | None) -> list[Limit]:
    """All limits, were this the critical batch.

    Args:
        critical_batch: B_crit in examples.
        run: As it stands.
        given: The limits; what `missing_for` misses is left out.
        pace: Time and price of a step.
    """
    to_plan = trade_off_of(run, critical_batch)
    found = [] if to_plan is None else limits_of_plan(to_plan, given, pace)
    if given.num_devices is not None:
        found.append(limits.every_device_busy(num_devices=given.num_devices))
    if given.examples_per_device is not None:
        found.append(
            limits.memory(
                max_examples_per_device=given.examples_per_device,
                num_devices=given.num_devices or run.num_devices or 1,
                max_micro_batches=given.max_micro_batches,
            )
        )
    size = data_size(run)
    if size is not None:
        found.append(limits.data_set(num_examples=size))
    return found


def data_size(run: RunSetting) -> float | None:
    """Examples that the run's data hold, where its config tells.

    Args:
        run: With its config.
    """
    for name in SIZE_NAMES:
        value = run.config.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value < math.inf:
            return float(value)
    return None


def limits_of_plan(to_plan: TradeOff, given: Limits, pace: Pace | None) -> list[Limit]:
    """Deadlines and budgets, held against a target.

    Args:
        to_plan: Steps and examples to it.
        given: The limits; hours and USD are left out without a step time and a price.
        pace: Time and price of a step.
    """
    found = []
    if given.max_steps is not None:
        found.append(limits.deadline_in_steps(to_plan, max_steps=given.max_steps))
    if given.max_examples is not None:
        found.append(limits.budget_of_examples(to_plan, max_examples=given.max_examples))
    return found if pace is None else [*found, *_of_time_and_money(to_plan, given, pace)]


def _of_time_and_money(to_plan: TradeOff, given: Limits, pace: Pace) -> list[Limit]:
    seconds, price, found = pace.step_seconds * pace.time_factor, pace.usd_per_step(pace.batch), []
    if given.max_hours is not None:
        found.append(_deadline(to_plan, pace, given.max_hours, seconds))
    if given.max_usd is not None and price:
        found.append(_budget(to_plan, pace, given.max_usd, price / seconds, seconds))
    return found


def _deadline(to_plan: TradeOff, pace: Pace, hours: float, seconds: float) -> Limit:
    """At most so many hours; a step at the present batch takes `seconds`."""
    if pace.hardware == "line" and pace.line is not None:
        limit = _on_same_devices(to_plan, pace.line, hours * SECONDS_PER_HOUR, pace.line.seconds(pace.batch) / seconds)
        return replace(limit, kind=LimitKind.SECONDS, asked=hours)
    each = seconds / SECONDS_PER_HOUR
    if pace.hardware == "one_batch":
        return _certain(to_plan, LimitKind.SECONDS, hours, each, pace.batch)
    return _per_step(to_plan, LimitKind.SECONDS, hours, each)


def _budget(to_plan: TradeOff, pace: Pace, most: float, per_second: float, seconds: float) -> Limit:
    """At most so many USD; a step at the present batch takes `seconds`, each of which costs `per_second`."""
    kind, price = LimitKind.USD, per_second * seconds
    if pace.hardware == "line" and pace.line is not None:
        limit = _on_same_devices(to_plan, pace.line, most / per_second, pace.line.seconds(pace.batch) / seconds)
        return replace(limit, kind=kind, asked=most, least=(limit.least or 0.0) * SECONDS_PER_HOUR * per_second)
    if pace.hardware == "flat":
        return _per_step(to_plan, kind, most, price)
    if pace.hardware == "one_batch":
        return _certain(to_plan, kind, most, price, pace.batch)
    each = price / pace.batch
    limit = limits.budget_of_examples(to_plan, max_examples=most / each)
    limit = replace(limit, kind=kind, asked=most, least=to_plan.min_examples * each)
    one = pace.of_a_device
    if one is None or not limit.is_possible or limit.high >= one * SHARE:
        return limit
    takes = to_plan.examples(one) * each
    words = f"{most:,.10g} USD are too few: {to_plan.target} takes {number(takes)} USD on one device."
    return Limit(kind, math.inf, 0.0, most, takes, to_plan.target, words)


def _certain(to_plan: TradeOff, kind: LimitKind, most: float, each: float, present: float) -> Limit:
    """The batches that surely meet it, where a step is timed at the present batch alone and takes `each` there.

    On the same devices a step takes no longer at a smaller batch, and at a larger one in proportion at most.
    """
    here = to_plan.steps(present) * each
    if here > most * (1 + limits.ROUNDING):
        unit = kind.unit.format(example="example")
        words = (
            f"{most:,.10g} {unit} are too few for the batch of {number(present)}, which takes {number(here)}; how long "
            "a step takes at another batch is not known, as one has been timed."
        )
        return Limit(kind, math.inf, 0.0, most, here, to_plan.target, words)
    low = limits.deadline_in_steps(to_plan, max_steps=most / each).low
    high = limits.budget_of_examples(to_plan, max_examples=most / each * present).high
    return Limit(kind, min(low, present), max(high, present), most, here, to_plan.target)


def _per_step(to_plan: TradeOff, kind: LimitKind, most: float, each: float) -> Limit:
    limit = limits.deadline_in_steps(to_plan, max_steps=most / each)
    return replace(limit, kind=kind, asked=most, least=to_plan.min_steps * each)


def _on_same_devices(to_plan: TradeOff, line: StepTime, most: float, then: float) -> Limit:
    """At most so many seconds, each worth `then` of the line's; the least hours that any batch takes stand in it."""
    seconds, per_example, overhead = most, line.seconds_per_example / then, line.overhead_seconds / then
    if overhead <= per_example * to_plan.critical_batch * limits.ROUNDING:
        limit = limits.budget_of_examples(to_plan, max_examples=seconds / per_example)
        return replace(limit, least=to_plan.min_examples * per_example / SECONDS_PER_HOUR)
    return limits.deadline_in_seconds(
        to_plan, max_seconds=seconds, overhead_seconds=overhead, seconds_per_example=per_example
    )
