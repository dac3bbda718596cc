"""What tools that advise and explain answer with, as JSON schemas for an assistant."""

from pydantic import Field

from noisescale.agents.schemas import NoiseScale, Part, Quantity


class Odds(Part):
    """How likely the recommended batch is cheaper than the present one, and what is at stake; shares of cost."""

    probability: float
    saving: float = Field(description="expected, as a share of the present cost")
    worst_case: float = Field(description="extra cost in the worst case of 20; below 0 it saves even then")
    present_regret: float = Field(description="expected extra cost of the present batch over the best one")
    regret: float = Field(description="the same of the recommended batch")
    assumes: str


class LearningRate(Part):
    """The learning rate that goes with the recommended batch."""

    current: float | None = None
    recommended: float
    low: float
    high: float
    rule: str


class AtPreference(Part):
    """The batch for somebody who values steps otherwise."""

    preference: float
    batch_size: float
    text: str


class Waste(Part):
    """What of the run so far tiny batches would not have needed; the price says how much of that is worth saving."""

    share: Quantity
    examples: Quantity
    usd: Quantity | None = None
    hours: Quantity | None = None


class Recommendation(Part):
    """Which batch size, why, and how sure. Batch sizes are counted in `unit`."""

    decision: str
    headline: str
    reason: str
    unit: str
    source: str = Field(description="who answers: server, or published (sweeps of others, before any run)")
    effect: str | None = None
    current_batch_size: float | None = None
    recommended_batch_size: float | None = None
    in_units: Quantity | None = Field(None, description="the recommended batch in tokens, where examples hold several")
    odds: Odds | None = None
    best_batch: Quantity | None = Field(None, description="at this price, by all errors, before limits and rounding")
    critical_batch: Quantity | None = None
    noise_scale: NoiseScale | None = None
    price: str | None = Field(None, description="what a step is taken to be worth, and who said so")
    otherwise: list[AtPreference] = Field([])
    learning_rate: LearningRate | None = None
    limits: str | None = None
    schedule: list[str] = Field([], description="stages of the rest of the run")
    waste: Waste | None = None
    warnings: list[str] = Field([])
    next_step: str | None = None
    note: str | None = None
    page: str | None = None


class Row(Part):
    """What training to the target takes at a batch size."""

    batch_size: float
    num_devices: float | None = None
    steps: Quantity | None = None
    examples: Quantity | None = None
    hours: Quantity | None = None
    usd: Quantity | None = None
    extra_cost: float | None = Field(None, description="over the best batch at the price, as a share")
    breaks: list[str] = Field([], description="limits that this batch does not meet")


class Limit(Part):
    """The batches that a limit allows."""

    name: str
    text: str
    is_possible: bool
    is_binding: bool


class WhatIf(Part):
    """A question that planners ask next."""

    name: str
    text: str
    row: Row | None = None


class Plan(Part):
    """The batch to run within limits, and what others take. Batch sizes are counted in `unit`."""

    unit: str
    target: str
    critical_batch: Quantity
    critical_batch_text: str
    price: str
    recommended: Row | None = Field(
        None, description="left out where no batch meets the limits: `limits_text` says why"
    )
    present: Row | None = None
    limits_text: str
    limits: list[Limit] = Field([])
    rows: list[Row] = Field([])
    what_ifs: list[WhatIf] = Field([])
    assumes: str | None = None


class Rows(Part):
    """The measured rows that a number rests on."""

    run_id: str
    first_step: int | None = None
    last_step: int | None = None
    num_updates: int | None = None
    estimator: str | None = None
    num_ranks: int | None = None
    measured_every: int | None = Field(None, description="steps")
    address: str = Field(description="of the REST API, which gives these rows")


class Explanation(Part):
    """Where a number comes from."""

    number: str
    value: Quantity
    formula: str
    worked: str = Field(description="the formula with this run's numbers in it")
    rows: Rows
    assumes: list[str] = Field([])
    source: str = Field(description="paper, section")
    documentation: str = Field(description="page of the documentation")
