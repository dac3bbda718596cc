"""What the rows of one run mean, once its roles are chosen: step, loss, batch, examples, rate, and the metrics."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from noisescale_importers.roles import Taken
from noisescale_importers.source import Damage, Row, is_name, shown

MAX_NUMBER = 2**53 - 1
MAX_BATCH = 1e15
MIN_BATCH = 1e-9
MAX_SUM = 1e75
MIN_MAGNITUDE = 1e-140
MAX_UNIX_SECONDS = 253_402_300_799.0

MEASURED = ("loss", "learning-rate", "batch", "batch-tokens", "tokens", "examples")
"""Roles that are of a step's own row; of a tracker's single values they are put together."""

NOT_METRICS = {*MEASURED, "step", "time", "elapsed", "sequence-length", "seed", "price", "steps-to-target"}


class Values(NamedTuple):
    """One row as its roles have it.

    Attributes:
        step: Optimizer step.
        time: Unix seconds, or None.
        elapsed: Seconds since the start, or None.
        loss: Training loss; not finite where it diverged; None: not in this row.
        lr: Learning rate, or None.
        batch: Examples of an optimizer step, or None.
        examples: Seen so far, or None.
        metrics: All other values by their own names.
    """

    step: int
    time: float | None
    elapsed: float | None
    loss: float | None
    lr: float | None
    batch: float | None
    examples: int | None
    metrics: Mapping[str, float]


@dataclass
class Reading:
    """Reads rows; batch sizes that nobody logs come from tokens or examples seen, by differences.

    Args:
        roles: What fills each role.
        units: Units per example, tokens of a sequence; None: not known.
        is_one_row: Whether the one row says how the run ended: its step follows from what was seen.

    Attributes:
        faults: What was left out since somebody looked, in words.
    """

    roles: Mapping[str, Taken]
    units: float | None = None
    is_one_row: bool = False
    _place: int = field(default=0, init=False)
    faults: list[str] = field(default_factory=list, init=False)
    _refused: set[str] = field(default_factory=set, init=False)
    _before: tuple[int, float] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        length = self.units
        counts_tokens = "batch" not in self.roles and bool({"tokens", "batch-tokens"} & set(self.roles))
        self.units_per_example = length or 1.0
        self.unit = "tokens" if length or counts_tokens else "examples"
        self.example = "sequence" if length else "token" if counts_tokens else "example"
        self._tokens_an_example = length or (1.0 if counts_tokens else None)
        self.hidden = {taken.column for role, taken in self.roles.items() if role in NOT_METRICS}
        self.measured = {
            taken.column for role, taken in self.roles.items() if role in MEASURED and taken.column is not None
        }

    def read(self, row: Row) -> Values | Damage:
        """The row by its roles, or what is wrong with it."""
        place, self._place = self._place, self._place + 1
        step = self._step(row, place)
        if isinstance(step, Damage):
            return step
        value = self._values_of(row)
        for role, number in value.items():
            wrong = _fault(role, number)
            if wrong is not None:
                return Damage(row.place, f"{self._name(role)} {wrong}, got {number:g}", is_a_row=True)
        time = value.get("time", row.time)
        if time is not None and not 0 <= time <= MAX_UNIX_SECONDS:
            return Damage(row.place, f"the time is no Unix seconds, got {time:g}", is_a_row=True)
        examples = self._examples(value)
        return Values(
            step,
            time,
            value.get("elapsed"),
            value.get("loss"),
            value.get("learning-rate"),
            self._batch(value, step),
            None if examples is None else round(examples),
            self._metrics(row),
        )

    def _metrics(self, row: Row) -> dict[str, float]:
        """The other values; names that the server would refuse are left out, and said once each."""
        found = {}
        for name, number in row.values.items():
            if name in self.hidden or name in self._refused:
                continue
            if is_name(name):
                found[name] = number
            else:
                self._refused.add(name)
                self.faults.append(f"the metric {shown(name)!r} is left out: its name is no printable text of 1 to 256")
        return found

    def _values_of(self, row: Row) -> dict[str, float]:
        found = {}
        for role, taken in self.roles.items():
            number = taken.number if taken.column is None else row.values.get(taken.column)
            if number is not None:
                found[role] = number
        return found

    def _name(self, role: str) -> str:
        column = self.roles[role].column if role in self.roles else None
        return role if column is None else f"{role} ({shown(column)})"

    def _step(self, row: Row, place: int) -> int | Damage:
        taken = self.roles.get("step")
        number: float | None = row.step
        if taken is not None and taken.column is not None and (row.step is None or taken.origin == "given"):
            number = row.values.get(taken.column)
            if number is None:
                return Damage(row.place, f"has no {shown(taken.column)}", is_a_row=True)
        if number is None and self.is_one_row:
            number = self._last_step(row)
        if number is None:
            return place
        if not (math.isfinite(number) and 0 <= number <= MAX_NUMBER and number == int(number)):
            return Damage(row.place, f"the step is no whole number from 0 on, got {number:g}", is_a_row=True)
        return int(number)

    def _last_step(self, row: Row) -> float | None:
        """The step of a run's end, counted from 0; None where it does not follow."""
        value = self._values_of(row)
        if "steps-to-target" in value:
            return value["steps-to-target"] - 1
        batch, seen = self._batch(value, 0), self._examples(value)
        return None if batch is None or seen is None else float(max(0, round(seen / batch) - 1))

    def _batch(self, value: Mapping[str, float], step: int) -> float | None:
        batch = value.get("batch")
        if batch is None and "batch-tokens" in value:
            batch = value["batch-tokens"] / (self._tokens_an_example or 1.0)
        if batch is None:
            batch = self._difference(self._examples(value), step)
        return batch if batch is not None and MIN_BATCH <= batch <= MAX_BATCH else None

    def _examples(self, value: Mapping[str, float]) -> float | None:
        if "examples" in value:
            return value["examples"]
        if "tokens" in value and self._tokens_an_example is not None:
            return value["tokens"] / self._tokens_an_example
        return None

    def _difference(self, seen: float | None, step: int) -> float | None:
        """The batch by what was seen since the row before; of the first row it is not known."""
        if seen is None:
            return None
        before, self._before = self._before, (step, seen)
        if before is None or step <= before[0] or seen <= before[1]:
            return None
        return (seen - before[1]) / (step - before[0])


def _fault(role: str, number: float) -> str | None:
    """What is wrong with the value of a role; None where nothing is."""
    if role in ("batch", "batch-tokens") and not MIN_BATCH <= number <= MAX_BATCH:
        return "must be a positive number up to 1e15"
    if role in ("tokens", "examples") and not 0 <= number <= MAX_NUMBER:
        return "must be a number from 0 to 2^53"
    if role == "loss" and math.isfinite(number) and not (number == 0 or MIN_MAGNITUDE <= abs(number) <= MAX_SUM):
        return "must be 0 or from 1e-140 to 1e75 in size"
    if role == "learning-rate" and not math.isfinite(number):
        return "must be finite"
    if role == "elapsed" and not 0 <= number <= MAX_UNIX_SECONDS:
        return "must be seconds from 0 on"
    return None
