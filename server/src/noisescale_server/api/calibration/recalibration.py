"""After a run has finished: what its sweeps say of κ is measured anew, behind the answer to the job."""

import asyncio
import logging
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

from noisescale_server.api.platform.transactions import commit_with_retry
from noisescale_server.services.calibration import calibration, followed
from noisescale_server.services.sweeps import gathered as gathered_sweeps

_logger = logging.getLogger(__name__)


class Recalibrations:
    """Sweeps that wait to be measured, one at a time.

    A sweep's runs often finish together. Those that wait hold no connection, and a sweep that waits already is not
    measured twice.
    """

    def __init__(self, *, gathers: bool = True) -> None:
        self._gathers = gathers
        self._waiting: set[UUID] = set()
        self._turn = asyncio.Lock()

    async def after_finish(self, sessions: async_sessionmaker[AsyncSession], run_id: UUID) -> None:
        """Measure every sweep of the run; the log says which could not be."""
        try:
            async with sessions() as session:
                touched = await calibration.sweeps_with(session, run_id)
            if not touched and self._gathers:
                gathered = await commit_with_retry(sessions, lambda session: gathered_sweeps.gather(session, run_id))
                touched = [] if gathered is None else [gathered]
            if not touched:
                async with sessions() as session:
                    held_against = await followed.sweep_for(session, run_id)
                touched = [] if held_against is None else [held_against]
            for sweep_id in touched:
                await self._measure(sessions, sweep_id)
        except SQLAlchemyError:
            # the job has its answer already, so nobody else hears of it
            _logger.warning(
                "run %s has finished, but κ of its sweeps is as before: attach it again", run_id, exc_info=True
            )

    async def _measure(self, sessions: async_sessionmaker[AsyncSession], sweep_id: UUID) -> None:
        if sweep_id in self._waiting:
            return
        self._waiting.add(sweep_id)
        async with self._turn:
            # from here on its runs are read: one that finishes now has to ask again
            self._waiting.remove(sweep_id)
            await commit_with_retry(sessions, lambda session: calibration.after_finish(session, sweep_id))
