"""What another batch would do to the plan that one has: steps, examples, hours, money, each with its interval.

Needs no S_min: the plan says how many steps the target takes at the present batch, B_crit how they change
(McCandlish et al. 2018, arXiv:1812.06162, eq. 2.11). The price and the time of a step are taken as exact.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from noisescale_core.errors import DomainError
from noisescale_core.theory.cost import SECONDS_PER_HOUR, Rates
from noisescale_core.theory.domain import require_any, require_positive
from noisescale_core.theory.intervals import Carried, Estimate
from noisescale_core.theory.trade_off import examples_factor, step_efficiency, steps_factor

_PIECES = "give the resolved stretches of a run"


# What a logged run wasted, and what it would have taken at another batch: from one run's own noise scales.
#
# A real step at batch B makes w = B / (B + φ) ideal steps. The ideal steps of a run are what it achieved, so any other
# batch needs S' = Σ w (1 + φ / B') steps for the same. Exact under the quadratic model of McCandlish et al. 2018,
# arXiv:1812.06162, eq. 2.7 and D.1: it assumes the best learning rate at both batches and a noise scale that depends on
# the progress alone.


@dataclass(frozen=True, slots=True)
class LoggedPiece:
    """A part of a run in which batch and noise scale were measured.

    Attributes:
        num_steps: Optimizer steps.
        batch: B in examples.
        noise_scale: φ in examples.
        low: Lower end of its interval; the value itself where none is given.
        high: Upper end.
    """

    num_steps: float
    batch: float
    noise_scale: float
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        """Refuse what was not measured.

        Raises:
            DomainError: If a number is out of range, or the noise scale outside its interval.
        """
        # of each stretch of a run: the two calls below take longer than the rest
        if not (0 < self.num_steps < math.inf and 0 < self.batch < math.inf and 0 < self.noise_scale < math.inf):
            require_positive("leave out pieces without steps", num_steps=self.num_steps, batch=self.batch)
            require_positive("leave out pieces where it is not resolved", noise_scale=self.noise_scale)
        if not 0 <= self.least <= self.noise_scale <= self.most < math.inf:
            raise DomainError(
                f"noise_scale must lie between low and high, got {self.noise_scale:g} with low={self.low} and "
                f"high={self.high}: leave out pieces where it is not bounded"
            )

    @property
    def least(self) -> float:
        """The lower end, or the value."""
        return self.noise_scale if self.low is None else self.low

    @property
    def most(self) -> float:
        """The upper end, or the value."""
        return self.noise_scale if self.high is None else self.high

    @property
    def ideal_steps(self) -> float:
        """Progress of the piece, in steps of a huge batch."""
        return self.num_steps * step_efficiency(self.noise_scale, self.batch)


@dataclass(frozen=True, slots=True)
class ErrorRange:
    """A number between the ends that it takes where every piece errs to the same side: wider than any confidence needs.

    Attributes:
        value: At the measured noise scales.
        low: The least that the pieces' intervals allow.
        high: The most.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """What a run would have taken at another constant batch.

    Attributes:
        batch: B' in examples.
        steps: S', optimizer steps.
        examples: E' = B' S'.
    """

    batch: float
    steps: ErrorRange
    examples: ErrorRange


def had_we_used(pieces: Sequence[LoggedPiece], *, batch: float) -> Counterfactual:
    """Steps and examples of the same progress at a constant batch B': S' = Σ n w (1 + φ / B').

    Args:
        pieces: Oldest first.
        batch: B' in examples.

    Raises:
        DomainError: If there are no pieces or the batch is not positive.
    """
    require_positive("a batch holds at least one example", batch=batch)
    require_any("pieces", len(pieces), _PIECES)
    values, lows, highs = [], [], []
    for piece in pieces:
        size, least, most = piece.batch, piece.least, piece.most
        steps = piece.num_steps * (size / batch)
        values.append(steps * (batch + piece.noise_scale) / (size + piece.noise_scale))
        # each term is monotone in its φ, rising where B' < B: its ends are those of the interval
        ends = steps * (batch + least) / (size + least), steps * (batch + most) / (size + most)
        lows.append(min(ends))
        highs.append(max(ends))
    found = ErrorRange(math.fsum(values), math.fsum(lows), math.fsum(highs))
    return Counterfactual(batch, found, ErrorRange(batch * found.value, batch * found.low, batch * found.high))


@dataclass(frozen=True, slots=True)
class RestOfPlan:
    """What is left to do at the present batch.

    Attributes:
        steps: Optimizer steps to the target.
        batch: B in examples.
    """

    steps: float
    batch: float

    def __post_init__(self) -> None:
        """Refuse what plans nothing.

        Raises:
            DomainError: If a number is not positive.
        """
        require_positive("a plan that is done has nothing to predict", steps=self.steps)
        require_positive("a batch holds at least one example", batch=self.batch)


@dataclass(frozen=True, slots=True)
class Hardware:
    """What the new batch would run on.

    Attributes:
        step_seconds: Seconds of a step at the new batch.
        num_devices: Devices that are paid for.
        rates: Prices; None without.
    """

    step_seconds: float
    num_devices: int
    rates: Rates | None = None

    def __post_init__(self) -> None:
        """Refuse what runs nothing.

        Raises:
            DomainError: If a number is not positive.
        """
        require_positive("time a few steps", step_seconds=self.step_seconds)
        require_positive("count the devices that are paid for", num_devices=self.num_devices)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What the plan takes at another batch.

    Attributes:
        batch: In examples.
        steps: Optimizer steps.
        examples: Examples.
        hours: Wall time; None without hardware.
        device_hours: Devices × hours; None without hardware.
        usd: Money; None without rates.
        kilowatt_hours: Energy; None where the power is not known.
    """

    batch: float
    steps: Carried
    examples: Carried
    hours: Carried | None
    device_hours: Carried | None
    usd: Carried | None
    kilowatt_hours: Carried | None


def what_if(plan: RestOfPlan, *, batch: float, critical_batch: Estimate, hardware: Hardware | None = None) -> WhatIf:
    """What the plan takes at another batch, every number with its statistical, model and whole interval.

    Args:
        plan: What is left to do at the present batch.
        batch: The other batch, in examples.
        critical_batch: B_crit of what is left, in examples.
        hardware: What the other batch runs on; None for steps and examples alone.

    Raises:
        DomainError: If the batch is not positive.
    """
    require_positive("a batch holds at least one example", batch=batch)

    def steps_at(critical: float) -> float:
        return plan.steps * steps_factor(from_batch=plan.batch, to_batch=batch, critical_batch=critical)

    def examples_at(critical: float) -> float:
        factor = examples_factor(from_batch=plan.batch, to_batch=batch, critical_batch=critical)
        return plan.steps * plan.batch * factor

    steps, examples = critical_batch.through(steps_at), critical_batch.through(examples_at)
    if hardware is None:
        return WhatIf(batch, steps, examples, None, None, None, None)
    hours = steps.times(hardware.step_seconds / SECONDS_PER_HOUR)
    rates, num_devices = hardware.rates, hardware.num_devices
    power = None if rates is None else rates.kilowatts_per_device
    hourly = None if rates is None else num_devices * rates.usd_per_device_hour + rates.usd_per_hour_besides
    return WhatIf(
        batch=batch,
        steps=steps,
        examples=examples,
        hours=hours,
        device_hours=hours.times(num_devices),
        usd=None if hourly is None else hours.times(hourly),
        kilowatt_hours=None if power is None else hours.times(num_devices * power),
    )
