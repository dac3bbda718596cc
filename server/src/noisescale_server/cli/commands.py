"""The server's subcommands of `noisescale`: up, serve, migrate."""

import argparse
import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import SecretStr, ValidationError
from pydantic_core import ErrorDetails
from sqlalchemy.exc import DBAPIError

from noisescale_server.cli.backups import BackupError
from noisescale_server.embedded import EmbeddedPostgres, EmbeddedPostgresError, kept_running
from noisescale_server.process import app_role, discovery, local_access, migrating, serving, start_policy
from noisescale_server.process.settings import Settings
from noisescale_server.services.platform import health
from noisescale_server.services.platform.errors import DatabaseNotDurable
from noisescale_server.storage.access.visibility import session_factory
from noisescale_server.storage.platform.driver import DATABASE_ERRORS, sqlstate_of
from noisescale_server.storage.platform.engine import create_engine

Subparsers = argparse._SubParsersAction  # argparse has no public name for what add_subparsers() returns


class NoDatabaseError(RuntimeError):
    """`serve` brings no database."""

    def __init__(self) -> None:
        super().__init__(
            "serve needs a database: set NOISESCALE_DATABASE_URL=postgresql://user@host/database, "
            "or run `noisescale up`, which brings its own"
        )


class DatabaseNotReadyError(RuntimeError):
    """A command cannot work on the database as it is."""


OTHER_SERVER = (
    "jobs of this user go on to find {other}, which runs too; for this one set NOISESCALE_URL={url} and "
    "NOISESCALE_API_KEY to the token of its link"
)

REFUSALS = (
    EmbeddedPostgresError,
    NoDatabaseError,
    DatabaseNotReadyError,
    app_role.NoRoleError,
    DatabaseNotDurable,
    BackupError,
    serving.AddressError,
    start_policy.StartRefused,
)
"""What a command says in one sentence, without a traceback."""


