"""The only place where the server is wired together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from secrets import token_bytes
from uuid import UUID

from alembic.script import ScriptDirectory
from fastapi import Depends, FastAPI
from sqlalchemy.ext.asyncio import AsyncEngine

from noisescale_server.api import (
    baselines,
    calibration,
    comments,
    defaults,
    forecast,
    learning_rate,
    retention,
    series,
    tasks,
    views,
)
from noisescale_server.api.access import audit, keys, login, me, people, sharing
from noisescale_server.api.access.credentials import Credentials
from noisescale_server.api.access.gate import Api
from noisescale_server.api.access.login_provider import Provider
from noisescale_server.api.access.mode import AccessMode
from noisescale_server.api.access.rates import BatchRate, ReadRate, Turns
from noisescale_server.api.access.route import authorize
from noisescale_server.api.alerts import routes as alerts
from noisescale_server.api.calibration import Recalibrations
from noisescale_server.api.comparison import comparison, equal_loss, reference_values
from noisescale_server.api.cost import cost
from noisescale_server.api.ingest import streams
from noisescale_server.api.planner import tradeoff
from noisescale_server.api.platform import docs, health
from noisescale_server.api.platform.deps import PROBLEM_RESPONSES
from noisescale_server.api.platform.docs import serve_documentation
from noisescale_server.api.platform.errors import register_error_handlers, register_unknown_api_paths
from noisescale_server.api.platform.health import Readiness
from noisescale_server.api.platform.transactions import BatchTurns
from noisescale_server.api.recommendation import recommendation
from noisescale_server.api.reproductions import reproductions
from noisescale_server.api.runs import runs
from noisescale_server.api.sweeps import critical_batch, learning_rates, sweeps
from noisescale_server.api.sweeps import published as published_sweeps
from noisescale_server.api.telemetry import routes as telemetry
from noisescale_server.api.telemetry.reporting import reported
from noisescale_server.api.telemetry.routes import on_loopback
from noisescale_server.process.alerting import alerted
from noisescale_server.process.compression import Compression
from noisescale_server.process.house_keeping import house_kept
from noisescale_server.process.migrating import migrations_folder
from noisescale_server.process.own_metrics import ProcessMetrics
from noisescale_server.process.refreshing import kept_fresh
from noisescale_server.process.settings import Settings
from noisescale_server.process.warming import kept_warm
from noisescale_server.services.access.entering import Belonging
from noisescale_server.services.alerts.delivering import Post, sender
from noisescale_server.services.comparison import reference_values as reference_value_service
from noisescale_server.services.comparison.comparison import Comparisons
from noisescale_server.services.comparison.equal_loss import KnownWindows
from noisescale_server.services.ingest.window_turns import WindowTurns
from noisescale_server.services.platform import health as health_service
from noisescale_server.services.platform.health import Migrations
from noisescale_server.services.series.whole_run import WholeRuns
from noisescale_server.storage.access.visibility import session_factory
from noisescale_server.storage.platform.engine import create_engine, look_at_every_connection

ROUTERS = (
    # first, as routes are tried in this order: of a thousand jobs two hundred batches a second come here
    streams.router,
    # before runs: its path looks like a run's
    series.sparklines_router,
    recommendation.router,
    calibration.router,
    calibration.hindsight_router,
    runs.router,
    series.router,
    series.metrics_router,
    reference_values.router,
    runs.projects_router,
    sharing.links,
    sharing.projects,
    defaults.router,
    retention.router,
    alerts.router,
    views.router,
    baselines.router,
    comments.router,
    critical_batch.router,
    sweeps.router,
    sweeps.plan_router,
    sweeps.quality_router,
    published_sweeps.router,
    reproductions.router,
    comparison.router,
    tradeoff.router,
    equal_loss.router,
    cost.router,
    forecast.router,
    learning_rate.router,
    learning_rates.router,
    tasks.router,
    health.server_router,
    me.router,
    keys.router,
    people.router,
    audit.router,
)

GZIP_FROM_BYTES = 1_000
GZIP_LEVEL = 1
"""Level 9, the default, takes ten times the time for 5 % less."""


def create_app(settings: Settings) -> FastAPI:
    """The API without the dashboard, which `main` mounts behind it.

    Raises:
        ValueError: Without a database address.
    """
    if settings.database_url is None:
        raise ValueError("database_url is missing: set NOISESCALE_DATABASE_URL, or start with `noisescale up`")
    app = Api(
        title="noisescale",
        description="Gradient noise scales of training runs, and the batch sizes they advise.",
        version="1",
        lifespan=connected,
        # FastAPI's own routes encode the description for every request
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    app.state.settings = settings
    app.state.migrations = shipped_migrations()
    app.state.readiness = Readiness(partial(look_at_database, app))
    app.state.read_rate, app.state.turns = ReadRate(settings.reads_per_minute), Turns()
    app.state.batch_rate = BatchRate(settings.batches_per_minute)
    app.state.process_metrics = ProcessMetrics()
    app.state.whole_runs = WholeRuns()
    app.state.comparisons = Comparisons()
    app.state.known_windows = KnownWindows()
    app.state.window_turns = WindowTurns()
    app.state.batch_turns = BatchTurns(settings.pool_size, settings.pool_wait_seconds)
    app.state.recalibrations = Recalibrations(gathers=settings.gather_sweeps)
    app.state.reference_values = reference_value_service.load()
    set_up_access(app, settings)
    app.add_middleware(
        Compression,
        minimum_size=GZIP_FROM_BYTES,
        compresslevel=GZIP_LEVEL,
        is_on_one_machine=settings.auth == "local",
    )
    register_error_handlers(app)
    include_routes(app)
    return app


def set_up_access(app: FastAPI, settings: Settings) -> None:
    """Give the gate what it asks for."""
    secret = settings.secret_key
    # without a secret of its own no key outlives this process: better than one that everybody knows
    app.state.pepper = secret.get_secret_value().encode() if secret else token_bytes(32)
    app.state.access_mode = AccessMode.of(settings)
    app.state.credentials = Credentials(
        app.state.access_mode,
        app.state.pepper,
        lambda: app.state.sessions,
        opens_projects=settings.public_projects and settings.auth == "required",
    )
    app.state.belonging = Belonging()
    app.state.login_provider = login_provider(settings)
    app.state.post = Post(sender(settings.alert_hosts), app.state.pepper, app.state.access_mode.public_origin)


def login_provider(settings: Settings) -> Provider | None:
    """The organisation's login; None where none is set up."""
    if settings.oidc_issuer is None or settings.oidc_client_id is None or settings.oidc_client_secret is None:
        return None
    return Provider(
        issuer=settings.oidc_issuer,
        client_id=settings.oidc_client_id,
        client_secret=settings.oidc_client_secret.get_secret_value(),
        return_address=f"{settings.public_url or ''}".rstrip("/") + "/login/back",
    )


