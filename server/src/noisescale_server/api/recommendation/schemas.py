"""A recommendation as JSON: THE answer of `noisescale_core.advice.answer`, and what only a server adds."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from pydantic import ConfigDict

from noisescale_core.advice import answer as core
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.api.recommendation.critical_by_definition import CriticalByDefinition

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
