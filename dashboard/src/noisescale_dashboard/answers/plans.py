"""What the API says to a planner, as frozen dataclasses; words as in docs/rest.md, section Trade-off."""

from dataclasses import dataclass

from noisescale_dashboard.answers.common import UNKNOWN, Interval, Json, decoded


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
class Way:
    """The devices that there are, divided among runs that train side by side."""

    num_runs: int
    row: Row
    num_devices: int = 1
    num_idle: int = 0
    is_best: bool = False
    efficiency: Interval = UNKNOWN
    times_as_many: Interval = UNKNOWN
    runs_per_day: Interval = UNKNOWN
    best_of: float = 0.0
    chance_of_top: float = 0.0


@dataclass(frozen=True, slots=True)
class Search:
    """A random search whose trials are runs of the recommended batch."""

    num_trials: int
    num_rounds: int
    hours: Interval = UNKNOWN
    usd: Interval = UNKNOWN


@dataclass(frozen=True, slots=True)
class LargerModel:
    """A language model so many times as large, its tokens in proportion: factors on what the run takes."""

    times: float
    critical_batch: Interval = UNKNOWN
    hours: Interval = UNKNOWN
    device_hours: Interval = UNKNOWN


@dataclass(frozen=True, slots=True)
class Beyond:
    """What devices beyond the recommended batch buy; without ways, `missing` says what it would need."""

    num_devices: int | None = None
    is_assumed: bool = False
    num_used: int | None = None
    of_critical_batch: Interval = UNKNOWN
    ways: tuple[Way, ...] = ()
    search: Search | None = None
    larger_model: LargerModel | None = None
    larger_model_text: str = ""
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class TradeOff:
    """What a target takes at any batch size, inside limits."""

    critical_batch: Interval = UNKNOWN
    best_batch: Interval = UNKNOWN
    rows: tuple[Row, ...] = ()
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
    beyond: Beyond = Beyond()

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
        """Whether the time of a step is known, and not at the batch in use alone."""
        return self.has_plan and sum(row.hours.value is not None for row in self.rows) > 1

    @property
    def adds_devices(self) -> bool:
        """Whether devices come with the batch, so that each batch has a number of them."""
        return self.step is None or self.step.are_devices_added

    @property
    def is_on_one_device(self) -> bool:
        """Whether it runs on one device, which stays."""
        return self.step is not None and self.step.num_devices == 1 and not self.step.are_devices_added


def trade_off(data: Json) -> TradeOff:
    """The trade-off in `data`."""
    return decoded(TradeOff, data)
