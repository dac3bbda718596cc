"""What is asked with a recommendation, and it as JSON: THE answer of `noisescale_core`, and what only a server adds."""

from collections.abc import Iterable
from dataclasses import Field as QuestionField
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from noisescale_core.advice import answer as core
from noisescale_core.advice import question
from noisescale_core.advice.limits.pace import spot_of
from noisescale_core.advice.parts.parts import Interval
from noisescale_core.advice.question import FIELDS, MAX_BATCHES, Question
from noisescale_core.advice.trainer_flags import Trainer
from noisescale_core.errors import DomainError
from noisescale_server.analysis.recommendation.definitions import DEFINED_BY, DefinedCriticalBatch, Definition
from noisescale_server.api.platform.deps import Step, TwentyIds
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


# What a reader asks with a recommendation: the fields of `noisescale_core.advice.question`, as a query.

Batch = Annotated[float, Field(gt=0, le=question.LARGEST)]


IN_A_QUERY = tuple(name for name in FIELDS if name not in question.LISTS)
"""Batches are named one by one there: `batch_size`."""


def question_model(name: str, wanted: Iterable[str]) -> Any:
    """A model of a query with these fields of a question, with the ranges and meanings that stand beside them.

    Args:
        name: Of the model.
        wanted: Names of fields.
    """
    described: dict[str, Any] = {one: _described(FIELDS[one]) for one in wanted}
    return create_model(name, __config__=ConfigDict(extra="forbid"), **described)


def _described(one: "QuestionField[Any]") -> tuple[Any, Any]:
    allowed, meaning = question.range_of(one), question.meaning_of(one)
    if allowed is None:
        return bool, Field(default=one.default, description=meaning)
    kind = int if allowed.is_whole else float
    wanted = kind | None if one.default is None else kind
    return wanted, Field(default=one.default, ge=allowed.low, le=allowed.high, description=meaning)


if TYPE_CHECKING:
    QuestionFields = BaseModel
else:
    QuestionFields = question_model("QuestionFields", IN_A_QUERY)


class SeveralRecommendationsQuery(
    BaseModel if TYPE_CHECKING else question_model("WorthOfAStep", ["preference"])  # type: ignore[misc]  # no static base
):
    """Of which runs, and what a step is worth."""

    ids: TwentyIds

    def question(self) -> Question:
        """The question in the words of the theory."""
        return asked_of(self)


class RecommendationQuery(QuestionFields):
    """What the reader values and has, and at which step."""

    to_step: Annotated[Step | None, Field(description="as if the run stood at this step")] = None
    batch_size: list[Batch] = Field(
        default=[], max_length=MAX_BATCHES, description=question.meaning_of(FIELDS["batch_sizes"])
    )
    format: Annotated[
        Literal["json"] | Trainer, Field(description="json, or the schedule as plain text for a trainer")
    ] = "json"

    def question(self) -> Question:
        """The question in the words of the theory.

        Raises:
            InvalidInput: If a step's worth was said twice, or interruptions leave no time to work.
        """
        asked = asked_of(self, batch_sizes=self.batch_size)
        try:
            spot_of(asked, asked.num_devices or 1)
        except DomainError as error:
            value = asked.interruptions_per_device_hour
            raise refuse("interruptions_per_device_hour", str(error), value) from error
        return asked


class RunRecommendationQuery(RecommendationQuery):
    """What a reader asks of a run besides: the critical batch as a paper defines it."""

    definition: Annotated[
        DefinitionName | None, Field(description="also say the critical batch as a paper defines it")
    ] = None
    definition_share: Annotated[
        float | None, Field(gt=0, le=1e6, description="share or tolerance that the definition needs")
    ] = None
    definition_batch: Annotated[
        Batch | None, Field(description="batch that overhead_from_batch starts from, in examples")
    ] = None


def asked_of(query: BaseModel, **more: Any) -> Question:
    """The question that a query's fields say.

    Args:
        query: Of a model that `question_model` has made.
        more: Fields of the question that the query says in other words.

    Raises:
        InvalidInput: If a step's worth was said twice.
    """
    said = {name: getattr(query, name) for name in FIELDS if name in type(query).model_fields}
    try:
        return Question(**(said | more))
    except DomainError as error:
        ways = {one.name for one in fields(question.Worth)} & query.model_fields_set
        raise refuse(min(ways), str(error)) from error
