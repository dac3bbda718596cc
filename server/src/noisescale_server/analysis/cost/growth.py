"""How fast compute grows: PF-days of a training, and the doubling time over many with an interval.

A PF-day is 10¹⁵ operations a second for a day, 8.64 × 10¹⁹ operations. Published: compute of the largest trainings
doubled every 3.5 months from 2012 to 2018 (OpenAI, "AI and Compute", May 2018), restated as 3.4 months there later.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from noisescale_server.analysis.estimate import Estimate
from noisescale_server.analysis.robust import theil_sen

OPERATIONS_OF_A_PF_DAY = 1e15 * 86_400
OPERATIONS_PER_PARAMETER = 6.0
"""Of a dense model, for one unit forwards and backwards: two and four (Kaplan et al. 2020, arXiv:2001.08361)."""
UTILISATION = 0.33
"""Of a GPU's peak where nobody said another: what "AI and Compute" took."""
SECONDS_PER_HOUR = 3_600
DAYS_PER_YEAR = 365.25
MONTHS_PER_YEAR = 12

LEAST_TRAININGS = 6
LEAST_DAYS = 30.0

PUBLISHED_MONTHS = (3.4, 3.5)
PUBLISHED_SOURCE = 'OpenAI, "AI and Compute" (2018): 3.5 months as first published, 3.4 as restated'

Basis = Literal["parameters", "device_hours"]


@dataclass(frozen=True, slots=True)
class Device:
    """A kind of device by its data sheet.

    Attributes:
        device: Its name.
        names: Parts of names that jobs report it by.
        year: Of its release.
        peak_tflops: Dense peak in `format`, 10¹² operations a second.
        format: Of the numbers.
        memory_gb: Of one device.
    """

    device: str
    names: tuple[str, ...]
    year: int
    peak_tflops: float
    format: str
    memory_gb: float


@dataclass(frozen=True, slots=True)
class Compute:
    """What a training took.

    Attributes:
        pf_days: 10¹⁵ operations a second for so many days.
        basis: From parameters and units, or from device-hours and the peak.
        said: The product in words.
    """

    pf_days: float
    basis: Basis
    said: str


@dataclass(frozen=True, slots=True)
class Growth:
    """A quantity that grows by a power of two a year.

    Attributes:
        doublings_per_year: The slope of log₂ over years; negative where it shrinks.
        months: Doubling time; an open end where no growth, or none so slow, is excluded. None where it does not grow.
        at_end: The fitted value on the last day.
        num: How many trainings.
    """

    doublings_per_year: Estimate
    months: Estimate | None
    at_end: float
    num: int


def from_parameters(num_parameters: float, units: float) -> Compute:
    """6 × parameters × units, for a dense model of which every parameter meets every unit.

    Args:
        num_parameters: Of the model.
        units: Tokens or examples in the run, forwards and backwards.
    """
    pf_days = OPERATIONS_PER_PARAMETER * num_parameters * units / OPERATIONS_OF_A_PF_DAY
    said = f"6 × {num_parameters:.3g} parameters × {units:.3g} units".replace("e+", "e")
    return Compute(pf_days, "parameters", said)


def from_device_hours(device_hours: float, device: Device, utilisation: float = UTILISATION) -> Compute:
    """Device-hours × peak × utilisation.

    Args:
        device_hours: Hours times devices.
        device: With its peak.
        utilisation: Share of the peak that the run used.
    """
    operations = device_hours * SECONDS_PER_HOUR * device.peak_tflops * 1e12 * utilisation
    said = (
        f"{device_hours:.3g} device-hours × {device.peak_tflops:g} TFLOP/s ({device.device}, {device.format}) × "
        f"{utilisation:.0%} utilisation"
    )
    return Compute(operations / OPERATIONS_OF_A_PF_DAY, "device_hours", said)


def known_device(name: str | None) -> Device | None:
    """The device that a job reports by this name, such as "NVIDIA A100-SXM4-80GB"; None where it is not in the table.

    The longest name that it holds counts: "L4" is not an "L40S".
    """
    if name is None:
        return None
    words = "".join(sign if sign.isalnum() else " " for sign in name).casefold()
    found = [
        (len(part), one)
        for one in devices()
        for part in one.names
        if f" {part.casefold()} " in f" {words} " or part.casefold() in words.split()
    ]
    return max(found, key=lambda row: row[0])[1] if found else None


@lru_cache(maxsize=1)
def devices() -> tuple[Device, ...]:
    """Kinds of devices by their makers' data sheets, oldest first."""
    rows = _facts()["devices"]
    return tuple(sorted((Device(**{**row, "names": tuple(row["names"])}) for row in rows), key=lambda one: one.year))


@dataclass(frozen=True, slots=True)
class DeviceTrend:
    """How devices grew from one generation to the next, by the year of their release.

    Attributes:
        peak: Of the peak.
        memory: Of the memory.
    """

    peak: Growth | None
    memory: Growth | None


def device_trend(level: float = 0.95) -> DeviceTrend:
    """The growth over the kinds of devices in the table, which are not all that there are."""
    days = [one.year * DAYS_PER_YEAR for one in devices()]
    return DeviceTrend(
        fit_growth(days, [one.peak_tflops for one in devices()], level=level),
        fit_growth(days, [one.memory_gb for one in devices()], level=level),
    )


def devices_source() -> str:
    """Where their peaks and memories stand."""
    return f"{_facts()['source']}. {_facts()['note']}"


def fit_growth(days: Sequence[float], values: Sequence[float], *, level: float = 0.95) -> Growth | None:
    """Doublings a year of positive values, robust to outliers: the median slope between all pairs of days.

    Theil and Sen's slope with Sen's interval: it needs no shape of the errors, but that they are alike and independent,
    and gaps in time do no harm. Up to 29 % of the values may lie anywhere.

    Args:
        days: Of each training, in days since any one.
        values: Compute, USD, or compute per USD.
        level: Confidence level.

    Returns:
        None below six trainings, or where they lie within thirty days.
    """
    if len(days) < LEAST_TRAININGS or max(days) - min(days) < LEAST_DAYS:
        return None
    years = np.asarray(days, dtype=float) / DAYS_PER_YEAR
    logs = np.log2(np.asarray(values, dtype=float))
    slope, low, high = theil_sen(years, logs, level)
    at_end = float(np.median(logs - slope * years)) + slope * float(years.max())
    doublings = Estimate(slope, low, high, level)
    return Growth(doublings, _months(doublings), 2.0**at_end, len(days))


def _months(doublings: Estimate) -> Estimate | None:
    """Twelve months by doublings a year; the fastest growth is the shortest time."""
    if doublings.value <= 0:
        return None
    assert doublings.low is not None, "Sen's interval has two ends"
    assert doublings.high is not None, "Sen's interval has two ends"
    longest = MONTHS_PER_YEAR / doublings.low if doublings.low > 0 else None
    return Estimate(MONTHS_PER_YEAR / doublings.value, MONTHS_PER_YEAR / doublings.high, longest, doublings.level)


def published_line(days: Sequence[float], at_end: float, months: float) -> list[float]:
    """A line that doubles in so many months and meets the fitted one on the last day.

    Args:
        days: Where to draw it.
        at_end: Value on the last of them.
        months: Doubling time.
    """
    last = max(days)
    return [at_end * math.exp2((day - last) / DAYS_PER_YEAR * MONTHS_PER_YEAR / months) for day in days]


@lru_cache(maxsize=1)
def _facts() -> dict[str, Any]:
    text = files("noisescale_server").joinpath("data", "devices.json").read_text(encoding="utf-8")
    facts: dict[str, Any] = json.loads(text)
    return facts
