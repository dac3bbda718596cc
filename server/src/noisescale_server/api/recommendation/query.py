"""What a reader asks with a recommendation: the fields of `noisescale_core.advice.question`, as a query."""

from collections.abc import Iterable
from dataclasses import Field as QuestionField
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from noisescale_core.advice import question
from noisescale_core.advice.limits.pace import spot_of
from noisescale_core.advice.question import FIELDS, MAX_BATCHES, Question
from noisescale_core.advice.trainer_flags import Trainer
from noisescale_core.errors import DomainError
from noisescale_server.api.platform.deps import Step, TwentyIds
from noisescale_server.api.recommendation.schemas import DefinitionName
from noisescale_server.services.platform.errors import refuse

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
