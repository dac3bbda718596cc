"""The sentences of limits: what each allows, and why they move the batch or leave none."""

import math

from noisescale_core.advice.parts.numbers import number
from noisescale_core.theory.limits import Choice, Limit, LimitKind

WHOLE, LARGEST_WRITTEN = 10.0, 1e15
"""Between these a limit is written as the whole batch next to it that meets it."""


def sentence(limit: Limit, example: str = "example") -> str:
    """What a limit allows.

    Args:
        limit: Of a plan, of the batch itself, or in words of its own.
        example: What is sampled independently, as a word.
    """
    if limit.words:
        return limit.words
    if limit.kind.role is not None:
        return _of_plan(limit, example)
    match limit.kind:
        case LimitKind.MEMORY if limit.high == math.inf:
            return "Accumulating micro-batches, any batch fits into memory."
        case LimitKind.MEMORY:
            return f"Memory allows a batch of {limit.high:,.0f}; accumulating micro-batches allows more."
        case LimitKind.DEVICES:
            return _of_devices(limit, example)
    return f"The data set holds {limit.high:,.0f} examples."


def _of_plan(limit: Limit, example: str) -> str:
    unit = limit.kind.unit.format(example=example)
    said = f"{limit.asked or 0.0:,.10g} {unit}"
    if not limit.is_possible:
        least = f"{number(limit.least or 0.0)} {unit}"
        return f"{said} are too few: {limit.target} takes more than {least} at any batch size."
    if limit.high == math.inf:
        return f"{said} need a batch of {_at_least(limit.low)} or more."
    if limit.low == 0:
        return f"{said} allow a batch of {_at_most(limit.high)} or less."
    return f"{said} need a batch between {_at_least(limit.low)} and {_at_most(limit.high)}."


def _of_devices(limit: Limit, example: str) -> str:
    devices = limit.asked or 1
    if limit.high == math.inf:
        return f"{devices:,.10g} devices need a batch of {limit.low:,.4g} or more to all work."
    named = f"{devices:,.10g} device{'' if devices == 1 else 's'} of {number(limit.high / devices)} {example}s each"
    return f"{named} run a batch of {limit.high:,.10g} or less; beyond it a step takes longer."


def _at_least(batch: float) -> str:
    return f"{math.ceil(batch):,}" if WHOLE <= batch < LARGEST_WRITTEN else number(batch)


def _at_most(batch: float) -> str:
    return f"{math.floor(batch):,}" if WHOLE <= batch < LARGEST_WRITTEN else number(batch)


def why(choice: Choice, example: str = "example") -> str:
    """What moved the batch, or why there is none.

    Args:
        choice: Of the limits.
        example: What is sampled independently, as a word.
    """
    if not choice.limits:
        return "Nothing limits the batch."
    if not choice.binding:
        return "No limit binds: the price decides."
    said = " ".join(sentence(limit, example) for limit in choice.binding)
    if choice.batch is None and all(limit.is_possible for limit in choice.binding):
        return f"These exclude each other: {said} Loosen one of them."
    return said
