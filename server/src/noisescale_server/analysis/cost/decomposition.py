"""What a speed-up consists of: fewer passes, more devices, faster devices, better use of each.

hours = passes / (devices × passes per device-hour), so ln of a speed-up is the sum of three logs, exactly. Two of them
hold two causes each, which one pair cannot part:

- passes: a larger batch takes more of them, by E(B) ∝ 1 + B / B_crit (McCandlish et al. 2018, eq. 2.11), the rest is
  the algorithm. Needs B_crit and both batches.
- passes per device-hour: kind of device, and how well the software uses it. Pairs that differ in the device alone say
  the first; on the same devices it is 1. Source: MATH section 13, by sequential log ratios on matched entries.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import median
from typing import Literal

from noisescale_server.analysis.cost.trainings import Training

Cause = Literal[
    "number of devices",
    "kind of device",
    "use of each device",
    "kind and use of devices",
    "hardware and its use",
    "larger batch",
    "algorithm",
    "batch and algorithm",
    "everything but devices",
]


@dataclass(frozen=True, slots=True)
class Part:
    """One cause of a speed-up.

    Attributes:
        cause: Which.
        times: Its factor of the speed-up; below 1 it slowed down.
        basis: How it is known.
    """

    cause: Cause
    times: float
    basis: str


@dataclass(frozen=True, slots=True)
class Decomposition:
    """A speed-up as a product.

    Attributes:
        before: The slower training.
        after: The faster one.
        times: Hours before divided by hours after.
        parts: Whose product is `times`.
    """

    before: Training
    after: Training
    times: float
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class DeviceRatio:
    """How much faster one kind of device is than another, by pairs that differ in it alone.

    Attributes:
        slow: The kind in the denominator.
        fast: The kind in the numerator.
        times: Median ratio of passes per device-hour over pairs.
        low: Smallest ratio.
        high: Largest ratio.
        num_pairs: How many.
    """

    slow: str
    fast: str
    times: float
    low: float
    high: float
    num_pairs: int


def device_ratios(trainings: Iterable[Training]) -> tuple[DeviceRatio, ...]:
    """Ratios of every two kinds of device that pairs compare: same model, software and number, another device."""
    ratios: dict[tuple[str, str], list[float]] = {}
    for one, other in combinations(trainings, 2):
        rates = one.passes_per_device_hour, other.passes_per_device_hour
        if one.device is None or other.device is None or None in rates or one.device == other.device:
            continue
        if (one.model, one.software, one.num_devices) != (other.model, other.software, other.num_devices):
            continue
        (slow, slow_rate), (fast, fast_rate) = sorted(((one.device, rates[0]), (other.device, rates[1])))
        assert slow_rate is not None, "looked at above"
        assert fast_rate is not None, "looked at above"
        ratios.setdefault((slow, fast), []).append(fast_rate / slow_rate)
    return tuple(_ratio(slow, fast, found) for (slow, fast), found in sorted(ratios.items()))


def _ratio(slow: str, fast: str, found: Sequence[float]) -> DeviceRatio:
    """The ratio the right way round: the median above 1."""
    times = math.exp(median(map(math.log, found)))
    if times < 1:
        return DeviceRatio(fast, slow, 1 / times, 1 / max(found), 1 / min(found), len(found))
    return DeviceRatio(slow, fast, times, min(found), max(found), len(found))


def decompose(
    before: Training, after: Training, *, critical_batch: float | None = None, ratios: Sequence[DeviceRatio] = ()
) -> Decomposition:
    """The speed-up from one training to another, as far as the two and matched pairs part it.

    Args:
        before: The slower one.
        after: The faster one.
        critical_batch: B_crit of the task in the batches' unit; None: batch and algorithm stay together.
        ratios: What matched pairs say of kinds of devices.
    """
    times = before.hours / after.hours
    parts: list[Part] = []
    if before.num_devices is not None and after.num_devices is not None:
        basis = f"{before.num_devices:,} → {after.num_devices:,}"
        parts.append(Part("number of devices", after.num_devices / before.num_devices, basis))
    if before.passes is None or after.passes is None:
        cause: Cause = "everything but devices" if parts else "hardware and its use"
        return _whole(before, after, times, parts, Part(cause, 1.0, "passes to the target are not known of both"))
    parts += _of_passes(before, after, before.passes / after.passes, critical_batch)
    rest = times / math.prod(part.times for part in parts)
    parts += _of_devices(before, after, rest, ratios, is_counted=parts[0].cause == "number of devices")
    return Decomposition(before, after, times, tuple(parts))


def _whole(before: Training, after: Training, times: float, parts: list[Part], last: Part) -> Decomposition:
    rest = times / math.prod(part.times for part in parts)
    return Decomposition(before, after, times, (*parts, Part(last.cause, rest, last.basis)))


def _of_passes(before: Training, after: Training, times: float, critical_batch: float | None) -> list[Part]:
    counts = f"{before.passes:,.4g} → {after.passes:,.4g} passes"
    if critical_batch is None:
        return [Part("batch and algorithm", times, f"{counts}; no critical batch is known to part the two")]
    if before.batch_size is None or after.batch_size is None:
        return [Part("batch and algorithm", times, f"{counts}; the batch of one is not known or changed")]
    of_batch = (1 + before.batch_size / critical_batch) / (1 + after.batch_size / critical_batch)
    batches = f"{before.batch_size:,.4g} → {after.batch_size:,.4g}"
    return [
        Part("larger batch", of_batch, f"E(B) ∝ 1 + B ÷ B_crit, batch {batches}, B_crit {critical_batch:,.4g}"),
        Part("algorithm", times / of_batch, f"the rest of {counts}"),
    ]


def _of_devices(
    before: Training, after: Training, rest: float, ratios: Sequence[DeviceRatio], *, is_counted: bool
) -> list[Part]:
    if not is_counted:
        return [Part("hardware and its use", rest, "the number of devices is not known of both")]
    if before.device == after.device:
        return [Part("use of each device", rest, f"passes per device-hour, both on {after.device}")]
    known = _between(before.device, after.device, ratios)
    if known is None:
        return [Part("kind and use of devices", rest, "no pair is known to differ in these devices alone")]
    times, ratio = known
    basis = f"{ratio.num_pairs} matched pair{'' if ratio.num_pairs == 1 else 's'}, {ratio.low:.3g} to {ratio.high:.3g}"
    return [
        Part("kind of device", times, f"{before.device} → {after.device}: {basis}"),
        Part("use of each device", rest / times, "the rest of passes per device-hour"),
    ]


def _between(before: str | None, after: str | None, ratios: Sequence[DeviceRatio]) -> tuple[float, DeviceRatio] | None:
    for ratio in ratios:
        if (ratio.slow, ratio.fast) == (before, after):
            return ratio.times, ratio
        if (ratio.fast, ratio.slow) == (before, after):
            return 1 / ratio.times, ratio
    return None


def decompose_line(
    line: Sequence[Training], *, critical_batch: float | None = None, ratios: Sequence[DeviceRatio] = ()
) -> tuple[Decomposition, ...]:
    """Each step along a line of records; the product over steps is the whole speed-up.

    Args:
        line: Slowest first.
        critical_batch: B_crit of the task.
        ratios: What matched pairs say of kinds of devices.
    """
    pairs = pairwise(line)
    return tuple(decompose(one, other, critical_batch=critical_batch, ratios=ratios) for one, other in pairs)
