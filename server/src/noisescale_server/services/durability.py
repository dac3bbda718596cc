"""Nothing is acknowledged on a database that may forget it."""

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.errors import DatabaseNotDurable
from noisescale_server.storage import durability


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
