"""What a sweep of kind branch carries in its details: arms, verdicts, cost; the words are those of the client."""

from dataclasses import dataclass

from noisescale_dashboard.answers.common import UNKNOWN, Interval, Json, decoded, interval


@dataclass(frozen=True, slots=True)
class Arm:
    """One setting of a branch; `verdict` is as_good, worse or open, None for the present setting.

    `low` and `high` are one-sided limits of the difference from the present setting, each at `level`. `lr_at_end` is
    the rate that a schedule has led to where it moved it.
    """

    batch_size: float
    lr: float
    lr_at_end: float | None = None
    num_steps: int | None = None
    seconds: float | None = None
    loss: float | None = None
    num_held_out_batches: int | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    verdict: str | None = None


@dataclass(frozen=True, slots=True)
class BranchCost:
    """What all arms took together."""

    steps: float | None = None
    examples: float | None = None
    seconds: float | None = None
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """A finished branch: what it means in a sentence, its arms, the present setting first.

    `step`, `noise_scale` and `kappa` are of the run where the branches left; kappa = B_crit / B_noise there.
    """

    meaning: str
    arms: tuple[Arm, ...] = ()
    margin: float | None = None
    before: float | None = None
    local_critical_batch: Interval = UNKNOWN
    cost: BranchCost = BranchCost()
    step: int | None = None
    noise_scale: Interval = UNKNOWN
    kappa: Interval = UNKNOWN


def branch(details: Json) -> Branch:
    """The branch in the details of a sweep; details that something else has written have no arms."""
    arms = details.get("arms")
    rows = [row for row in arms if isinstance(row, dict)] if isinstance(arms, list) else []
    cost, step = details.get("cost"), details.get("step")
    return Branch(
        meaning=str(details.get("meaning") or ""),
        arms=tuple(decoded(Arm, row) for row in rows if {"batch_size", "lr"} <= row.keys()),
        margin=_number(details.get("margin")),
        before=_number(details.get("before")),
        local_critical_batch=_interval(details.get("local_critical_batch")),
        cost=decoded(BranchCost, cost if isinstance(cost, dict) else {}),
        step=step if isinstance(step, int) else None,
        noise_scale=_interval(details.get("noise_scale")),
        kappa=_interval(details.get("kappa")),
    )


def _interval(data: object) -> Interval:
    return interval(data if isinstance(data, dict) else None)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
