"""What the reader has, as ranges of batches: deadlines, budgets, memory, devices, data.

Hours and money need the time of a step and are said in hours and USD. Limits that rest on the plan depend on B_crit:
the plan at the present batch is the target, and another batch takes S = S_min + E_min / B steps to it
(McCandlish et al. 2018, arXiv:1812.06162, eq. 2.11).
"""

import math
from dataclasses import replace

from noisescale_core.advice.numbers import number
from noisescale_core.advice.pace import Pace
from noisescale_core.advice.parts import RunSoFar
from noisescale_core.advice.question import Limits
from noisescale_core.advice.worth import Missing
from noisescale_core.theory import limits
from noisescale_core.theory.cost import SECONDS_PER_HOUR
from noisescale_core.theory.limits import Limit, LimitKind
from noisescale_core.theory.trade_off import TradeOff

SIZE_NAMES = ("dataset_size", "num_examples", "num_train_examples", "train_examples")
"""Names by which a run's config tells how many examples its data hold."""

YOURS = {
    LimitKind.STEPS: "your deadline",
    LimitKind.SECONDS: "your deadline",
    LimitKind.EXAMPLES: "your budget",
    LimitKind.USD: "your budget",
    LimitKind.MEMORY: "your memory limit",
    LimitKind.DEVICES: "the least for your devices",
    LimitKind.DATA: "the size of your data",
}
"""A limit as the end of a headline."""

WHOLE, LARGEST_WRITTEN = 10.0, 1e15
"""Between these a limit is written as the whole batch next to it that meets it."""


def missing_for(run: RunSoFar, given: Limits, pace: Pace | None) -> Missing | None:
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


def trade_off_of(run: RunSoFar, critical_batch: float) -> TradeOff | None:
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


def limits_at(critical_batch: float, run: RunSoFar, given: Limits, pace: Pace | None) -> list[Limit]:
    """All limits, were this the critical batch.

    Args:
        critical_batch: B_crit in examples.
        run: As it stands.
        given: The limits; what `missing_for` misses is left out.
        pace: Time and price of a step.
    """
    to_plan = trade_off_of(run, critical_batch)
    found = [] if to_plan is None else limits_of_plan(to_plan, given, pace, example=run.example)
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


def data_size(run: RunSoFar) -> float | None:
    """Examples that the run's data hold, where its config tells.

    Args:
        run: With its config.
    """
    for name in SIZE_NAMES:
        value = run.config.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value < math.inf:
            return float(value)
    return None


def limits_of_plan(to_plan: TradeOff, given: Limits, pace: Pace | None, *, example: str = "example") -> list[Limit]:
    """Deadlines and budgets, held against a target.

    Args:
        to_plan: Steps and examples to it.
        given: The limits; hours and USD are left out without a step time and a price.
        pace: Time and price of a step.
        example: What is sampled independently, as a word.
    """
    found = []
    if given.max_steps is not None:
        steps = limits.deadline_in_steps(to_plan, max_steps=given.max_steps)
        found.append(
            _said(steps, LimitKind.STEPS, f"{_as_said(given.max_steps)} steps", f"{number(to_plan.min_steps)} steps")
        )
    if given.max_examples is not None:
        examples = limits.budget_of_examples(to_plan, max_examples=given.max_examples)
        least = f"{number(to_plan.min_examples)} {example}s"
        found.append(_said(examples, LimitKind.EXAMPLES, f"{_as_said(given.max_examples)} {example}s", least))
    if pace is None:
        return found
    if given.max_hours is not None:
        found.append(_deadline(to_plan, pace, given.max_hours))
    price = pace.usd_per_step(pace.batch)
    if given.max_usd is not None and price:
        found.append(_budget(to_plan, pace, given.max_usd, price))
    return found


def _deadline(to_plan: TradeOff, pace: Pace, hours: float) -> Limit:
    seconds, wording = hours * SECONDS_PER_HOUR, f"{_as_said(hours)} h"
    if pace.hardware in ("devices_with_the_batch", "flat"):
        limit = limits.deadline_in_steps(to_plan, max_steps=seconds / pace.seconds(pace.batch))
        least = to_plan.min_steps * pace.seconds(pace.batch) / SECONDS_PER_HOUR
    else:
        limit, least = _on_same_devices(to_plan, pace, seconds)
    return _said(limit, LimitKind.SECONDS, wording, f"{number(least)} h")


def _budget(to_plan: TradeOff, pace: Pace, usd: float, price: float) -> Limit:
    if pace.hardware == "line":
        usd_per_second = price / pace.seconds(pace.batch)
        limit, least_hours = _on_same_devices(to_plan, pace, usd / usd_per_second)
        least = least_hours * SECONDS_PER_HOUR * usd_per_second
    elif pace.hardware == "flat":
        limit = limits.deadline_in_steps(to_plan, max_steps=usd / price)
        least = to_plan.min_steps * price
    else:
        usd_per_example = price / pace.batch
        limit = limits.budget_of_examples(to_plan, max_examples=usd / usd_per_example)
        least = to_plan.min_examples * usd_per_example
    return _said(limit, LimitKind.USD, f"{_as_said(usd)} USD", f"{number(least)} USD")


def _on_same_devices(to_plan: TradeOff, pace: Pace, seconds: float) -> tuple[Limit, float]:
    """The limit and the least hours that any batch takes."""
    # the time of a step is a line in its batch through two of its points; without an overhead it goes as the examples
    per_example = (pace.seconds(2 * pace.batch) - pace.seconds(pace.batch)) / pace.batch
    overhead = pace.seconds(pace.batch) - per_example * pace.batch
    if overhead <= per_example * pace.batch * limits.ROUNDING:
        limit = limits.budget_of_examples(to_plan, max_examples=seconds / per_example)
        return limit, to_plan.min_examples * per_example / SECONDS_PER_HOUR
    limit = limits.deadline_in_seconds(
        to_plan, max_seconds=seconds, overhead_seconds=overhead, seconds_per_example=per_example
    )
    fastest = math.sqrt(overhead / per_example * to_plan.critical_batch)
    return limit, to_plan.steps(fastest) * pace.seconds(fastest) / SECONDS_PER_HOUR


def _said(limit: Limit, kind: LimitKind, what: str, least: str) -> Limit:
    if not limit.is_possible:
        text = f"{what} are too few: the end of the plan takes more than {least} at any batch size."
    elif limit.high == math.inf:
        text = f"{what} need a batch of {_at_least(limit.low)} or more."
    elif limit.low == 0:
        text = f"{what} allow a batch of {_at_most(limit.high)} or less."
    else:
        text = f"{what} need a batch between {_at_least(limit.low)} and {_at_most(limit.high)}."
    return replace(limit, kind=kind, text=text)


def _at_least(batch: float) -> str:
    return f"{math.ceil(batch):,}" if WHOLE <= batch < LARGEST_WRITTEN else number(batch)


def _at_most(batch: float) -> str:
    return f"{math.floor(batch):,}" if WHOLE <= batch < LARGEST_WRITTEN else number(batch)


def _as_said(value: float) -> str:
    return f"{value:,.10g}"