def include_routes(app: FastAPI) -> None:
    """Every route of the API, the answer to unknown paths last."""
    for router in ROUTERS:
        # not by way of a router of them all: FastAPI looks for the route again at every level, each time through all
        app.include_router(router, prefix="/api/v1", responses=PROBLEM_RESPONSES, dependencies=[Depends(authorize)])
    app.include_router(health.router)
    app.include_router(telemetry.router)
    app.include_router(login.router)
    app.include_router(sharing.way_in)
    app.include_router(docs.router)
    serve_documentation(app)
    register_unknown_api_paths(app)


def shipped_migrations() -> Migrations:
    """The migrations that belong to this release.

    Raises:
        FileNotFoundError: When the installation has none.
        alembic.script.revision.MultipleHeads: When they do not form one line.
    """
    scripts = ScriptDirectory(str(migrations_folder()))
    newest = scripts.get_current_head()
    assert newest is not None, "the first migration ships with the first release"
    return Migrations(frozenset(script.revision for script in scripts.walk_revisions()), newest)


@asynccontextmanager
async def connected(app: FastAPI) -> AsyncIterator[None]:
    """Engines and session factories while the app runs; connections that batches use open right after the start."""
    settings: Settings = app.state.settings
    assert settings.database_url is not None, "create_app refuses settings without it"
    engine = read_engine = engine_for(settings.database_url, settings)
    if not settings.allow_unsafe_database:
        look_at_every_connection(engine, health_service.refuse_unsafe)
    if settings.database_read_url is not None:
        read_engine = engine_for(settings.database_read_url, settings)
    for one in {engine, read_engine}:
        app.state.process_metrics.watch_connections(one)
    app.state.sessions = session_factory(engine)
    app.state.read_sessions = session_factory(read_engine)
    app.state.plain_read_sessions = session_factory(read_engine.execution_options(isolation_level="AUTOCOMMIT"))
    async with (
        kept_fresh(app.state.sessions, app.state.whole_runs),
        alerted(app.state.sessions, app.state.post, events_kept=timedelta(days=settings.alert_events_days)),
        house_kept(app.state.sessions, app.state.process_metrics),
        reported(app, settings),
        on_loopback(app, settings.metrics_port),
        kept_warm(engine, app.state.batch_turns.at_once),
    ):
        with app.state.process_metrics.watching_the_log():
            yield
    await engine.dispose()
    await read_engine.dispose()


async def look_at_database(app: FastAPI) -> UUID:
    """Which database this is, once it says that requests can be answered from it.

    Raises:
        DatabaseNotDurable: When it may forget what it has committed, and no setting allows that.
        SchemaOutdated: When a migration of this release has not run.
    """
    async with app.state.sessions() as session:
        if not app.state.settings.allow_unsafe_database:
            await health_service.check_durable(session)
        return await health_service.check_ready(session, app.state.migrations)


def engine_for(url: str, settings: Settings) -> AsyncEngine:
    """An engine on this database with the limits of the settings."""
    return create_engine(
        url,
        pool_size=settings.pool_size,
        max_overflow=settings.pool_max_overflow,
        pool_wait_seconds=settings.pool_wait_seconds,
        statement_timeout_seconds=settings.statement_timeout_seconds,
    )
