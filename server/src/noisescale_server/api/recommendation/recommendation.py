"""GET /api/v1/runs/{run_id}/recommendation: which batch size now, why, how sure, and what it would change."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, Field

from noisescale_core.advice.language_model import PlannedModel, recommend
from noisescale_core.advice.question import Question
from noisescale_core.advice.trainer_flags import Trainer, as_flags
from noisescale_core.errors import DomainError
from noisescale_core.theory.language_models import MOST_TOKENS
from noisescale_server.api.platform.deps import (
    AppSettings,
    KnownWholeRuns,
    Now,
    PlainReadSession,
    RunId,
    Text,
    read_ids,
)
from noisescale_server.api.recommendation.schemas import (
    RecommendationAnswer,
    RunRecommendationQuery,
    SeveralRecommendations,
    SeveralRecommendationsQuery,
    as_said,
    by_definition,
    question_model,
)
from noisescale_server.api.runs.which import patience
from noisescale_server.services.platform.errors import refuse
from noisescale_server.services.recommendation import run_advice
from noisescale_server.services.recommendation.run_advice import RunAdvice

router = APIRouter(tags=["recommendation"])

MOST_AT_ONCE = 20
"""Runs of one question: some milliseconds each."""


@router.get("/runs/recommendations")
async def get_recommendations(
    query: Annotated[SeveralRecommendationsQuery, Query()], session: PlainReadSession, whole_runs: KnownWholeRuns
) -> SeveralRecommendations:
    """The recommendations of several runs at one preference, for a list of them; ids without a run are left out."""
    found = await run_advice.advise_several(session, whole_runs, read_ids(query.ids, MOST_AT_ONCE), query.question())
    return SeveralRecommendations(
        recommendations=[RecommendationAnswer(**as_said(one.recommendation)) for one in found]
    )


@router.get("/runs/{run_id}/recommendation", response_model=RecommendationAnswer)
async def get_recommendation(
    run_id: RunId,
    query: Annotated[RunRecommendationQuery, Query()],
    session: PlainReadSession,
    whole_runs: KnownWholeRuns,
    settings: AppSettings,
    now: Now,
) -> RecommendationAnswer | PlainTextResponse:
    """Which batch size to use now and for the rest, for a reader who values steps and examples as the query says."""
    asked = query.question()
    crashed_before = now - patience(settings).crashed_after
    advice = await run_advice.advise(
        session, whole_runs, run_id, asked, to_step=query.to_step, crashed_before=crashed_before
    )
    if query.format == "json":
        found, by = advice.recommendation, query.definition
        known = None
        if by is not None:
            known = by_definition(found.critical_batch, by, query.definition_share, query.definition_batch)
        return RecommendationAnswer(**as_said(found), critical_batch_by_definition=known)
    return PlainTextResponse(flags_answer(advice, query.format, advice.asked))


def flags_answer(advice: RunAdvice, trainer: Trainer, asked: Question) -> str:
    """The schedule as a trainer takes it.

    Raises:
        InvalidInput: Where there is no schedule, with what is missing.
    """
    found, rate = advice.recommendation.schedule, advice.recommendation.exchange_rate
    batch_now = advice.so_far.batch_size
    if found is None or rate is None or batch_now is None:
        raise refuse("format", f"there is no schedule to write: {advice.recommendation.schedule_missing}", trainer)
    return as_flags(
        found,
        trainer,
        asked,
        batch_now=batch_now,
        units_per_example=advice.run.units_per_example,
        num_devices=advice.run.num_devices,
        examples_per_step=rate.examples_per_step,
    )


# GET /api/v1/recommendation: the batch of a language model before its first step, from published sweeps alone.


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
