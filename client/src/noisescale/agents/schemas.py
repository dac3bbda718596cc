"""What tools that read answer with, as JSON schemas for an assistant: every number has its unit beside it."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Part(BaseModel):
    """A piece of an answer; what is not known is left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Quantity(Part):
    """A number with its 95 % interval; without a value it is not known, and `low` may still bound it."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str


class NoiseScale(Quantity):
    """The gradient noise scale of a window of steps."""

    state: str = Field(description="resolved, tentative (no decision rests on it), or unresolved (no value)")
    z: float | None = Field(None, description="|G|² over its standard error")
    reason: str | None = Field(None, description="why there is no value")
    num_updates: int | None = None
    last_step: int | None = None


class Decision(Part):
    """What to do with the batch for somebody who says no price."""

    decision: str
    batch_size: float | None = None
    probability: float | None = Field(None, description="that this batch is cheaper than the present one")
    saving: float | None = Field(None, description="expected saving as a share of the present cost")
    reason: str | None = None


class RunLine(Part):
    """A run in a list. Batch sizes and noise scales are counted in `unit`."""

    id: str
    name: str
    project: str
    task: str
    status: str
    unit: str = Field(description="what batch sizes and noise scales are counted in")
    steps_done: int = 0
    planned_steps: int | None = None
    loss: float | None = None
    learning_rate: float | None = None
    batch_size: float | None = None
    noise_scale: NoiseScale
    decision: Decision
    diverged_at_step: int | None = None
    page: str = Field(description="address of the run's page")


class Runs(Part):
    """Runs in the order that was asked for."""

    total: int = Field(description="how many fit; as many as `runs` holds are shown")
    order: str
    runs: list[RunLine]


class RunDetails(RunLine):
    """One run."""

    optimizer: str | None = None
    num_devices: int | None = None
    device: str | None = None
    usd_per_device_hour: float | None = None
    example_efficiency: Quantity | None = Field(None, description="progress per example, of the best possible")
    step_efficiency: Quantity | None = Field(None, description="progress per step, of the best possible")
    last_data_at: str | None = Field(None, description="when the newest data arrived, UTC")
    tags: list[str] = []
    remarks: str | None = None
    notices: list[str] = Field([], description="what to know about the measurement")
    config: dict[str, Any] = Field({}, description="settings of the run, secrets masked")


class Columns(Part):
    """Columns of a series, oldest first; null where nothing is known."""

    step: list[int]
    noise_scale: list[float | None]
    low: list[float | None]
    high: list[float | None]
    loss: list[float | None]
    batch_size: list[float | None]


class Event(Part):
    """Something that happened in a run."""

    step: int
    what: str


class Course(Part):
    """A run's noise scale over its steps."""

    run_id: str
    kind: str
    unit: str
    latest: NoiseScale
    run_average: NoiseScale
    first_step: int | None = None
    last_step: int | None = None
    steps_per_point: int = Field(description="each point stands for so many steps")
    sampling: str = Field(description="in words: whether points were left out")
    points: Columns
    events: list[Event] = []


class Difference(Part):
    """A setting in which runs differ, by run id."""

    setting: str
    values: dict[str, Any]


class Ratio(Part):
    """The noise scale of a run over that of the first, where both have come equally far."""

    run_id: str
    to_run_id: str
    mean: Quantity | None = None
    num_points: int


class Comparison(Part):
    """Runs side by side."""

    runs: list[RunLine]
    ratios: list[Ratio]
    differences: list[Difference]


class SweepLine(Part):
    """A sweep: runs of one task at several batch sizes."""

    id: str
    name: str | None = None
    project: str
    task: str
    kind: str
    metric: str | None = Field(None, description="left out: the training loss")
    goal: str
    targets: list[float] = []
    num_runs: int


class Sweeps(Part):
    """Sweeps, the newest first."""

    total: int
    sweeps: list[SweepLine]


class Target(Part):
    """The fit at one target."""

    target: float
    critical_batch: Quantity
    min_steps: Quantity | None = None
    min_examples: Quantity | None = None
    batch_sizes: list[float]
    steps: list[float | None]
    refusal: str | None = Field(None, description="why there is no fit")
    findings: list[str] = Field([], description="what speaks against the fit")


class SweepFit(Part):
    """Critical batch size, fewest steps and fewest examples of a sweep, for each of its targets."""

    sweep_id: str
    name: str | None = None
    metric: str
    goal: str
    targets: list[Target]


class Changed(Part):
    """What was changed on the server."""

    id: str
    what: str
