"""What a plan says in words: the batch to run, what it takes, which limit binds, and what else could be done."""

import math

from noisescale_dashboard.answers.common import Interval
from noisescale_dashboard.answers.plans import Limit, Row, TradeOff, WhatIf
from noisescale_dashboard.figures.planning import plan_quantities
from noisescale_dashboard.figures.planning.plan_quantities import between, hours_words
from noisescale_dashboard.figures.planning.time_against_cost import devices_words
from noisescale_dashboard.figures.planning.which_limit_binds import at_least, at_most, label, range_words, tightest
from noisescale_dashboard.planner.query import SPOT_DEFAULTS, View
from noisescale_dashboard.words.number_format import (
    NOTHING,
    THIN_RANGE,
    count,
    money,
    ratio,
    share,
    si,
    significant,
    span,
)

WHAT_IFS = {
    "twice_the_devices": "Twice the devices",
    "half_the_budget": "Half the budget",
    "cheapest": "Cheapest",
    "fastest": "Fastest",
}


def noun_of(plan: TradeOff) -> str:
    """The plural of what one example is."""
    if plan.units_per_example == 1 and plan.unit:
        return plan.unit
    return plan.example if plan.example.endswith("s") else plan.example + "s"


def headline(plan: TradeOff) -> str:
    """The batch to run, on how many devices, how long it takes and what it costs; or that no batch meets the limits."""
    row = plan.recommended
    if row is None:
        return _no_batch(plan)
    return f"Batch {count(row.batch_size)}{_on_devices(row, plan)}: {takes(row, plan)}"


def _no_batch(plan: TradeOff) -> str:
    if plan.limited_batch is not None:
        return "No whole batch lies inside the limits"
    names = [limit.name for limit in plan.limits if limit.is_binding]
    if len(names) == 1:
        return f"No batch meets the {names[0]}"
    return f"No batch meets both limits: {' and '.join(names)}" if names else "No batch meets the limits"


def _on_devices(row: Row, plan: TradeOff) -> str:
    """How many run it, where that goes with the batch."""
    return f" on {devices_words(row.num_devices)}" if row.num_devices and plan.adds_devices else ""


def takes(row: Row, plan: TradeOff) -> str:
    """What a batch takes: "10.3 h for $596", or as much of it as is known."""
    time, cost = _time(row, plan), money(row.usd.value) if row.usd.value is not None else ""
    if time and cost:
        return f"{time} for {cost}"
    if time:
        return f"{time}, {si(row.examples.value)} {noun_of(plan)}"
    if row.steps.value is not None:
        return f"{si(row.steps.value)} steps, {si(row.examples.value)} {noun_of(plan)}"
    steps, examples = row.steps_factor.value, row.examples_factor.value
    return f"{ratio(steps)} the fewest steps, {ratio(examples)} the fewest {noun_of(plan)}"


def _time(row: Row, plan: TradeOff) -> str:
    """In words; nothing where only the batch in use has one, which compares with no other."""
    return hours_words(row.hours.value) if row.hours.value is not None and plan.has_hours else ""


def takes_between(row: Row, plan: TradeOff) -> str:
    """The intervals behind `takes`: "9.1 – 12 h, $520 – 690"."""
    found = [hours_span(row.hours), money_span(row.usd)]
    if not row.usd.value:
        found = [hours_span(row.hours) or _plain_span(row.steps, "steps"), _plain_span(row.examples, noun_of(plan))]
    if row.steps.value is None:
        found = [_factor_span(row.steps_factor, "steps"), _factor_span(row.examples_factor, noun_of(plan))]
    return ", ".join(words for words in found if words)


def hours_span(hours: Interval) -> str:
    """In short: "9.1 – 12 h"; nothing where it is not known."""
    if hours.low is None or hours.high is None:
        return ""
    return between(hours.low, hours.high, hours_words)


