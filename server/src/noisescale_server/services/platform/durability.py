"""Refuses a database that may forget what it has acknowledged."""

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.platform.errors import DatabaseNotDurable
from noisescale_server.storage.platform import durability


def refuse_unsafe(switched_off: list[str]) -> None:
    """Raise where a setting that durability needs is off.

    Raises:
        DatabaseNotDurable: Names those that are.
    """
    if switched_off:
        raise DatabaseNotDurable(switched_off)


async def check(session: AsyncSession) -> None:
    """Raise unless this database keeps what it has committed.

    Raises:
        DatabaseNotDurable: When a setting that durability needs is off.
    """
    refuse_unsafe(await durability.switched_off(session))
