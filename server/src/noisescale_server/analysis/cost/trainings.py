"""Trainings to a target, one's own or published, and DAWNBench's submissions as package data.

The facts are those of github.com/stanford-futuredata/dawn-bench-entries, commit fb27b827bd83: what the entry's own
table says of time and money, by the rule of its README: the first row at or past the target, hours times the price of
the whole set-up. Nobody has adjusted a price for its year, region or spot market.
"""

import json
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

Origin = Literal["own", "dawnbench"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """One training that reached a target.

    Attributes:
        key: Id of the run, or path of the entry.
        name: For people.
        origin: Whose it is, and so whose prices.
        day: When it was submitted, or began.
        hours: To the target.
        usd: To the target, on demand; None where no price is known.
        price_said: Where the price comes from.
        device: Kind of device; None where nobody said.
        num_devices: How many; None where nobody said.
        batch_size: Examples per step; of a run on a board its newest batch, in a step along the records its only one.
        passes: Epochs, or examples, to the target: in one unit over all trainings that are compared.
        software: Framework and version.
        model: What was trained.
        hardware: In the entry's own words.
    """

    key: str
    name: str
    origin: Origin
    day: date
    hours: float
    usd: float | None
    price_said: str
    device: str | None = None
    num_devices: int | None = None
    batch_size: float | None = None
    passes: float | None = None
    software: str = ""
    model: str = ""
    hardware: str = ""

    @property
    def device_hours(self) -> float | None:
        """Hours times devices; None where their number is not known."""
        return None if self.num_devices is None else self.hours * self.num_devices

    @property
    def passes_per_device_hour(self) -> float | None:
        """Throughput of one device; None where a part of it is not known."""
        if self.passes is None or self.num_devices is None:
            return None
        return self.passes / (self.hours * self.num_devices)


@dataclass(frozen=True, slots=True)
class Target:
    """What DAWNBench's trainings of a task had to reach.

    Attributes:
        task: ImageNet, CIFAR10 or SQuAD.
        metric: As the entries call it.
        at_least: Its value.
    """

    task: str
    metric: str
    at_least: float


@dataclass(frozen=True, slots=True)
class Published:
    """The factors that were published of a task.

    Attributes:
        task: Which.
        until: Day of the last entry that they know.
        times_faster: Baseline's hours divided by the best.
        times_cheaper: Baseline's USD on demand divided by `spot_usd`.
        spot_usd: A published price on interruptible machines, which no entry of the file holds.
        same_hardware_hours: Pairs of hours before and after on the same hardware.
        source: Where they stand.
    """

    task: str
    until: date
    times_faster: float
    times_cheaper: float
    spot_usd: float
    same_hardware_hours: tuple[tuple[float, float], ...]
    source: str


@lru_cache(maxsize=1)
def submissions() -> dict[str, tuple[Training, ...]]:
    """DAWNBench's entries by task, in the order of the file."""
    facts = _facts()
    found: dict[str, list[Training]] = {task: [] for task in facts["targets"]}
    for row in facts["entries"]:
        found[row["task"]].append(_training(row, facts["hardware"][row["hardware"]]))
    return {task: tuple(rows) for task, rows in found.items()}


@lru_cache(maxsize=1)
def targets() -> tuple[Target, ...]:
    """What the trainings of each task had to reach."""
    return tuple(Target(task, row["metric"], row["at_least"]) for task, row in _facts()["targets"].items())


@lru_cache(maxsize=1)
def published() -> Published:
    """What was published of these entries."""
    row = _facts()["published"]
    return Published(
        task=row["task"],
        until=date.fromisoformat(row["until"]),
        times_faster=row["times_faster"],
        times_cheaper=row["times_cheaper"],
        spot_usd=row["spot_usd"],
        same_hardware_hours=tuple((before, after) for before, after in row["same_hardware_hours"]),
        source=row["source"],
    )


def source() -> str:
    """Where the entries come from, and how their devices were counted."""
    facts = _facts()
    return f"{facts['source']}. {facts['hardware_note']}"


def _training(row: dict[str, Any], hardware: dict[str, Any]) -> Training:
    price = row["usd_per_hour"]
    return Training(
        key=row["entry"],
        name=f"{row['model']} · {row['hardware']}",
        origin="dawnbench",
        day=date.fromisoformat(row["date"]),
        hours=row["hours_to_target"],
        usd=row["usd_to_target"],
        price_said=_price_said(price, row["usd_to_target"]),
        device=hardware["device"],
        num_devices=hardware["num_devices"],
        batch_size=row["batch_size"],
        passes=row["epochs_to_target"],
        software=row["framework"],
        model=row["model"],
        hardware=row["hardware"],
    )


def _price_said(price: float | None, usd: float | None) -> str:
    if usd is None:
        return "no price submitted"
    return "as submitted" if price is None else f"{price:g} USD an hour as submitted"


@lru_cache(maxsize=1)
def _facts() -> dict[str, Any]:
    text = files("noisescale_server").joinpath("data", "dawnbench.json").read_text(encoding="utf-8")
    facts: dict[str, Any] = json.loads(text)
    return facts
