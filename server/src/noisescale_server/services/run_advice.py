"""The recommendation for a stored run: its row, its noise scale, and what it has spent so far."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.advice import Preference, Recommendation, RunSoFar
from noisescale_server.services.errors import RunNotFound
from noisescale_server.services.recommendation import recommend
from noisescale_server.services.runs import run_so_far
from noisescale_server.storage import runs
from noisescale_server.storage.tables import Run

SECONDS_PER_HOUR = 3_600


@dataclass(frozen=True, slots=True)
class RunAdvice:
    """A recommendation with what it was made from.

    Attributes:
        run: The run as stored.
        step: The step it stands at.
        so_far: What the recommendation was made from.
        recommendation: The advice.
    """

    run: Run
    step: int | None
    so_far: RunSoFar
    recommendation: Recommendation


async def advise(session: AsyncSession, run_id: UUID, wish: Preference, *, to_step: int | None) -> RunAdvice:
    """The advice for a run, now or as if it stood at `to_step`.

    Raises:
        RunNotFound: When no run has this id.
    """
    run = await runs.get(session, run_id)
    if run is None:
        raise RunNotFound(run_id)
    so_far = run_so_far(run)
    return RunAdvice(run, run.latest_step, so_far, recommend(so_far, wish))
