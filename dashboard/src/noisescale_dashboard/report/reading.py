"""What a report is made of, read from the API in one go."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from noisescale_dashboard.answers.advice import Recommendation
from noisescale_dashboard.answers.common import Run
from noisescale_dashboard.answers.series import NoiseScaleSeries, Stream
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.report.markup import cut

LONGEST_NAME, LONGEST_WORD = 120, 40
"""Characters."""
FIGURE_POINTS = 320
"""Two a millimetre."""


@dataclass(frozen=True, slots=True)
class Reported:
    """A run, what is recommended for it, and what that rests on.

    Attributes:
        run: With its latest values.
        advice: At the asked preference and inside the asked limits.
        series: The noise scale over training, in examples.
        streams: The processes that logged into the run.
        preference: From 0 (fewest examples) to 1 (fewest steps).
        asked: Everything else that was asked, by the API's words.
    """

    run: Run
    advice: Recommendation
    series: NoiseScaleSeries
    streams: tuple[Stream, ...]
    preference: float
    asked: Mapping[str, Any]


async def read(
    api: ApiClient, visitor: Mapping[str, str], run_id: str, *, preference: float, asked: Mapping[str, Any]
) -> Reported:
    """All of a run's report; the parts are asked for at the same time.

    Raises:
        ApiProblem: Where the run does not exist, the question is refused, or the API does not answer.
    """
    run, advice, series, streams = await asyncio.gather(
        api.run(visitor, run_id),
        api.recommendation(visitor, run_id, preference, asked),
        api.noise_scale(visitor, run_id, {"points": FIGURE_POINTS}),
        api.streams(visitor, run_id),
    )
    return Reported(_brief(run), advice, series, streams, preference, asked)


def _brief(run: Run) -> Run:
    """The run with names that fit on a page."""
    return replace(
        run,
        name=cut(run.name, LONGEST_NAME),
        project=cut(run.project, LONGEST_NAME),
        task=cut(run.task, LONGEST_NAME),
        optimizer=cut(run.optimizer or "", LONGEST_WORD) or None,
        device=cut(run.device or "", LONGEST_WORD) or None,
        unit=cut(run.unit, LONGEST_WORD),
        example=cut(run.example, LONGEST_WORD),
    )
