"""What the rest of the plan takes at other batches, what the run would have taken so far, and what devices would buy.

Steps and examples follow B_crit (McCandlish et al. 2018, arXiv:1812.06162, eq. 2.11), hours and money the run's own
step times and price, which are taken as exact. Every interval is split into what the measurement and what the
model leaves open.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from noisescale_core.advice.limits.pace import Pace, stay
from noisescale_core.advice.parts.numbers import number
from noisescale_core.advice.parts.parts import Interval, RunSetting, RunSoFar, SpentPoint
from noisescale_core.advice.question import NOTHING_ASKED, Question
from noisescale_core.theory import machines
from noisescale_core.theory import what_if as theory
from noisescale_core.theory.cost import SECONDS_PER_HOUR
from noisescale_core.theory.intervals import Carried
from noisescale_core.theory.intervals import Interval as Ends
from noisescale_core.theory.what_if import LoggedPiece, RestOfPlan, what_if

if TYPE_CHECKING:
    from noisescale_core.advice.limits.pricing import Priced


@dataclass(frozen=True, slots=True)
class Span:
    """Two ends."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Banded:
    """A predicted number with its interval, by both errors and by either alone.

    Attributes:
        value: The number.
        low: Lower end by both errors.
        high: Upper end by both errors.
        statistical: The ends that the measurement alone leaves open.
        model: The ends that the spread of κ alone leaves open.
        level: Confidence of all three.
    """

    value: float
    low: float
    high: float
    statistical: Span
    model: Span
    level: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the rest of the plan takes at a batch.

    Attributes:
        batch_size: In examples.
        is_present: The batch in use.
        is_recommended: The batch of this advice.
        steps: Optimizer steps to the end of the plan.
        examples: Examples to it.
        units: The same in display units.
        hours: Wall time; None without step times that tell it.
        usd: Money; None without these, devices or a price.
        num_devices: Devices that run it; None where nobody said how many there are.
    """

    batch_size: float
    is_present: bool
    is_recommended: bool
    steps: Banded
    examples: Banded
    units: Banded
    hours: Banded | None
    usd: Banded | None
    num_devices: float | None


@dataclass(frozen=True, slots=True)
class Predictions:
    """The rest of the plan at several batches.

    Attributes:
        steps_left: Of the plan at the present batch.
        batches: The present, the recommended and those asked for, rising.
        assumes: What is assumed of a step's time; None without step times.
    """

    steps_left: int
    batches: tuple[Prediction, ...]
    assumes: str | None


@dataclass(frozen=True, slots=True)
class HadWeUsed:
    """What the run so far would have taken at the recommended batch: predicted.

    Attributes:
        batch_size: In examples.
        steps: Optimizer steps of the same progress.
        examples: Examples of the same progress.
        steps_taken: What it took.
        examples_taken: What it took.
        usd: At the money spent so far, in proportion to the examples; None without a price, or where devices stay.
        covered: Share of the examples spent for which the noise scale is resolved.
        text: What kind of number this is.
    """

    batch_size: float
    steps: Interval
    examples: Interval
    steps_taken: float
    examples_taken: float
    usd: Interval | None
    covered: float
    text: str = "predicted from the noise scale at each moment; the interval assumes that all errors go the same way"


@dataclass(frozen=True, slots=True)
class Exchange:
    """What another number of devices, and the batch with it, buys.

    Attributes:
        batch_size: In examples.
        time_factor: New time divided by the present one.
        compute_factor: New device-hours divided by the present ones.
    """

    batch_size: float
    time_factor: Interval
    compute_factor: Interval


@dataclass(frozen=True, slots=True)
class Parallelism:
    """How many devices the run can use, where they are added with the batch.

    Attributes:
        max_useful_devices: That the best batch at this price keeps busy.
        examples_per_device: Micro-batch that this counts with.
        greatest_speedup: How many times faster any number of devices could make the run.
        twice_the_devices: What doubling devices and batch buys.
        half_the_budget: What half the device-hours cost in time; None where no batch is that cheap.
        text: The same in words.
    """

    max_useful_devices: int
    examples_per_device: float
    greatest_speedup: Interval
    twice_the_devices: Exchange
    half_the_budget: Exchange | None
    text: str


def predictions(
    run: RunSetting, priced: "Priced", pace: Pace | None, *, recommended: int | None, asked: Iterable[float]
) -> Predictions | None:
    """The rest of the plan at the present, the recommended and any asked batch; None without a plan.

    Args:
        run: As it stands.
        priced: B_crit with its errors.
        pace: Time and price of a step.
        recommended: Batch of the advice.
        asked: Other batches, in examples.
    """
    if run.steps_left <= 0 or run.batch_size is None:
        return None
    batches = {run.batch_size, *asked, *([float(recommended)] if recommended is not None else [])}
    plan = RestOfPlan(run.steps_left, run.batch_size)
    found = tuple(_at(batch, plan, run, priced, pace, recommended) for batch in sorted(batches))
    return Predictions(run.steps_left, found, None if pace is None else pace.said)


def _at(
    batch: float, plan: RestOfPlan, run: RunSetting, priced: "Priced", pace: Pace | None, recommended: int | None
) -> Prediction:
    found = what_if(plan, batch=batch, critical_batch=priced.critical)
    seconds, usd_per_step = (None, None) if pace is None else (pace.seconds(batch), pace.usd_per_step(batch))
    return Prediction(
        batch_size=batch,
        is_present=batch == run.batch_size,
        is_recommended=batch == recommended,
        steps=banded(found.steps),
        examples=banded(found.examples),
        units=banded(found.examples.times(run.units_per_example)),
        hours=None if seconds is None else banded(found.steps.times(seconds / SECONDS_PER_HOUR)),
        usd=None if usd_per_step is None else banded(found.steps.times(usd_per_step)),
        num_devices=None if pace is None else pace.devices(batch),
    )


def had_we_used(run: RunSoFar, *, batch: float, asked: Question = NOTHING_ASKED) -> HadWeUsed | None:
    """What the run so far would have taken at another batch; None where no stretch has a resolved noise scale.

    Args:
        run: With what it has spent.
        batch: In examples.
        asked: Whether devices stay: money goes with the examples only where devices do, too.
    """
    pieces = [piece for point in run.spent if (piece := _piece(point)) is not None]
    if not pieces:
        return None
    found = theory.had_we_used(pieces, batch=batch)
    steps_taken = sum(piece.num_steps for piece in pieces)
    examples_taken = sum(piece.num_steps * piece.batch for piece in pieces)
    all_examples = sum(point.examples for point in run.spent)
    examples = Interval(found.examples.value, found.examples.low, found.examples.high)
    covered = examples_taken / all_examples
    spent = None if stay(run, asked) else run.usd_spent
    per_example = None if spent is None else spent * covered / examples_taken
    return HadWeUsed(
        batch_size=batch,
        steps=Interval(found.steps.value, found.steps.low, found.steps.high),
        examples=examples,
        steps_taken=steps_taken,
        examples_taken=examples_taken,
        usd=None if per_example is None else scaled(examples, per_example),
        covered=covered,
    )


def parallelism_of(run: RunSetting, priced: "Priced", asked: Question) -> Parallelism | None:
    """What devices would buy; None where they stay, or nobody said how many examples one takes.

    Args:
        run: As it stands.
        priced: B_crit and the best batch.
        asked: Micro-batch of a device, else what one takes of the present batch; and whether devices stay.
    """
    batch = run.batch_size
    if batch is None or stay(run, asked) or (asked.examples_per_device is None and not run.num_devices):
        return None
    each = asked.examples_per_device or batch / (run.num_devices or 1)
    useful = machines.max_useful_devices(batch=priced.best.value, min_examples_per_device=each)
    speedup = _through(priced, lambda critical: 1 + critical / batch)
    twice = _exchange(priced, batch, 2 * batch)
    cheaper = machines.with_less_compute(critical_batch=priced.critical.value, batch=batch, compute_factor=0.5)
    half = None if cheaper is None else _exchange(priced, batch, cheaper.batch)
    halved = (
        "No batch makes the run half as expensive."
        if half is None
        else f"Half the device-hours take {half.time_factor.value:.3g} ({half.time_factor.low:.3g} – "
        f"{half.time_factor.high:.3g}) times as long, at a batch of {number(half.batch_size)}."
    )
    low, high = (
        machines.max_useful_devices(batch=max(end, each), min_examples_per_device=each)
        for end in (priced.best.low, priced.best.high)
    )
    ends = "" if low == high else f" ({low:,} – {high:,})"
    text = (
        f"{useful:,} device{'' if useful == 1 else 's'}{ends} of {number(each)} {run.example}s keep "
        f"busy at the best batch. Twice the present devices take {_share_off(twice.time_factor)} off the time for "
        f"{_share_more(twice.compute_factor)} more device-hours. {halved}"
    )
    return Parallelism(useful, each, speedup, twice, half, text)


def _share_off(factor: Interval) -> str:
    return f"{100 * (1 - factor.value):.0f} % ({100 * (1 - factor.high):.0f} – {100 * (1 - factor.low):.0f})"


def _share_more(factor: Interval) -> str:
    return f"{100 * (factor.value - 1):.0f} % ({100 * (factor.low - 1):.0f} – {100 * (factor.high - 1):.0f})"


def scaled(found: Interval, factor: float) -> Interval:
    """The interval of an exact multiple.

    Args:
        found: A number with its ends.
        factor: Not negative.
    """
    return Interval(found.value * factor, found.low * factor, found.high * factor, found.level)


def _exchange(priced: "Priced", batch: float, other: float) -> Exchange:
    def time_at(critical: float) -> float:
        return (1 + critical / other) / (1 + critical / batch)

    return Exchange(
        batch_size=other,
        time_factor=_through(priced, time_at),
        compute_factor=_through(priced, lambda critical: time_at(critical) * other / batch),
    )


def _through(priced: "Priced", function: Callable[[float], float]) -> Interval:
    found = priced.critical.through(function).both
    return Interval(found.value, found.low, found.high, found.level)


def banded(found: Carried) -> Banded:
    """A number with the ends of its intervals.

    Args:
        found: As the theory carries it.
    """
    whole = found.both
    return Banded(whole.value, whole.low, whole.high, _ends(found.statistical), _ends(found.model), whole.level)


def _ends(found: Ends) -> Span:
    return Span(found.low, found.high)


def _piece(point: SpentPoint) -> LoggedPiece | None:
    if not (point.is_resolved and point.batch_size and point.value and point.high is not None and point.examples > 0):
        return None
    return LoggedPiece(
        num_steps=point.examples / point.batch_size,
        batch=point.batch_size,
        noise_scale=point.value,
        low=point.low or 0.0,
        high=point.high,
    )
