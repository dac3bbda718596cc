"""The role that a server works as: it reads and writes rows, and can neither change tables nor run programs.

Migrations run as the owner of the tables. On the embedded Postgres that is its superuser; elsewhere
NOISESCALE_MIGRATION_DATABASE_URL names it.
"""

import asyncio
from typing import Final

from sqlalchemy import URL, make_url, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from noisescale_server.storage.platform.driver import sqlstate_of
from noisescale_server.storage.platform.engine import create_engine
from noisescale_server.storage.platform.placement import HAS_CITUS, ONE_CONNECTION_A_NODE

EMBEDDED_ROLE: Final = "noisescale_app"
INSUFFICIENT_PRIVILEGE: Final = "42501"

_IS_THERE: Final = text("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = :role)")
# utility statements take no parameters: Postgres quotes them
_CREATE: Final = text("SELECT format('CREATE ROLE %I LOGIN PASSWORD %L', CAST(:role AS text), CAST(:password AS text))")
# a role that was made in a database without Citus is at one node alone; a worker would tell the others of its own
_CREATE_WHERE_MISSING: Final = text(
    "SELECT format('DO %L', format('BEGIN PERFORM set_config(''citus.enable_ddl_propagation'', ''off'', true);"
    " IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = %L) THEN %s; END IF; END',"
    " CAST(:role AS text), CAST(:statement AS text)))"
)
_AT_EVERY_WORKER: Final = text(
    "SELECT nodename, result FROM run_command_on_workers(CAST(:statement AS text)) WHERE NOT success"
)
_RIGHTS: Final = (
    "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
    "GRANT USAGE ON SCHEMA public TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}",
    "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {role}",
    "REVOKE INSERT, UPDATE, DELETE ON alembic_version FROM {role}",
)


class NoRoleError(RuntimeError):
    """The role that the server is to work as cannot be made."""

    def __init__(self, owner: URL, role: str, *, at: str = "the database", why: str = "") -> None:
        super().__init__(
            f"{at} has no role {role!r}, and {owner.username!r} of NOISESCALE_MIGRATION_DATABASE_URL may not "
            f"create it{f' ({why})' if why else ''}: let its admin run CREATE ROLE {role} LOGIN PASSWORD '…' there, "
            "and migrate again"
        )


def address(database_url: str, role: str = EMBEDDED_ROLE) -> str:
    """The same database as another role."""
    return make_url(database_url).set(username=role).render_as_string(hide_password=False)


def admit(owner_url: str, app_url: str) -> None:
    """Let the role of the second address work on the tables; it is made if it is missing. An owner is left alone.

    Raises:
        NoRoleError: When it is missing, and the owner may make no roles.
    """
    owner, app = make_url(owner_url), make_url(app_url)
    if app.username is not None and app.username != owner.username:
        asyncio.run(_admit(owner, app.username, str(app.password or "")))


async def _admit(owner: URL, role: str, password: str) -> None:
    engine = create_engine(owner.render_as_string(hide_password=False), pool_size=1)
    try:
        async with engine.begin() as connection:
            if not await connection.scalar(_IS_THERE, {"role": role}):
                await _create(connection, owner, role, password)
            elif await connection.scalar(HAS_CITUS):
                await _create_at_workers(connection, owner, role, password)
            await connection.execute(ONE_CONNECTION_A_NODE)
            quoted = connection.dialect.identifier_preparer.quote_identifier(role)
            for statement in _RIGHTS:
                await connection.execute(text(statement.format(role=quoted)))
    finally:
        await engine.dispose()


async def _create_at_workers(connection: AsyncConnection, owner: URL, role: str, password: str) -> None:
    create = await connection.scalar(_CREATE, {"role": role, "password": password})
    statement = await connection.scalar(_CREATE_WHERE_MISSING, {"role": role, "statement": create})
    refused = (await connection.execute(_AT_EVERY_WORKER, {"statement": statement})).first()
    if refused is not None:
        raise NoRoleError(owner, role, at=f"node {refused[0]} of the database", why=str(refused[1]))


async def _create(connection: AsyncConnection, owner: URL, role: str, password: str) -> None:
    statement = await connection.scalar(_CREATE, {"role": role, "password": password})
    try:
        await connection.exec_driver_sql(str(statement))
    except DBAPIError as error:
        if sqlstate_of(error) == INSUFFICIENT_PRIVILEGE:
            raise NoRoleError(owner, role) from error
        raise
