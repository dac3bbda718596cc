"""GET /metrics: the server's health and its live runs, for Prometheus and what reads the same text."""

import asyncio
import logging
from datetime import datetime, timedelta

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from prometheus_client.exposition import choose_encoder

from noisescale_server.api.access.route import authorize
from noisescale_server.api.platform.deps import Now, projects_of
from noisescale_server.api.telemetry.families import Scrape
from noisescale_server.process.settings import Settings
from noisescale_server.services import telemetry
from noisescale_server.services.access.access import Projects
from noisescale_server.services.telemetry import Snapshot
from noisescale_server.storage.access.visibility import KEY
from noisescale_server.storage.platform.driver import DATABASE_ERRORS

router = APIRouter(include_in_schema=False)
log = logging.getLogger(__name__)


@router.get("/metrics", dependencies=[Depends(authorize)])
async def get_metrics(request: Request, now: Now) -> Response:
    """The figures as text; in OpenMetrics where that is asked for."""
    scrape = await scraped(request.app, projects_of(request), now)
    encode, media_type = choose_encoder(request.headers.get("accept", ""))
    # milliseconds of arithmetic, for which no other request should wait
    text = await asyncio.to_thread(encode, scrape)
    return Response(text, headers={"Content-Type": media_type, "Cache-Control": "no-store"})


async def scraped(app: FastAPI, projects: Projects, now: datetime) -> Scrape:
    """What there is to say now; of the database that it is down, where it does not answer.

    Args:
        app: Of this process.
        projects: Whose runs are shown; None: all.
        now: The server's clock.
    """
    settings: Settings = app.state.settings
    seen: Snapshot | None = None
    try:
        async with app.state.read_sessions(info={KEY: projects}) as session, session.begin():
            seen = await telemetry.look(
                session,
                now=now,
                crashed_after=timedelta(seconds=settings.crashed_after_seconds),
                limit=settings.metrics_runs,
            )
    except DATABASE_ERRORS as error:
        log.debug("a scrape without the database: %s", error)
    return Scrape(app.state.process_metrics, seen)