def register_up(subparsers: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add `up`: everything on this machine."""
    parser = subparsers.add_parser(
        "up", help="start database (unless NOISESCALE_DATABASE_URL is set), API and dashboard"
    )
    _add_address(parser)
    add_data_dir(parser)
    parser.set_defaults(run=reporting(_up))


def register_serve(subparsers: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add `serve`: API and dashboard on a database that is there and migrated."""
    parser = subparsers.add_parser("serve", help="serve API and dashboard from the database in NOISESCALE_DATABASE_URL")
    _add_address(parser)
    parser.set_defaults(run=reporting(_serve))


def register_migrate(subparsers: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add `migrate`: bring the database to the newest schema."""
    parser = subparsers.add_parser("migrate", help="bring the database to the newest schema")
    add_data_dir(parser)
    parser.set_defaults(run=reporting(_migrate))


def _add_address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", help="address to listen on (NOISESCALE_HOST, default 127.0.0.1)")
    parser.add_argument("--port", type=int, help="port, 0 for any free one (NOISESCALE_PORT, default 8321)")
    parser.add_argument("--workers", type=int, help="processes that answer requests (NOISESCALE_WORKERS, default 1)")
    parser.add_argument(
        "--behind-tls-proxy",
        action="store_true",
        default=None,
        help="a proxy in front of a team's server ends TLS (NOISESCALE_BEHIND_TLS_PROXY)",
    )


def add_data_dir(parser: argparse.ArgumentParser) -> None:
    """Let the command take `--data-dir`."""
    parser.add_argument("--data-dir", type=Path, help="folder of the embedded database (NOISESCALE_DATA_DIR)")


def _settings(arguments: argparse.Namespace) -> Settings:
    """The environment's settings, and over them what was typed."""
    typed = {
        name: getattr(arguments, name, None) for name in ("host", "port", "workers", "data_dir", "behind_tls_proxy")
    }
    return Settings(**{name: value for name, value in typed.items() if value is not None})


def reporting(command: Callable[[Settings], int]) -> Callable[[argparse.Namespace], int]:
    """The command with its refusals as one sentence on stderr, exit code 1; Ctrl-C and SIGTERM are a normal end."""

    def run(arguments: argparse.Namespace) -> int:
        try:
            with serving.termination_as_interrupt():
                return command(_settings(arguments))
        except KeyboardInterrupt:
            return 0
        except ValidationError as error:
            print("noisescale: " + "; ".join(_wrong_setting(detail) for detail in error.errors()), file=sys.stderr)
        except REFUSALS as error:
            print(f"noisescale: {error}", file=sys.stderr)
        return 1

    return run


def _wrong_setting(detail: ErrorDetails) -> str:
    name = ".".join(str(part) for part in detail["loc"])
    field = Settings.model_fields.get(name)
    # what is said lands in logs
    is_secret = field is not None and field.annotation == SecretStr | None
    value = "not acceptable" if is_secret else repr(detail["input"])
    return f"setting {name} (NOISESCALE_{name.upper()}) is {value}: {detail['msg']}"


@contextlib.contextmanager
def database(settings: Settings) -> Iterator[str]:
    """The URL of the configured database, or of the embedded one, which runs while the block does."""
    if settings.database_url is not None:
        yield settings.database_url
        return
    with EmbeddedPostgres(settings.data_dir / "postgres") as postgres, kept_running(postgres):
        yield postgres.url()


def bring_up_to_date(settings: Settings, database_url: str) -> str:
    """The address under which servers work on the database, once it has been migrated as the owner of its tables.

    Raises:
        DatabaseNotReadyError: When it needs a migration and the role may not change tables.
        NoRoleError: When the role of servers is missing and cannot be made.
    """
    owner_url = settings.migration_database_url or database_url
    try:
        migrating.migrate(owner_url)
    except DBAPIError as error:
        if sqlstate_of(error) != app_role.INSUFFICIENT_PRIVILEGE:
            raise
        raise DatabaseNotReadyError(
            "this role may not change the database's tables: name their owner in NOISESCALE_MIGRATION_DATABASE_URL"
        ) from error
    app_url = app_role.address(database_url) if settings.database_url is None else database_url
    app_role.admit(owner_url, app_url)
    return app_url


def _up(given: Settings) -> int:
    start_policy.check(given)
    settings = local_access.complete(given, os.environ)
    # the port first: to be refused costs nothing then
    with serving.listen(settings) as listener, database(settings) as database_url:
        asyncio.run(_refuse_unsafe(database_url, settings))
        return _serve_on(settings, listener, bring_up_to_date(settings, database_url))


def _serve(given: Settings) -> int:
    if given.database_url is None:
        raise NoDatabaseError
    start_policy.check(given)
    settings = local_access.complete(given, os.environ)
    with serving.listen(settings) as listener:
        asyncio.run(_refuse_unsafe(given.database_url, settings))
        return _serve_on(settings, listener, given.database_url)


def _serve_on(settings: Settings, listener: socket.socket, database_url: str) -> int:
    """The exit code of a server that answers on the listener; the same user's jobs find a local one."""
    asyncio.run(_refuse_without_admin(database_url, settings))
    # whoever serves has no use for the owner of the tables
    os.environ.pop("NOISESCALE_MIGRATION_DATABASE_URL", None)
    prepared = serving.prepare(settings, listener, database_url=database_url)
    if settings.local_token is None:
        print(f"noisescale is at {settings.public_url} (Ctrl-C stops it)", flush=True)
        return serving.serve(prepared, listener)
    url, token = serving.url_of(listener), settings.local_token.get_secret_value()
    with discovery.announced(url, token, discovery.server_file(os.environ)) as other:
        print(f"noisescale is at {url} (Ctrl-C stops it)\nopen {url}/login?token={token}", flush=True)
        if other is not None:
            print(OTHER_SERVER.format(other=other, url=url), file=sys.stderr, flush=True)
        return serving.serve(prepared, listener)


async def _refuse_unsafe(database_url: str, settings: Settings) -> None:
    """Raise where the database may lose what it commits; one that does not answer yet is looked at by each connection.

    Raises:
        DatabaseNotDurable: When it may lose committed rows and no setting allows that.
    """
    if settings.allow_unsafe_database:
        return
    engine = create_engine(database_url, pool_size=1)
    try:
        with contextlib.suppress(*DATABASE_ERRORS):
            async with session_factory(engine)() as session:
                await health.check_durable(session)
    finally:
        await engine.dispose()


async def _refuse_without_admin(database_url: str, settings: Settings) -> None:
    """Raise unless a team's server has somebody who can let others in.

    Raises:
        StartRefused: Without an admin, and where nobody can tell since the database does not answer.
    """
    if settings.auth == "local":
        return
    engine = create_engine(database_url, pool_size=1)
    try:
        async with session_factory(engine)() as session:
            await start_policy.check_admin(session, settings)
    except DATABASE_ERRORS as error:
        raise start_policy.StartRefused(
            f"who the admin is cannot be read from the database ({type(error).__name__}): "
            "see that it runs, and bring its schema up to date with `noisescale migrate`"
        ) from error
    finally:
        await engine.dispose()


def _migrate(settings: Settings) -> int:
    with database(settings) as database_url:
        bring_up_to_date(settings, database_url)
    print("the database has the newest schema")
    return 0