def money_span(usd: Interval) -> str:
    """In short: "$520 – 690"; nothing where it is not known."""
    if usd.low is None or usd.high is None:
        return ""
    return between(usd.low, usd.high, money)


def _plain_span(found: Interval, noun: str) -> str:
    if found.low is None or found.high is None:
        return ""
    return f"{between(found.low, found.high, si)} {noun}"


def _factor_span(found: Interval, noun: str) -> str:
    if found.low is None or found.high is None:
        return ""
    return f"{between(found.low, found.high, significant)} × the fewest {noun}"


def lede(plan: TradeOff, present_word: str) -> str:
    """Intervals, which batches meet the limits, and how the batch in use stands; what is possible where none does."""
    if plan.recommended is None:
        return " ".join([plan.limit_text, *_possible(plan)])
    between = takes_between(plan.recommended, plan)
    said = [
        "As planned." if _is_as_planned(plan.recommended) else f"95 %: {between}.",
        _reach(plan),
        _range(plan),
        _present(plan, present_word),
    ]
    return " ".join(words for words in said if words)


def _is_as_planned(row: Row) -> bool:
    """Whether the plan itself says what this batch takes: nothing is predicted, and nothing uncertain."""
    steps = row.steps
    return None not in (steps.low, steps.high) and math.isclose(steps.low or 0.0, steps.high or 0.0, rel_tol=1e-6)


def _reach(plan: TradeOff) -> str:
    reach = plan.limited_interval if plan.limits else plan.best_batch
    if reach.low is None:
        return ""
    if reach.high is None or reach.low == 0:
        missed = "deadline" if reach.high is None else "budget"
        return f"Best batch {_batch(reach.value)}; at an end of B_crit's interval none meets the {missed}."
    return f"Best batch {_batch(reach.value)}, {_batch(reach.low)}{THIN_RANGE}{_batch(reach.high)}."


def _batch(batch: float | None) -> str:
    return NOTHING if batch is None else count(max(round(batch), 1))


def _range(plan: TradeOff) -> str:
    bounded = [limit for limit in plan.limits if limit.is_possible and (limit.low or limit.high is not None)]
    if not bounded:
        return ""
    low = max((limit.low or 0.0 for limit in bounded), default=0.0)
    high = min((limit.high for limit in bounded if limit.high is not None), default=None)
    which = {1: "the limit", 2: "both limits"}.get(len(bounded), "all limits")
    if low and high is not None:
        return f"Any batch from {at_least(low)} to {at_most(high)} meets {which}."
    if high is not None:
        return f"Any batch of {at_most(high)} or less meets {which}."
    return f"Any batch of {at_least(low)} or more meets {which}."


def _present(plan: TradeOff, word: str) -> str:
    row = plan.present
    if row is None or plan.recommended is None or row.batch_size == plan.recommended.batch_size:
        return "" if row is None else f"It is the batch {word}."
    named = f"The batch {word}, {count(row.batch_size)},"
    if not row.breaks:
        return f"{named} takes {takes(row, plan)}."
    return f"{named} {' and '.join(_missed(row, limit) for limit in plan.broken_by(row))}."


def _missed(row: Row, limit: Limit) -> str:
    found = plan_quantities.taken(row, limit.quantity).value
    if found is None or limit.asked is None:
        return limit.breaks
    return f"{limit.breaks} by {plan_quantities.in_words(max(found - limit.asked, 0.0), limit.quantity)}"


def _possible(plan: TradeOff) -> list[str]:
    return [
        f"{one.text.rstrip('.')}: batch {count(one.row.batch_size)}{_on_devices(one.row, plan)}, {takes(one.row, plan)}"
        f" ({takes_between(one.row, plan)})."
        for one in plan.what_ifs
        if one.row is not None
    ]


