"""What the reader has, as ranges of batches: deadlines, budgets, memory, devices, data.

Hours and money need the time of a step and are said in hours and USD. Limits that rest on the plan depend on B_crit:
the plan at the present batch is the target, and another batch takes S = S_min + E_min / B steps to it
(McCandlish et al. 2018, arXiv:1812.06162, eq. 2.11).
"""

import math
from dataclasses import replace

from noisescale_core.advice.pace import Pace
from noisescale_core.advice.parts import RunSetting
from noisescale_core.advice.question import Limits
from noisescale_core.advice.worth import Missing
from noisescale_core.theory import limits
from noisescale_core.theory.cost import SECONDS_PER_HOUR
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
    return None


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
    if pace is None:
        return found
    if given.max_hours is not None:
        found.append(_deadline(to_plan, pace, given.max_hours))
    price = pace.usd_per_step(pace.batch)
    if given.max_usd is not None and price:
        found.append(_budget(to_plan, pace, LimitKind.USD, given.max_usd, price))
    return found


def _deadline(to_plan: TradeOff, pace: Pace, hours: float) -> Limit:
    if pace.hardware not in ("devices_with_the_batch", "flat"):
        limit = _on_same_devices(to_plan, pace, hours * SECONDS_PER_HOUR)
        return replace(limit, kind=LimitKind.SECONDS, asked=hours)
    each = pace.seconds(pace.batch) / SECONDS_PER_HOUR
    return _per_step(to_plan, LimitKind.SECONDS, hours, each)


def _budget(to_plan: TradeOff, pace: Pace, kind: LimitKind, most: float, price: float) -> Limit:
    """At most so much of what a step at the present batch takes `price` of, devices and hours being what it costs."""
    if pace.hardware == "line":
        per_second = price / pace.seconds(pace.batch)
        limit = _on_same_devices(to_plan, pace, most / per_second)
        return replace(limit, kind=kind, asked=most, least=(limit.least or 0.0) * SECONDS_PER_HOUR * per_second)
    if pace.hardware == "flat":
        return _per_step(to_plan, kind, most, price)
    each = price / pace.batch
    limit = limits.budget_of_examples(to_plan, max_examples=most / each)
    return replace(limit, kind=kind, asked=most, least=to_plan.min_examples * each)


def _per_step(to_plan: TradeOff, kind: LimitKind, most: float, each: float) -> Limit:
    limit = limits.deadline_in_steps(to_plan, max_steps=most / each)
    return replace(limit, kind=kind, asked=most, least=to_plan.min_steps * each)


def _on_same_devices(to_plan: TradeOff, pace: Pace, seconds: float) -> Limit:
    """At most so many seconds; the least hours that any batch takes stand in it."""
    # the time of a step is a line in its batch through two of its points; without an overhead it goes as the examples
    per_example = (pace.seconds(2 * pace.batch) - pace.seconds(pace.batch)) / pace.batch
    overhead = pace.seconds(pace.batch) - per_example * pace.batch
    if overhead <= per_example * pace.batch * limits.ROUNDING:
        limit = limits.budget_of_examples(to_plan, max_examples=seconds / per_example)
        return replace(limit, least=to_plan.min_examples * per_example / SECONDS_PER_HOUR)
    return limits.deadline_in_seconds(
        to_plan, max_seconds=seconds, overhead_seconds=overhead, seconds_per_example=per_example
    )
