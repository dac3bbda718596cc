"""How long a step of this run takes, on how many devices and for how much, as the run itself has shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import linear_regression, median
from typing import TYPE_CHECKING, Literal

from noisescale_core.advice.question import Limits, Question
from noisescale_core.theory.cost import SECONDS_PER_HOUR, StepTime
from noisescale_core.theory.machines import Spot

if TYPE_CHECKING:
    from noisescale_core.advice.parts.parts import RunSetting, SpentPoint


LATEST_SHARE = 20
"""The newest 1 of so many stretches is the latest window."""

MIN_TIMED = 3
"""Stretches whose median is a step time."""

SAME_BATCH = 1.01
"""Stretches whose batches differ by less than this factor had the same one."""

Hardware = Literal["devices_with_the_batch", "line", "flat", "one_batch"]
"""How a step's time follows the batch: not at all where devices are added with it; α + β B, or not at all, as timed on
devices that stay; not known where these have timed one batch alone."""

SHARE = 1 - 1e-9
"""A batch that is a device's share up to rounding still fills one."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What a step takes.

    Attributes:
        batch: Batch at which `step_seconds` was measured, in examples.
        step_seconds: Median over the latest window.
        hardware: How the time follows the batch.
        line: α + β B from the run's own step times; None where it used one batch alone.
        num_devices: At `batch`; None where nobody said.
        usd_per_device_hour: Price of one device for an hour; None where nobody said.
        spot: Interruptible devices; None: on demand.
    """

    batch: float
    step_seconds: float
    hardware: Hardware
    line: StepTime | None
    num_devices: int | None
    usd_per_device_hour: float | None
    spot: Spot | None

    @property
    def time_factor(self) -> float:
        """Hours with interruptions divided by hours without."""
        return 1.0 if self.spot is None else self.spot.time_factor

    @property
    def of_a_device(self) -> float | None:
        """Examples that a device takes of any batch, where devices come with it; None where they stay."""
        is_added = self.hardware == "devices_with_the_batch"
        return self.batch / self.num_devices if is_added and self.num_devices else None

    def seconds(self, batch: float) -> float | None:
        """Seconds of a step at another batch, interruptions included; None where nobody has timed what would tell.

        Devices that stay tell it from two batches, devices that come with the batch down to the share of one.

        Args:
            batch: In examples.
        """
        if self.hardware == "one_batch" and not 1 / SAME_BATCH < batch / self.batch < SAME_BATCH:
            return None
        if self.of_a_device is not None and batch < self.of_a_device * SHARE:
            return None
        if self.hardware == "line" and self.line is not None:
            # the line says how the time changes, the latest window where it is now
            return self.step_seconds * self.line.seconds(batch) / self.line.seconds(self.batch) * self.time_factor
        return self.step_seconds * self.time_factor

    def devices(self, batch: float) -> float | None:
        """Devices that run this batch, one at least.

        Args:
            batch: In examples.
        """
        if self.num_devices is None:
            return None
        return self.num_devices if self.of_a_device is None else max(1.0, batch / self.of_a_device)

    def usd_per_step(self, batch: float) -> float | None:
        """Price of a step at another batch; None without its time, devices or a price.

        Args:
            batch: In examples.
        """
        devices, seconds = self.devices(batch), self.seconds(batch)
        if devices is None or seconds is None or self.usd_per_device_hour is None:
            return None
        share = 1.0 if self.spot is None else self.spot.price_share
        return devices * self.usd_per_device_hour * share * seconds / SECONDS_PER_HOUR

    @property
    def said(self) -> str:
        """What is assumed of other batches, as a sentence."""
        match self.hardware:
            case "devices_with_the_batch":
                return "Devices are added with the batch, so a step takes the same time at any batch."
            case "line":
                return "On the same devices, by the step times of the batches that the run has used."
            case "flat":
                return "On the same devices, a step takes as long at any batch, as at those that the run has used."
        one = "this device has" if self.num_devices == 1 else "these devices have"
        return f"Time at another batch is not known: {one} timed one batch."


def stay(run: "RunSetting", asked: Question) -> bool:
    """Whether the devices are what they are, whatever the batch: those of a run on one, or as the reader says.

    Args:
        run: With its number of devices.
        asked: Fixed hardware or a number of devices keeps them as they are.
    """
    return asked.fixed_hardware or asked.num_devices is not None or run.num_devices == 1


def pace_of(run: "RunSetting", asked: Question) -> Pace | None:
    """What a step takes now; None where no step times were logged.

    Args:
        run: As it stands.
        asked: Whether the devices stay, and interruptions.

    Raises:
        DomainError: If a share or a number of interruptions is out of range, or interruptions leave no time to work.
    """
    seconds, batch = step_seconds(run.spent), run.batch_size
    if seconds is None or batch is None or not batch > 0:
        return None
    timed = timed_batches(run.spent)
    line = step_line(timed)
    on_same_devices: Hardware = "line" if line is not None else "flat" if is_flat(timed) else "one_batch"
    num_devices = asked.num_devices or run.num_devices
    return Pace(
        batch=batch,
        step_seconds=seconds,
        hardware=on_same_devices if stay(run, asked) else "devices_with_the_batch",
        line=line,
        num_devices=num_devices,
        usd_per_device_hour=run.usd_per_device_hour,
        spot=spot_of(asked, num_devices or 1),
    )


def spot_of(given: Limits, num_devices: int) -> Spot | None:
    """Interruptible devices as the reader has them; None on demand.

    Args:
        given: With prices and interruptions.
        num_devices: Each of which stops the run when it is taken.

    Raises:
        DomainError: If a number is out of range, or interruptions leave no time to work.
    """
    if given.spot_price_share is None:
        return None
    return Spot(
        price_share=given.spot_price_share,
        interruptions_per_instance_hour=given.interruptions_per_device_hour,
        num_instances=num_devices,
        restart_hours=given.restart_hours,
        checkpoint_hours=given.checkpoint_hours,
    )


def step_seconds(spent: "Sequence[SpentPoint]") -> float | None:
    """Median seconds of a step over the latest window at one batch; None with fewer than three timed stretches.

    Args:
        spent: The run so far, oldest first.
    """
    timed = _timed(spent)
    if not timed:
        return None
    newest_batch = timed[-1][0]
    at_batch = [seconds for batch, seconds in timed if 1 / SAME_BATCH < batch / newest_batch < SAME_BATCH]
    latest = at_batch[-max(MIN_TIMED, len(spent) // LATEST_SHARE) :]
    return median(latest) if len(latest) >= MIN_TIMED else None


def step_line(timed: Sequence[tuple[float, float]]) -> StepTime | None:
    """α + β B through the median step times of the batches that the run has used.

    None where it used one alone, or where the times do not rise with the batch by less than in proportion.

    Args:
        timed: The batches with their times (`timed_batches`).
    """
    if len(timed) < 2:
        return None
    line = linear_regression(*zip(*timed, strict=True))
    return StepTime(line.intercept, line.slope) if line.slope > 0 and line.intercept >= 0 else None


def is_flat(timed: Sequence[tuple[float, float]]) -> bool:
    """Whether steps took no longer at the larger of the batches that the run has used.

    Args:
        timed: The batches with their times (`timed_batches`).
    """
    return len(timed) >= 2 and linear_regression(*zip(*timed, strict=True)).slope <= 0


def timed_batches(spent: "Sequence[SpentPoint]") -> list[tuple[float, float]]:
    """Each batch that was timed over three stretches or more, and the median seconds of its steps.

    Args:
        spent: The run so far, oldest first.
    """
    points = []
    for _, group in groupby(sorted(_timed(spent)), key=_SameBatch()):
        pairs = list(group)
        if len(pairs) >= MIN_TIMED:
            points.append((median(batch for batch, _ in pairs), median(seconds for _, seconds in pairs)))
    return points


class _SameBatch:
    """A key that is the same for neighbours whose batches are the same; for values in rising order."""

    def __init__(self) -> None:
        self._first = 0.0

    def __call__(self, pair: tuple[float, float]) -> float:
        if not pair[0] < self._first * SAME_BATCH:
            self._first = pair[0]
        return self._first


def _timed(spent: "Sequence[SpentPoint]") -> list[tuple[float, float]]:
    return [
        (point.batch_size, point.seconds / point.num_steps)
        for point in spent
        if point.batch_size and point.seconds and point.num_steps
    ]
