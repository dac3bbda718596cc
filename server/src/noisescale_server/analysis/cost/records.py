"""Who was fastest and cheapest when: the Pareto front, the line of records, and improvement against a baseline."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby

from noisescale_server.analysis.cost.trainings import Training

Measure = Callable[[Training], float | None]
NO_PRICE = "no price is known, so it has no place between time and money"


@dataclass(frozen=True, slots=True)
class Record:
    """A training that was better than all before it.

    Attributes:
        training: Which.
        value: Hours or USD.
        of_baseline: The first record's value divided by this one.
        of_previous: The record's before divided by this one; 1 for the first.
    """

    training: Training
    value: float
    of_baseline: float
    of_previous: float


@dataclass(frozen=True, slots=True)
class Improvement:
    """How many times less the best takes than the baseline.

    Attributes:
        baseline: The best of the first day.
        best: The best of all.
        before: Hours or USD of the baseline.
        after: Of the best.
    """

    baseline: Training
    best: Training
    before: float
    after: float

    @property
    def times(self) -> float:
        """Before divided by after."""
        return self.before / self.after


@dataclass(frozen=True, slots=True)
class SameHardware:
    """Trainings on as many devices of one kind: what changed is not the hardware.

    Attributes:
        device: Kind.
        num_devices: How many.
        records: The line of records in hours, at least two.
    """

    device: str
    num_devices: int
    records: tuple[Record, ...]

    @property
    def times(self) -> float:
        """First record's hours divided by the last one's."""
        return self.records[-1].of_baseline


def hours(training: Training) -> float | None:
    """Hours to the target."""
    return training.hours


def usd(training: Training) -> float | None:
    """USD to the target."""
    return training.usd


def until(trainings: Iterable[Training], last: date | None) -> tuple[Training, ...]:
    """Those up to this day, it included; None: all."""
    return tuple(one for one in trainings if last is None or one.day <= last)


def pareto_front(trainings: Iterable[Training]) -> tuple[Training, ...]:
    """Those than which no other is at least as fast and as cheap, and better in one: fastest first.

    Trainings without a price are left out. Of equals all are kept.
    """
    priced = sorted(((one.hours, one.usd, one) for one in trainings if one.usd is not None), key=lambda row: row[:2])
    front: list[Training] = []
    cheapest = float("inf")
    for _, same_time in groupby(priced, key=lambda row: row[0]):
        rows = list(same_time)
        least = rows[0][1]
        if least < cheapest:
            front += [one for _, price, one in rows if price == least]
            cheapest = least
    return tuple(front)


def record_line(trainings: Iterable[Training], measure: Measure = hours) -> tuple[Record, ...]:
    """Each training that beat all days before it; of one day only its best, as the order within a day is not known."""
    known = [(one.day, value, one) for one in trainings if (value := measure(one)) is not None]
    known.sort(key=lambda row: (row[0], row[1], row[2].key))
    found: list[Record] = []
    for _, of_a_day in groupby(known, key=lambda row: row[0]):
        _, value, training = next(of_a_day)
        if not found:
            found.append(Record(training, value, 1.0, 1.0))
        elif value < found[-1].value:
            found.append(Record(training, value, found[0].value / value, found[-1].value / value))
    return tuple(found)


def improvement(trainings: Iterable[Training], measure: Measure = hours) -> Improvement | None:
    """From the first record to the last; None where there is nothing to measure.

    Trainings of the first day start the line, its best is the baseline.
    """
    line = record_line(trainings, measure)
    if not line:
        return None
    return Improvement(line[0].training, line[-1].training, line[0].value, line[-1].value)


def same_hardware(trainings: Iterable[Training]) -> tuple[SameHardware, ...]:
    """Each number and kind of devices on which the record was broken, the largest improvement first."""
    known: dict[tuple[str, int], list[Training]] = {}
    for one in trainings:
        if one.device is not None and one.num_devices is not None:
            known.setdefault((one.device, one.num_devices), []).append(one)
    lines = ((place, record_line(there)) for place, there in known.items())
    found = [SameHardware(device, number, line) for (device, number), line in lines if len(line) > 1]
    return tuple(sorted(found, key=lambda one: -one.times))


def without_price(trainings: Sequence[Training]) -> tuple[Training, ...]:
    """Those that a picture of time against money has to leave out, for the reason `NO_PRICE`."""
    return tuple(one for one in trainings if one.usd is None)
