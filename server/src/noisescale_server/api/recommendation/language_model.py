"""GET /api/v1/recommendation: the batch of a language model before its first step, from published sweeps alone."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from noisescale_core.advice.language_model import PlannedModel, recommend
from noisescale_core.advice.question import Question
from noisescale_core.errors import DomainError
from noisescale_core.theory.language_models import MOST_TOKENS
from noisescale_server.api.platform.deps import Text
from noisescale_server.api.recommendation.query import question_model
from noisescale_server.api.recommendation.schemas import RecommendationAnswer, as_said
from noisescale_server.services.platform.errors import refuse

router = APIRouter(tags=["recommendation"])


class LanguageModelQuery(
    BaseModel if TYPE_CHECKING else question_model("WorthBeforeARun", ["preference", "examples_per_step"])  # type: ignore[misc]  # no static base
):
    """What is planned, and what a step is worth."""

    tokens: Annotated[float | None, Field(ge=1, le=MOST_TOKENS, description="to be trained on")] = None
    params: Annotated[float | None, Field(ge=1, le=MOST_TOKENS, description="where tokens are not said: 20 each")] = (
        None
    )
    sequence_length: Annotated[int, Field(ge=1, le=10**9, description="tokens of an example")] = 1
    optimizer: Annotated[Text, Field(description="adam or adamw; others are not published")] = "adamw"
    mixture_of_experts: Annotated[bool, Field(description="a mixture of experts: each token goes to some of them")] = (
        False
    )


@router.get("/recommendation")
async def get_language_model_recommendation(query: Annotated[LanguageModelQuery, Query()]) -> RecommendationAnswer:
    """Which batch to begin with: pre-training from scratch on text, one epoch, Adam or AdamW."""
    try:
        planned = PlannedModel(
            tokens=query.tokens,
            params=query.params,
            sequence_length=query.sequence_length,
            optimizer=query.optimizer,
            is_mixture=query.mixture_of_experts,
        )
        asked = Question(preference=query.preference, examples_per_step=query.examples_per_step)
        return RecommendationAnswer(**as_said(recommend(planned, asked)))
    except DomainError as error:
        raise refuse(_field(str(error)), str(error)) from error


def _field(message: str) -> str:
    """The field that a message begins with."""
    said = message.split(maxsplit=1)[0]
    return said if said in LanguageModelQuery.model_fields else "tokens"
