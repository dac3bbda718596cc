"""Scales the learning rates of an optimizer together with the schedule that sets them.

A schedule goes on as it was, times a factor: drops, decay and warm-up stay where they are. What a schedule multiplies
or computes from is scaled with it, in the way PyTorch 2.13 keeps it: `base_lrs` of each schedule (LambdaLR, restarts of
a cosine), `eta_min` of cosines, `max_lrs` of CyclicLR, `min_lrs` of ReduceLROnPlateau, and in the groups `initial_lr`,
and `max_lr` and `min_lr` of OneCycleLR. Schedules that multiply the present rate need nothing but that.
"""

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from noisescale_core.theory.learning_rate import BatchChange, Change
from noisescale_core.theory.rescaling import Hyperparameters, rescale_all

Companion = Literal["betas", "epsilon", "weight_decay"]
COMPANIONS: tuple[Companion, ...] = get_args(Companion)
_FIELDS: dict[Companion, tuple[str, ...]] = {
    "betas": ("beta1", "beta2"),
    "epsilon": ("epsilon",),
    "weight_decay": ("weight_decay",),
}
_NAMES = {"betas": "betas", "epsilon": "eps", "weight_decay": "weight_decay"}

FirstValues = list[dict[str, Any]]
"""For each group the values that it began with, by PyTorch's names."""

GROUP_RATES = ("lr", "initial_lr")
ONE_CYCLE_RATES = ("max_lr", "min_lr")
LISTS_OF_RATES = ("base_lrs", "max_lrs", "min_lrs")


# What else may follow the batch, if asked: betas, epsilon and weight decay, each group from its own first values.
#
# The rules are those of `noisescale_core.theory.rescaling`. They start from what the run began with, so nothing
# ratchets.


@dataclass(frozen=True, slots=True)
class GroupChange:
    """New values of one group by PyTorch's names, and what they are, a sentence each."""

    values: Mapping[str, Any]
    sentences: tuple[str, ...]


def first_values(groups: Sequence[Mapping[str, Any]]) -> FirstValues:
    """What each group has now of all that may follow."""
    return [{name: group[name] for name in _NAMES.values() if name in group} for group in groups]


def follow_batch(
    asked: Sequence[Companion], first: FirstValues, optimizer: str, batch: BatchChange, rate_factor: float
) -> list[GroupChange]:
    """The values of every group at another batch.

    Args:
        asked: What may change.
        first: From `first_values()`.
        optimizer: Class name.
        batch: From the first batch to the new one.
        rate_factor: On the first learning rates; weight decay keeps ε λ / B with it.
    """
    return [_of_group(asked, values, optimizer, batch, rate_factor) for values in first]


def _of_group(
    asked: Sequence[Companion], first: Mapping[str, Any], optimizer: str, batch: BatchChange, rate_factor: float
) -> GroupChange:
    betas = first.get("betas", (None, None))
    has_decay = first.get("weight_decay", 0) != 0
    now = Hyperparameters(
        learning_rate=1.0,
        beta1=betas[0],
        beta2=betas[1],
        epsilon=first.get("eps"),
        weight_decay=first["weight_decay"] if has_decay else None,
    )
    changes = {change.field: change for change in rescale_all(optimizer, now, batch).changes}
    rule_factor = changes["learning_rate"].after
    assert rule_factor is not None
    found: dict[str, Any] = {}
    sentences: list[str] = []
    for companion in asked:
        fields = [changes[field] for field in _FIELDS[companion] if field in changes]
        # the rule for the decay assumes its own learning rate, and the policy may ask for another
        has_rule = companion == "weight_decay" and any(change.rule != "kept" for change in fields)
        scale = rule_factor / rate_factor if has_rule else 1.0
        values = tuple(change.before if change.after is None else change.after * scale for change in fields)
        if fields:
            found[_NAMES[companion]] = values if companion == "betas" else values[0]
        sentences += [_sentence(change, value) for change, value in zip(fields, values, strict=True)]
    return GroupChange(found, tuple(sentences))


def _sentence(change: Change, value: float) -> str:
    if change.after is None:
        return f"{change.field} stays {change.before:.4g}: {change.text}"
    return f"{change.field} {change.before:.4g} to {value:.4g} by {change.rule} from its first value"


class HasGroups(Protocol):
    """An optimizer."""

    param_groups: list[dict[str, Any]]


class ScheduledRates:
    """The learning rates of an optimizer, each group by its own, times one factor.

    Args:
        optimizer: PyTorch's, or one like it.
        scheduler: What sets its learning rates; None: nothing does.

    Attributes:
        factor: On the rates that there were at the beginning.
    """

    def __init__(self, optimizer: HasGroups, scheduler: object | None) -> None:
        self.factor = 1.0
        self._optimizer = optimizer
        self._schedules = [] if scheduler is None else list(_flat(scheduler))

    def scheduled(self) -> float:
        """The first group's rate without the factor; waits for the device where it is kept there."""
        return float(self._optimizer.param_groups[0]["lr"]) / self.factor

    def scale_to(self, factor: float) -> None:
        """Make the factor this one."""
        change = factor / self.factor
        names = GROUP_RATES + (ONE_CYCLE_RATES if any(map(_is_one_cycle, self._schedules)) else ())
        for group in self._optimizer.param_groups:
            for name in names:
                if name in group:
                    _multiply(group, name, change)
        for schedule in self._schedules:
            _scale(schedule, change)
        self.factor = factor


def _flat(scheduler: object) -> Iterator[object]:
    """A schedule and those inside it: of SequentialLR, ChainedScheduler, and what Accelerate wraps."""
    yield scheduler
    wrapped = getattr(scheduler, "scheduler", None)
    for inside in [*getattr(scheduler, "_schedulers", ()), *([] if wrapped is None else [wrapped])]:
        yield from _flat(inside)


def _is_one_cycle(schedule: object) -> bool:
    return type(schedule).__name__ == "OneCycleLR"


def _scale(schedule: object, change: float) -> None:
    kept = vars(schedule)
    for name in LISTS_OF_RATES:
        if isinstance(kept.get(name), list):
            kept[name] = [rate * change for rate in kept[name]]
    if "eta_min" in kept:
        _multiply(kept, "eta_min", change)


def _multiply(kept: MutableMapping[str, Any], name: str, change: float) -> None:
    """A rate on a device is changed in place, as a captured graph reads it there."""
    rate = kept[name]
    if hasattr(rate, "mul_"):
        rate.mul_(change)
    else:
        kept[name] = rate * change
