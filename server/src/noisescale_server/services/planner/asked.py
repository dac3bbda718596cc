"""What a planner's table is made from: B_crit, a target, batches, machines, prices and limits."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from noisescale_core.advice.evidence.critical_belief import Critical
from noisescale_core.advice.limits.pace import Pace
from noisescale_core.advice.limits.pricing import Priced, priced
from noisescale_core.advice.question import Limits
from noisescale_core.theory.intervals import Estimate, LogError
from noisescale_core.theory.prices import ExchangeRate
from noisescale_core.theory.trade_off import TradeOff
from noisescale_core.theory.what_if import RestOfPlan


@dataclass(frozen=True, slots=True)
class Machines:
    """What a step runs on.

    Attributes:
        pace: Time, devices and price of a step; None where nobody said.
        usd_per_hour_besides: Price of an hour of the run besides its devices.
        kilowatts_per_device: Mean power of a device; None where nobody said.
        max_devices: That there are, where devices are added with the batch; None: any number.
    """

    pace: Pace | None
    usd_per_hour_besides: float = 0.0
    kilowatts_per_device: float | None = None
    max_devices: int | None = None

    @property
    def examples_of_a_device(self) -> float | None:
        """Examples that one device puts through a step, whatever the batch; None where devices do not come with it."""
        return None if self.pace is None else self.pace.of_a_device


EXACT = LogError(0.0, 0.0)


@dataclass(frozen=True)
class AskedPlan:
    """What the table is made from.

    Attributes:
        critical: B_crit in examples, with its errors and odds.
        plan: Steps to the target at one batch; None: everything is relative.
        batches: In examples.
        machines: What a step runs on.
        rate: What a step is worth.
        given: Deadlines and budgets.
        target: What is reached, in words.
        present_batch: In use now; None where none is.
        example: What is sampled independently, as a word.
        num_examples: Size of the data; None where nobody said.
        plan_error: Log error of the plan's steps: that of a sweep's curve; none where the plan is a wish.
    """

    critical: Critical
    plan: RestOfPlan | None
    batches: Sequence[float]
    machines: Machines
    rate: ExchangeRate
    given: Limits
    target: str
    present_batch: float | None = None
    example: str = "example"
    num_examples: float | None = None
    plan_error: LogError = EXACT

    @property
    def critical_batch(self) -> Estimate:
        """B_crit in examples, with its errors."""
        return self.critical.estimate

    @cached_property
    def priced(self) -> Priced:
        """The best batch at this price, without limits: of least expected cost."""
        return priced(self.critical, self.rate)

    def trade_off_at(self, critical_batch: float) -> TradeOff | None:
        """Steps and examples to the target, were this the critical batch; None without a plan.

        Args:
            critical_batch: B_crit in examples.
        """
        if self.plan is None:
            return None
        return TradeOff.from_run(
            steps=self.plan.steps, batch=self.plan.batch, critical_batch=critical_batch, target=self.target
        )
