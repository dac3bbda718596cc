"""A recommendation as JSON: THE answer of `noisescale_core.advice.answer`, and what only a server adds."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict

from noisescale_core.advice import answer as core
from noisescale_core.advice.parts.parts import Interval
from noisescale_server.analysis.recommendation.definitions import DEFINED_BY, DefinedCriticalBatch, Definition
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.services.platform.errors import refuse

# The critical batch as a paper defines it, where somebody asks for that.

DefinitionName = Literal[
    "half_efficiency", "example_efficiency", "example_overhead", "overhead_from_batch", "perfect_scaling", "plateau"
]
"""Those that follow from the trade-off of steps and examples."""


class CriticalByDefinition(Answer):
    """B_crit converted; it holds where S = S_min (1 + B_crit / B) does, for the same target."""

    definition: DefinitionName
    share: float | None
    from_batch: float | None
    value: float
    low: float
    high: float
    level: float
    text: str


def by_definition(
    found: Interval | None, name: DefinitionName, share: float | None, from_batch: float | None = None
) -> CriticalByDefinition | None:
    """The critical batch by another definition; None without one.

    Args:
        found: B_crit with its interval, in examples.
        name: The definition.
        share: The share or tolerance that it needs.
        from_batch: The batch that it starts from, in examples.

    Raises:
        InvalidInput: If the share or the batch is missing, out of place or out of range.
    """
    definition = Definition(name)

    def converted(value: float) -> float:
        half = DefinedCriticalBatch(value, Definition.HALF_EFFICIENCY, "any", "examples")
        return half.to(definition, share=share, from_batch=from_batch).value

    try:
        converted(1.0)
    except ValueError as error:
        is_batch = str(error).startswith("from_batch")
        named, value = ("definition_batch", from_batch) if is_batch else ("definition_share", share)
        raise refuse(named, str(error), value) from error
    if found is None:
        return None
    return CriticalByDefinition(
        definition=name,
        share=share,
        from_batch=from_batch,
        value=converted(found.value),
        low=converted(found.low),
        high=converted(found.high),
        level=found.level,
        text=DEFINED_BY[definition],
    )


AS_JSON = ConfigDict(ser_json_inf_nan="null", json_schema_serialization_defaults_required=True)
"""Numbers that are not finite become null, and every field is always there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendationAnswer(core.Recommendation):
    """The advice; null where nothing can be said. What each field means: `noisescale_core.advice.answer`."""

    __pydantic_config__: ClassVar[ConfigDict] = AS_JSON

    critical_batch_by_definition: CriticalByDefinition | None = None


class SeveralRecommendations(Answer):
    """The recommendations of several runs, in the order of their ids."""

    recommendations: list[RecommendationAnswer]


def as_said(found: core.Recommendation) -> dict[str, Any]:
    """The fields of an answer by name, for one that adds to them."""
    return {one.name: getattr(found, one.name) for one in fields(core.Recommendation)}
