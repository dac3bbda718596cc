"""What the API says to a planner, as frozen dataclasses; words as in docs/rest.md, section Trade-off."""

from dataclasses import dataclass, fields

from noisescale_dashboard.answers import UNKNOWN, Interval, Json, interval, picked


@dataclass(frozen=True, slots=True)
class Row:
    """What the target takes at one batch size; hours and what follows are empty where nobody said what a step takes."""

    batch_size: float
    num_devices: float | None = None
    steps_factor: Interval = UNKNOWN
    examples_factor: Interval = UNKNOWN
    steps: Interval = UNKNOWN
    examples: Interval = UNKNOWN
    hours: Interval = UNKNOWN
    usd: Interval = UNKNOWN
    device_hours: Interval = UNKNOWN
    breaks: tuple[str, ...] = ()

    @property
    def is_feasible(self) -> bool:
        """Whether it meets every limit."""
        return not self.breaks


@dataclass(frozen=True, slots=True)
class Limit:
    """The batches that one limit allows, and what it is called; both ends are None where it allows none."""

    kind: str
    name: str = ""
    breaks: str = ""
    role: str | None = None
    quantity: str | None = None
    asked: float | None = None
    low: float | None = None
    high: float | None = None
    is_possible: bool = True
    is_binding: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A plan beside the recommended one; without a row, `text` says why there is none."""

    name: str
    row: Row | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """What a step takes and costs."""

    batch_size: float
    seconds: float
    num_devices: int | None = None
    usd_per_device_hour: float | None = None
    are_devices_added: bool = True


@dataclass(frozen=True, slots=True)
class MeasuredRegret:
    """What a policy cost more than the best constant run, in training on held-out tasks; shares."""

    median: float
    p90: float
    median_right: float
    p90_right: float
    num_runs: int = 0
    num_runs_right: int = 0
    source: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    """A schedule of the batch, and what it is predicted to take; nothing is where it depends on what the run shows."""

    name: str
    text: str = ""
    first_batch: float | None = None
    last_batch: float | None = None
    steps: Interval = UNKNOWN
    examples: Interval = UNKNOWN
    hours: Interval = UNKNOWN
    usd: Interval = UNKNOWN
    relative_cost: float | None = None
    measured_regret: MeasuredRegret | None = None


@dataclass(frozen=True, slots=True)
class Targets:
    """What the task's newest sweep can be planned for."""

    metric: str | None = None
    values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class TradeOff:
    """What a target takes at any batch size, inside limits."""

    critical_batch: Interval
    best_batch: Interval
    rows: tuple[Row, ...]
    recommended: Row | None = None
    present: Row | None = None
    limited_batch: float | None = None
    limited_interval: Interval = UNKNOWN
    limits: tuple[Limit, ...] = ()
    limit_text: str = ""
    what_ifs: tuple[WhatIf, ...] = ()
    policies: tuple[Policy, ...] = ()
    policies_missing: str | None = None
    step: Step | None = None
    critical_batch_text: str = ""
    price_text: str = ""
    examples_per_step: float | None = None
    target: str = "the target"
    targets: Targets = Targets()
    assumes: str | None = None
    example: str = "example"
    unit: str = "examples"
    units_per_example: float = 1.0
    min_steps: float | None = None
    min_examples: float | None = None
    growth: float = 0.0

    def broken_by(self, row: Row) -> list[Limit]:
        """The limits that a row does not meet."""
        return [limit for limit in self.limits if limit.kind in row.breaks]

    def asked_of(self, quantity: str) -> float | None:
        """The limit of a quantity of the rows, as it was said; None without one."""
        return next((limit.asked for limit in self.limits if limit.quantity == quantity), None)

    @property
    def has_plan(self) -> bool:
        """Whether steps to the target are known, and not only their ratio to the least possible."""
        return self.min_steps is not None

    @property
    def has_hours(self) -> bool:
        """Whether the time of a step is known."""
        return self.has_plan and self.step is not None


def trade_off(data: Json) -> TradeOff:
    """The trade-off in `data`."""
    targets = data.get("targets") or {}
    nested = {
        "critical_batch": interval(data.get("critical_batch")),
        "best_batch": interval(data.get("best_batch")),
        "rows": tuple(_row(row) for row in data.get("rows") or ()),
        "recommended": _row_or_none(data.get("recommended")),
        "present": _row_or_none(data.get("present")),
        "limited_interval": interval(data.get("limited_interval")),
        "limits": tuple(picked(Limit, row) for row in data.get("limits") or ()),
        "what_ifs": tuple(_what_if(row) for row in data.get("what_ifs") or ()),
        "policies": tuple(_policy(row) for row in data.get("policies") or ()),
        "targets": picked(Targets, {**targets, "values": tuple(targets.get("values") or ())}),
        "step": picked(Step, data["step"]) if data.get("step") else None,
    }
    return picked(TradeOff, {**data, **nested})


_INTERVALS = tuple(field.name for field in fields(Row) if field.default is UNKNOWN)


def _row(data: Json) -> Row:
    numbers = {name: interval(data.get(name)) for name in _INTERVALS}
    return picked(Row, {**data, **numbers, "breaks": tuple(data.get("breaks") or ())})


def _row_or_none(data: Json | None) -> Row | None:
    return _row(data) if data else None


def _what_if(data: Json) -> WhatIf:
    return picked(WhatIf, {**data, "row": _row_or_none(data.get("row"))})


def _policy(data: Json) -> Policy:
    numbers = {name: interval(data.get(name)) for name in ("steps", "examples", "hours", "usd")}
    regret = data.get("measured_regret")
    return picked(Policy, {**data, **numbers, "measured_regret": picked(MeasuredRegret, regret) if regret else None})
