"""What a planner asks of the trade-off: the critical batch, a target, batches, machines, prices and limits."""

import math
from typing import TYPE_CHECKING, Annotated, Self
from uuid import UUID

from pydantic import BaseModel, Field

from noisescale_core.advice.evidence.critical_belief import Critical, stated_critical
from noisescale_core.advice.limits.pace import Pace, spot_of
from noisescale_core.advice.question import Question
from noisescale_core.errors import DomainError
from noisescale_core.theory.cost import StepTime
from noisescale_core.theory.intervals import estimate_from_interval
from noisescale_core.theory.what_if import RestOfPlan
from noisescale_server.api.ingest.wire_schemas import Text
from noisescale_server.api.recommendation.schemas import IN_A_QUERY, asked_of, question_model
from noisescale_server.services.planner.asked import Machines
from noisescale_server.services.planner.source import Source
from noisescale_server.services.platform.errors import refuse

MAX_ROWS = 64
Size = Annotated[float, Field(gt=1e-9, le=1e15)]
Number = Annotated[float, Field(gt=1e-9, le=1e15)]


if TYPE_CHECKING:
    QuestionFields = BaseModel
else:
    QuestionFields = question_model("PlannersQuestion", IN_A_QUERY)


class TradeOffQuery(QuestionFields):
    """One critical batch, of a run or said, and what it is to be planned with."""

    run_id: Annotated[UUID | None, Field(description="critical batch, plan, step time and price of this run")] = None
    project: Annotated[Text | None, Field(description="of the task")] = None
    task: Annotated[Text | None, Field(description="critical batch and target from its earlier sweeps and runs")] = None
    optimizer: Annotated[Text | None, Field(description="of the task's next run; default: the one used last")] = None
    sweep_target: Annotated[
        float | None, Field(ge=-1e15, le=1e15, description="of the task's newest sweep, fitted at it")
    ] = None
    critical_batch: Annotated[Size | None, Field(description="in examples")] = None
    critical_batch_low: Annotated[Size | None, Field(description="lower end of its 95 % interval")] = None
    critical_batch_high: Annotated[Size | None, Field(description="upper end of its 95 % interval")] = None
    steps: Annotated[Number | None, Field(description="to the target, at at_batch")] = None
    at_batch: Annotated[Size | None, Field(description="the batch of steps")] = None
    target: Annotated[str, Field(min_length=1, max_length=200)] = "the target"
    batch_size: list[Size] = Field(default=[], max_length=MAX_ROWS, description="rows; may be repeated")
    smallest: Annotated[Size | None, Field(description="first row of a range of doublings")] = None
    largest: Annotated[Size | None, Field(description="last row of a range of doublings")] = None
    rows_per_doubling: Annotated[int, Field(ge=1, le=8, description="of a range; 1 for doublings alone")] = 1
    step_seconds: Annotated[Number | None, Field(description="at at_batch, or at the run's present batch")] = None
    overhead_seconds: Annotated[Number | None, Field(description="α of a step's time α + β B, same devices")] = None
    seconds_per_example: Annotated[Number | None, Field(description="β of it")] = None
    num_devices: Annotated[
        int | None, Field(ge=1, le=2**24, description="at at_batch; of a run or task: they stay whatever the batch")
    ] = None
    max_devices: Annotated[
        int | None, Field(ge=1, le=2**24, description="that there are, where devices are added with the batch")
    ] = None
    usd_per_hour_besides: Annotated[float, Field(ge=0, le=1e12)] = 0.0
    kilowatts_per_device: Annotated[Number | None, Field()] = None
    growth: Annotated[float | None, Field(gt=-1, le=10, description="q of φ ∝ progress^q, for the policies")] = None

    def checked(self) -> Self:
        """This query.

        Raises:
            InvalidInput: Where two of its parts exclude each other or one needs another.
        """
        sources = (self.run_id is not None, self.critical_batch is not None, self.task is not None)
        if sum(sources) != 1:
            raise refuse("critical_batch", "give one of critical_batch, run_id, and task with project")
        if (self.project is None) != (self.task is None):
            raise refuse("project", "a task is named with its project")
        if self.sweep_target is not None and self.task is None:
            raise refuse("sweep_target", "a target of a sweep needs the task of the sweep", self.sweep_target)
        if self.critical_batch is None and (self.critical_batch_low or self.critical_batch_high):
            raise refuse("critical_batch", "an interval needs critical_batch")
        if (self.overhead_seconds is None) != (self.seconds_per_example is None):
            raise refuse("overhead_seconds", "a line of step times needs overhead_seconds and seconds_per_example")
        if self.overhead_seconds is not None and self.step_seconds is not None:
            raise refuse("step_seconds", "give step_seconds, or overhead_seconds and seconds_per_example, not both")
        if (self.steps is None) != (self.at_batch is None):
            raise refuse("steps", "steps to the target and at_batch, the batch that takes them, need each other")
        if self.smallest is not None and self.largest is not None and self.smallest > self.largest:
            raise refuse("smallest", f"smallest must not exceed largest, got {self.smallest:g} and {self.largest:g}")
        self.asked()
        return self

    def asked(self) -> Question:
        """What a step is worth, deadlines, budgets and what the devices hold.

        Raises:
            InvalidInput: If a step's worth was said twice.
        """
        return asked_of(self)

    def asked_with(self, source: Source | None) -> Question:
        """The same with what the project of a run or task says where nobody has.

        Args:
            source: The run or task; None: no project.
        """
        return self.asked() if source is None else source.asked

    def critical(self, source: Source | None) -> Critical:
        """The critical batch with its errors and odds: as said, or the run's.

        Args:
            source: The run.

        Raises:
            InvalidInput: If it lies outside its interval.
        """
        if source is not None:
            return source.critical
        assert self.critical_batch is not None
        value = self.critical_batch
        low, high = self.critical_batch_low or value, self.critical_batch_high or value
        try:
            return stated_critical(estimate_from_interval(value, low=low, high=high))
        except DomainError as error:
            raise refuse("critical_batch", str(error), value) from error

    def plan(self, source: Source | None) -> RestOfPlan | None:
        """Steps to the target at one batch; None where nobody said.

        Args:
            source: The run.
        """
        if self.steps is not None and self.at_batch is not None:
            return RestOfPlan(self.steps, self.at_batch)
        return None if source is None else source.plan

    def batches(self, critical_batch: float, pace: Pace | None, present_batch: float | None) -> list[float]:
        """The rows: those asked for, or doublings over a range about the critical batch.

        Args:
            critical_batch: In examples.
            pace: What a step takes; None where nobody said.
            present_batch: In use, a row of every range too; None where none is.

        Raises:
            InvalidInput: If the range holds too many doublings.
        """
        if self.batch_size and self.smallest is None and self.largest is None:
            return self.batch_size
        present = [] if present_batch is None else [present_batch]
        smallest, largest = self._range(critical_batch, pace)
        doublings = math.log2(largest / smallest)
        num_rows = math.floor(doublings * self.rows_per_doubling + 1e-9) + 1
        if num_rows + len(self.batch_size) >= MAX_ROWS:
            raise refuse("largest", f"at most {MAX_ROWS} rows, got {num_rows} in the range: narrow it")
        ladder = (smallest * 2.0 ** (row / self.rows_per_doubling) for row in range(num_rows))
        return [*self.batch_size, *present, *ladder]

    def _range(self, critical_batch: float, pace: Pace | None) -> tuple[float, float]:
        """The ends as asked, else powers of two about 32 times around the critical batch, from a device's batch on."""
        least = _power_of_two(critical_batch / 32)
        of_a_device = Machines(pace).examples_of_a_device
        if of_a_device is not None and of_a_device <= critical_batch:
            least = max(least, float(math.ceil(of_a_device)))
        smallest = self.smallest or min(least, self.largest or math.inf)
        return smallest, self.largest or max(_power_of_two(critical_batch * 32), smallest)

    def pace(self, source: Source | None, plan: RestOfPlan | None) -> Pace | None:
        """What a step takes; None where nobody said.

        Args:
            source: The run, whose own times and price stand where none are said.
            plan: Whose batch a single step time belongs to.

        Raises:
            InvalidInput: If interruptions leave no time to work.
        """
        own = None if source is None else source.pace
        line = None
        present = None if source is None else source.present_batch
        batch = self.at_batch or present or (self.critical_batch if plan is None else plan.batch)
        seconds = self.step_seconds
        if self.overhead_seconds is not None and self.seconds_per_example is not None:
            line = StepTime(self.overhead_seconds, self.seconds_per_example)
            seconds = None if batch is None else line.seconds(batch)
        if batch is None or (seconds is None and own is None):
            return None
        asked = self.asked_with(source)
        devices = asked.num_devices or (None if own is None else own.num_devices)
        price = asked.usd_per_device_hour or (None if own is None else own.usd_per_device_hour)
        try:
            spot = spot_of(asked, devices or 1)
        except DomainError as error:
            raise refuse("interruptions_per_device_hour", str(error), asked.interruptions_per_device_hour) from error
        if seconds is None:
            assert own is not None
            hardware = "devices_with_the_batch" if self._adds_devices(asked, source) else own.hardware
            return Pace(own.batch, own.step_seconds, hardware, own.line, devices, price, spot)
        if line is not None:
            return Pace(batch, seconds, "line", line, devices, price, spot)
        stays = asked.fixed_hardware or (devices == 1 and not self._adds_devices(asked, source))
        return Pace(batch, seconds, "one_batch" if stays else "devices_with_the_batch", None, devices, price, spot)

    def _adds_devices(self, asked: Question, source: Source | None) -> bool:
        """Whether the reader has more devices than the one that a step was timed on."""
        stays = asked.fixed_hardware or (source is not None and asked.num_devices is not None)
        return not stays and self.max_devices is not None and self.max_devices > 1


def _power_of_two(batch: float) -> float:
    """The nearest one that can be run: 1 at least."""
    return 2.0 ** round(math.log2(max(batch, 1.0)))
