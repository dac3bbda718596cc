"""Statements as Postgres takes them, past SQLAlchemy's compiler: it costs more than the small ones take to run."""

from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession


async def fetch(session: AsyncSession, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """The rows of a statement with parameters $1, $2, …; prepared once a connection, in the session's transaction."""
    found = await (await session.connection()).exec_driver_sql(statement, parameters)
    return [tuple(row) for row in found] if found.returns_rows else []
