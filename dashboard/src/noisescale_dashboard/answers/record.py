"""What the REST API says of its own advice in hindsight, as frozen dataclasses; the words are those of docs/rest.md."""

from dataclasses import dataclass

from noisescale_dashboard.answers.common import Json, decoded


@dataclass(frozen=True, slots=True)
class Bin:
    """Changes whose odds were said alike, and the share that came true, with its 95 % interval."""

    low: float
    high: float
    num_answers: int
    said: float
    came_true: float
    came_true_low: float
    came_true_high: float


@dataclass(frozen=True, slots=True)
class AtShare:
    """What was said at one share of the plan; costs are median shares above the best batch."""

    share: float
    num_answers: int
    decided: float
    regret: float
    regret_kept: float
    regret_of_price: float
    right: float | None = None


@dataclass(frozen=True, slots=True)
class AdviceRecord:
    """Stated odds against what came true, over runs of sweeps."""

    num_runs: int
    bins: tuple[Bin, ...] = ()
    records: tuple[AtShare, ...] = ()


def record(data: Json) -> AdviceRecord:
    """The record in `data`."""
    return decoded(AdviceRecord, data)
