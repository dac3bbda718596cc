"""What else may follow the batch, if asked: betas, epsilon and weight decay, each group from its own first values.

The rules are those of `noisescale_core.theory.rescaling`. They start from what the run began with, so nothing ratchets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from noisescale_core.theory.change import BatchChange, Change
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
