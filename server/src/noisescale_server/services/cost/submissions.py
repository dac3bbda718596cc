"""DAWNBench's submissions of a task: all of them, the front, the records, and the published factors beside ours."""

from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from noisescale_server.analysis.cost import trainings
from noisescale_server.analysis.cost.decomposition import Decomposition, DeviceRatio, decompose_line, device_ratios
from noisescale_server.analysis.cost.records import (
    NO_PRICE,
    Improvement,
    Record,
    SameHardware,
    hours,
    improvement,
    pareto_front,
    record_line,
    same_hardware,
    until,
    usd,
)
from noisescale_server.analysis.cost.trainings import Target, Training
from noisescale_server.services.platform.errors import refuse

KEPT = 64


@dataclass(frozen=True, slots=True)
class Factor:
    """A published factor, and what the entries say.

    Attributes:
        said: What it is.
        published: As published; None where nothing was.
        computed: From the entries; None where they cannot tell.
        basis: How it was computed, and what it assumes.
    """

    said: str
    published: float | None
    computed: float | None
    basis: str


@dataclass(frozen=True, slots=True)
class Submissions:
    """What is known of a task.

    Attributes:
        target: What had to be reached.
        rows: Every entry, fastest first.
        excluded: Entries that the front leaves out, by key, with the reason.
        front: Keys, fastest first.
        records: In hours, by day.
        improvement: In hours.
        improvement_usd: In USD on demand, as submitted.
        same_hardware: Where only the rest changed.
        device_ratios: What matched pairs say.
        steps: What each step along the records consists of.
        factors: Published beside computed.
        source: Of the entries.
    """

    target: Target
    rows: tuple[Training, ...]
    excluded: dict[str, str]
    front: tuple[str, ...]
    records: tuple[Record, ...]
    improvement: Improvement | None
    improvement_usd: Improvement | None
    same_hardware: tuple[SameHardware, ...]
    device_ratios: tuple[DeviceRatio, ...]
    steps: tuple[Decomposition, ...]
    factors: tuple[Factor, ...]
    source: str


@lru_cache(maxsize=KEPT)
def of_task(task: str, last: date | None, critical_batch: float | None) -> Submissions:
    """What DAWNBench's entries of a task say, up to a day.

    Args:
        task: ImageNet, CIFAR10 or SQuAD.
        last: The last day; None: all.
        critical_batch: B_crit of the task in the entries' batches; None: batch and algorithm stay together.

    Raises:
        InvalidInput: For another task.
    """
    target = next((one for one in trainings.targets() if one.task == task), None)
    if target is None:
        names = ", ".join(one.task for one in trainings.targets())
        raise refuse("task", f"must be a task of DAWNBench: {names}", task)
    everything = trainings.submissions()[task]
    rows = until(everything, last)
    records, ratios = record_line(rows, hours), device_ratios(everything)
    return Submissions(
        target=target,
        rows=tuple(sorted(rows, key=lambda one: one.hours)),
        excluded={one.key: NO_PRICE for one in rows if one.usd is None},
        front=tuple(one.key for one in pareto_front(rows)),
        records=records,
        improvement=improvement(rows, hours),
        improvement_usd=improvement(rows, usd),
        same_hardware=same_hardware(rows),
        device_ratios=ratios,
        steps=decompose_line([one.training for one in records], critical_batch=critical_batch, ratios=ratios),
        factors=_factors(everything) if task == trainings.published().task else (),
        source=trainings.source(),
    )


def _factors(rows: tuple[Training, ...]) -> tuple[Factor, ...]:
    known = trainings.published()
    then = until(rows, known.until)
    faster, cheaper, whole = improvement(then, hours), improvement(then, usd), improvement(rows, hours)
    assert faster is not None, "the file has entries before the publication"
    assert cheaper is not None, "some of them have a price"
    assert whole is not None, "the file has entries"
    day = f"{known.until:%Y-%m-%d}"
    pairs = [_pair(rows, before, after) for before, after in known.same_hardware_hours]
    return (
        Factor(
            "times faster",
            known.times_faster,
            faster.times,
            f"{faster.before:.1f} h to {faster.after:.4f} h: from the best of the first day to the best until {day}",
        ),
        Factor(
            "times cheaper, at a published spot price",
            known.times_cheaper,
            cheaper.before / known.spot_usd,
            f"{cheaper.before:,.2f} USD on demand to the published spot price of {known.spot_usd:g} USD, "
            "which no entry holds: two prices of different kinds",
        ),
        Factor(
            "times cheaper, on demand",
            None,
            cheaper.times,
            f"{cheaper.before:,.2f} USD to {cheaper.after:.2f} USD, both as submitted, until {day}",
        ),
        Factor(
            "times faster, over the whole file",
            None,
            whole.times,
            f"{whole.before:.1f} h to {whole.after:.4f} h on {whole.best.day:%Y-%m-%d}; of rounded hours it is 5,571",
        ),
        *pairs,
    )


def _pair(rows: tuple[Training, ...], before: float, after: float) -> Factor:
    """The entries of one hardware that took as many whole hours before and after."""
    said = f"{before:g} h to {after:g} h on the same hardware"
    for one in same_hardware(rows):
        first = one.records[0]
        later = next((record for record in one.records[1:] if round(record.value) == round(after)), None)
        if round(first.value) == round(before) and later is not None:
            basis = (
                f"{first.value:.2f} h to {later.value:.2f} h on {one.num_devices} × {one.device}, "
                f"{first.training.day:%Y-%m-%d} to {later.training.day:%Y-%m-%d}"
            )
            return Factor(said, before / after, later.of_baseline, basis)
    return Factor(said, before / after, None, "no two entries on one hardware take so many hours")