def binds(plan: TradeOff) -> str:
    """Which limit is the tightest, in words."""
    limit = tightest(plan)
    if limit is None:
        return "No limits: the price of a step decides." if not plan.limits else "No limit binds."
    if limit.is_binding:
        return f"{_several(plan)}: {plan.limit_text}" if plan.limit_text else _several(plan)
    called = label(limit)
    # a sign and its number stay on one line
    words = range_words(limit).replace("≤ ", "≤\u00a0").replace("≥ ", "≥\u00a0")
    return f"No limit binds; the nearest is {called[:1].lower()}{called[1:]}: {words}."


def _several(plan: TradeOff) -> str:
    called = [label(limit) for limit in plan.limits if limit.is_binding]
    return f"{' and '.join(called)} {'bind' if len(called) > 1 else 'binds'}"


def what_if(one: WhatIf, plan: TradeOff) -> tuple[str, str]:
    """Title and text of a plan beside the recommended one."""
    title = (WHAT_IFS if plan.has_hours else {**WHAT_IFS, **_fewest(plan)}).get(one.name, one.name)
    if one.row is None:
        return title, one.text
    row = one.row
    if plan.recommended is not None and row.batch_size == plan.recommended.batch_size:
        return title, f"The recommended batch. {one.text}"
    said = f"batch {count(row.batch_size)}{_on_devices(row, plan)}: {takes(row, plan)} ({takes_between(row, plan)})"
    against = _against(row, plan.recommended)
    reading = "; ".join(limit.breaks for limit in plan.broken_by(row))
    found = "; ".join([said, *([against] if against else []), *([reading] if reading else [])])
    return title, f"{found}. {one.text}" if one.name == "fastest" else found


def _fewest(plan: TradeOff) -> dict[str, str]:
    """Where no time is known, the cheapest takes the fewest examples and the fastest the fewest steps."""
    return {"cheapest": f"Fewest {noun_of(plan)}", "fastest": "Fewest steps"}


def _against(row: Row, other: Row | None) -> str:
    """In short: "2.5 h sooner for $303 more"; nothing without hours and money."""
    if other is None or None in (row.hours.value, other.hours.value) or row.batch_size == other.batch_size:
        return ""
    saved = (other.hours.value or 0.0) - (row.hours.value or 0.0)
    time = f"{hours_words(abs(saved))} {'sooner' if saved > 0 else 'later'}"
    if row.usd.value is None or other.usd.value is None:
        return time
    more = row.usd.value - other.usd.value
    return f"{time} for {money(abs(more))} {'more' if more > 0 else 'less'}"


def basis(plan: TradeOff) -> str:
    """What the plan rests on: S_min, E_min, B_crit with its interval, and where it comes from."""
    critical = plan.critical_batch
    known = f"B_crit {significant(critical.value)}"
    if critical.low is not None and critical.low != critical.high:
        known += f" [{span(critical.low, critical.high)}]"
    else:
        known += ", taken as exact"
    if plan.has_plan:
        known = f"S_min {si(plan.min_steps)}, E_min {si(plan.min_examples)}, {known}"
    return f"{known} {noun_of(plan)}, to {plan.target}. {plan.critical_batch_text}"


def spot_words(view: View) -> str:
    """What is assumed of interruptible devices."""
    known = {name: view.get(name) for name in SPOT_DEFAULTS}
    assumed = [name for name, value in known.items() if value is None]
    values = {name: SPOT_DEFAULTS[name] if value is None else float(value) for name, value in known.items()}
    said = f"{share(values['spot_share'])} of the price, {values['stops']:g} interruptions per device-hour"
    counted = "Interruptions are counted for the devices of the batch in use, at any batch."
    return f"{said}{', assumed until you say otherwise' if assumed else ''}. {counted}"


def growth_words(plan: TradeOff) -> str:
    """How the noise scale is taken to go on in the schedules."""
    if plan.growth == 0:
        return "Assumes the noise scale stays as it is."
    return f"Assumes the noise scale goes on as it has (progress^{plan.growth:.2f}).".replace("^-", "^−")
