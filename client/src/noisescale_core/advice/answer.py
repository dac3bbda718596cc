"""THE answer of a recommendation, as `GET …/recommendation` says it in JSON and `run.recommendation()` returns it."""

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

from noisescale_core.advice.limited import LimitedBatch
from noisescale_core.advice.limits.predictions import HadWeUsed, Parallelism, Predictions
from noisescale_core.advice.parts.parts import (
    AnyDecision,
    AtPreference,
    Calibration,
    Caution,
    ExchangeRate,
    Interval,
    LatestNoiseScale,
    LearningRateAdvice,
    NowAndThen,
    Odds,
    Predicted,
    Sureness,
    Waste,
)
from noisescale_core.advice.plan import Schedule
from noisescale_core.advice.surer import Surer
from noisescale_core.theory.learning_rate import Change

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """Which batch size to use, why, how sure, and what it would change; None where nothing can be said.

    Batches, the noise scale and intervals of both are in examples. Before a run's first step, where a task is asked
    about, what only a run that has begun can be told is None.

    Attributes:
        run_id: Of the run; None before its first step.
        step: Optimizer step that the advice stands at.
        unit: What batches are shown in, plural.
        example: What is sampled independently, in the singular.
        units_per_example: Units in one example.
        noise_scale: What the advice rests on; of a task that of its earlier runs together.
        decision: What to do.
        headline: The same in a few words.
        short_reason: Why, in one short sentence for a person who has never read the papers.
        reason: Why, with the numbers behind it.
        sureness: That a change is cheaper, as a word for the odds; None where nothing is to be changed.
        effect: What following it would change, or what is possible where limits exclude each other.
        current_batch_size: In examples.
        recommended_batch_size: Inside the limits, a whole batch that can be run.
        odds: That the recommended batch is cheaper than the present one, and what is at stake; None where the learning
            rate is so far off that they do not hold.
        otherwise: The batch for readers who value steps otherwise, where the price is assumed.
        rounding_regret: What rounding to it costs, as a share.
        interval: Of the best batch at the price, by both errors, without limits.
        statistical_interval: The same by the measurement's error alone.
        calibration: What is known of κ.
        exchange_rate: What a step is worth.
        preference: As it was said; 0.5 where nothing was; None where the price was said otherwise.
        critical_batch: B_crit = κ × noise scale.
        learning_rate: That goes with the recommended batch.
        example_efficiency: φ / (B + φ) now and then.
        step_efficiency: B / (B + φ) now and then.
        predicted: Steps and examples to the same loss, relative to now.
        waste: Of the run so far.
        warnings: What to know before following it.
        next_step: The next cheapest thing that would make it surer.
        next_steps: All of those, with what each costs.
        limited: The best batch inside the limits, before rounding.
        predictions: The rest of the plan at several batches.
        counterfactual: The run so far at the recommended batch.
        parallelism: How many devices the run can use.
        rescaling: What to set with the recommended batch.
        schedule: For the rest of the run.
        schedule_missing: Why there is none.
    """

    reason: str
    run_id: str | None = None
    step: int | None = None
    unit: str = "examples"
    example: str = "example"
    units_per_example: float = 1.0
    noise_scale: LatestNoiseScale | None = None
    decision: AnyDecision = "insufficient_evidence"
    headline: str = "No recommendation"
    short_reason: str = ""
    sureness: Sureness | None = None
    effect: str | None = None
    current_batch_size: float | None = None
    recommended_batch_size: int | None = None
    odds: Odds | None = None
    otherwise: tuple[AtPreference, ...] = ()
    rounding_regret: float | None = None
    interval: Interval | None = None
    statistical_interval: Interval | None = None
    calibration: Calibration | None = None
    exchange_rate: ExchangeRate | None = None
    preference: float | None = None
    critical_batch: Interval | None = None
    learning_rate: LearningRateAdvice | None = None
    example_efficiency: NowAndThen | None = None
    step_efficiency: NowAndThen | None = None
    predicted: Predicted | None = None
    waste: Waste | None = None
    warnings: tuple[Caution, ...] = ()
    next_step: str | None = None
    next_steps: tuple[Surer, ...] = ()
    limited: LimitedBatch | None = None
    predictions: Predictions | None = None
    counterfactual: HadWeUsed | None = None
    parallelism: Parallelism | None = None
    rescaling: tuple[Change, ...] | None = None
    schedule: Schedule | None = None
    schedule_missing: str | None = None


# From the JSON of `docs/rest.md` to the answer's dataclasses, also of a server that is older or newer than we are.
#
# Names that are not known are passed by, and a part that cannot be read is None.


def as_part(kind: type[Part], value: Mapping[str, object], **given: Any) -> Part:
    """The dataclass that JSON says, field by field; what it lacks or garbles has the default.

    Args:
        kind: A dataclass whose fields have defaults or are given.
        value: A JSON object.
        given: Fields that the JSON does not say.
    """
    kinds = kinds_of(kind)  # type: ignore[arg-type]  # mypy takes type[T] for no hashable
    names = (value.keys() & kinds.keys()) - given.keys()
    known = {name: found for name in names if (found := read(kinds[name], value[name])) is not None}
    return kind(**(known | given))


def read(kind: object, value: object) -> object:
    """The value as this kind: a number, a text, a part, a tuple of them; None where it is none.

    Args:
        kind: As in the annotation of a field.
        value: As JSON gives it.
    """
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        kinds = [one for one in typing.get_args(kind) if one is not type(None)]
        return read(kinds[0], value)
    if typing.get_origin(kind) is typing.Literal:
        return value if isinstance(value, str) else None  # a newer server may know more words
    if typing.get_origin(kind) is tuple:
        return _read_all(typing.get_args(kind)[0], value)
    if is_dataclass(kind) and isinstance(kind, type):
        return _read_part(kind, value)
    if kind is float:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    return value if isinstance(kind, type) and isinstance(value, kind) else None


def _read_all(kind: object, value: object) -> tuple[object, ...] | None:
    if not isinstance(value, list | tuple):
        return None
    found = tuple(read(kind, one) for one in value)
    return None if None in found else found


def _read_part(kind: type, value: object) -> object:
    """The part, unless something is missing in it that is never None."""
    if not isinstance(value, Mapping):
        return None
    kinds, found = kinds_of(kind), {}
    for one in fields(kind):
        item = read(kinds[one.name], value.get(one.name))
        if item is not None:
            found[one.name] = item
        elif one.default is MISSING:
            if type(None) not in typing.get_args(kinds[one.name]):
                return None
            found[one.name] = None
    return kind(**found)


@cache
def kinds_of(kind: type) -> Mapping[str, object]:
    """From each field of a dataclass to what it holds."""
    return typing.get_type_hints(kind)
