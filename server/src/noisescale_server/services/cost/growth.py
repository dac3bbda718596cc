"""Compute of one's own runs against their dates, the doubling time with its interval, and price against willingness."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_core.advice.question import Question
from noisescale_server.analysis.cost.growth import (
    PUBLISHED_MONTHS,
    PUBLISHED_SOURCE,
    Compute,
    Device,
    DeviceTrend,
    Growth,
    device_trend,
    devices,
    devices_source,
    fit_growth,
    from_device_hours,
    from_parameters,
    known_device,
    published_line,
)
from noisescale_server.services.cost.board_rows import price_of
from noisescale_server.storage import cost
from noisescale_server.storage.cost import CostedRun

MAX_RUNS = 5_000
SECONDS_PER_HOUR = 3_600
SECONDS_PER_DAY = 86_400

NO_PARAMETERS = "neither parameters with examples nor a device whose peak is known"


@dataclass(frozen=True, slots=True)
class RunCompute:
    """A run with what it took.

    Attributes:
        run_id: As text.
        name: Of the run.
        project: Of the run.
        day: When it began.
        compute: In PF-days, and how it was counted.
        usd: Of its device-hours; None without a price.
        price_said: Where the price comes from.
    """

    run_id: str
    name: str
    project: str
    day: date
    compute: Compute
    usd: float | None
    price_said: str


@dataclass(frozen=True, slots=True)
class PublishedLine:
    """A published doubling time, drawn through the end of the fit.

    Attributes:
        months: To double.
        at_start: PF-days on the first day.
        at_end: PF-days on the last day.
    """

    months: float
    at_start: float
    at_end: float


@dataclass(frozen=True, slots=True)
class ComputeGrowth:
    """The whole answer.

    Attributes:
        runs: By day.
        num_left_out: Runs whose compute cannot be counted.
        why_left_out: For what reason.
        growth: Of compute over all runs; None below six or within thirty days.
        spending: Of USD over runs with a price: what people were willing to pay.
        per_usd: Of PF-days per USD over the same: what became cheaper.
        of_priced: Of compute over the same, which the two parts make up.
        lines: Published doubling times; empty without a fit.
        published_source: Of these.
        peaks_source: Of the devices' peaks.
        devices: Kinds of devices, oldest first.
        device_trend: How their peaks and memories grew.
    """

    runs: tuple[RunCompute, ...]
    num_left_out: int
    why_left_out: str
    growth: Growth | None
    spending: Growth | None
    per_usd: Growth | None
    of_priced: Growth | None
    lines: tuple[PublishedLine, ...]
    published_source: str
    peaks_source: str
    devices: tuple[Device, ...]
    device_trend: DeviceTrend


async def of_runs(
    session: AsyncSession,
    *,
    project: str | None,
    task: str | None,
    parameters: str,
    utilisation: float,
    level: float,
    prices: Question,
) -> ComputeGrowth:
    """The growth over the newest 5,000 runs.

    Args:
        session: Where to read.
        project: Name; None: all that the reader sees.
        task: Name; None: all.
        parameters: Key of a run's config that holds the number of its parameters.
        utilisation: Share of the peak, where compute is counted from device-hours.
        level: Confidence level.
        prices: The reader's price of a device-hour where neither run nor project says one.
    """
    rows = await cost.newest(session, project=project, task=task, most=MAX_RUNS)
    ids = [run.run_id for run in rows]
    processes, sizes = await cost.processes(session, ids), await cost.numbers(session, ids, parameters)
    found = []
    for run in rows:
        active = sum(last - began for began, last in processes.get(run.run_id, ())) / SECONDS_PER_HOUR
        counted = _compute(run, sizes.get(run.run_id), active, utilisation)
        if counted is not None and counted.pf_days > 0 and run.began is not None:
            price, said = price_of(run, prices)
            usd = None if price is None or not run.num_devices or not active else price * active * run.num_devices
            day = datetime.fromtimestamp(run.began, UTC).date()
            found.append(RunCompute(str(run.run_id), run.name, run.project, day, counted, usd, said))
    found.sort(key=lambda one: (one.day, one.run_id))
    return _of(found, len(rows) - len(found), level)


def _compute(run: CostedRun, size: float | None, active: float, utilisation: float) -> Compute | None:
    """By parameters and units where both are known, else by device-hours."""
    if size is not None and size > 0 and run.examples:
        return from_parameters(size, run.examples * run.units_per_example)
    device = known_device(run.device)
    if device is None or not run.num_devices or active <= 0:
        return None
    return from_device_hours(active * run.num_devices, device, utilisation)


def _of(runs: Sequence[RunCompute], num_left_out: int, level: float) -> ComputeGrowth:
    days = [float(one.day.toordinal()) for one in runs]
    growth = fit_growth(days, [one.compute.pf_days for one in runs], level=level)
    priced = [(day, one.compute.pf_days, one.usd) for day, one in zip(days, runs, strict=True) if one.usd]
    days_priced = [day for day, _, _ in priced]
    return ComputeGrowth(
        runs=tuple(runs),
        num_left_out=num_left_out,
        why_left_out=NO_PARAMETERS,
        growth=growth,
        spending=fit_growth(days_priced, [usd for _, _, usd in priced], level=level),
        per_usd=fit_growth(days_priced, [took / usd for _, took, usd in priced], level=level),
        of_priced=fit_growth(days_priced, [took for _, took, _ in priced], level=level),
        lines=tuple(_line(days, growth, months) for months in PUBLISHED_MONTHS) if growth is not None else (),
        published_source=PUBLISHED_SOURCE,
        peaks_source=devices_source(),
        devices=devices(),
        device_trend=device_trend(level),
    )


def _line(days: Sequence[float], growth: Growth, months: float) -> PublishedLine:
    first, last = published_line([min(days), max(days)], growth.at_end, months)
    return PublishedLine(months, first, last)
