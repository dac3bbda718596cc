"""The epoch of the data: another one says that a backup has taken the place of what was acknowledged."""

from uuid import UUID, uuid4

from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage.platform.tables import Epoch


async def current(session: AsyncSession) -> UUID:
    """The epoch that every answer to a job carries."""
    return (await session.execute(select(Epoch.id))).scalar_one()


async def database_id(session: AsyncSession) -> UUID:
    """Which database this is: a random id that backups keep, so that what was meant for another one is told apart."""
    return (await session.execute(select(Epoch.database_id))).scalar_one()


async def rotate(session: AsyncSession) -> UUID:
    """The new epoch, which is another one than any before."""
    began = update(Epoch).values(id=uuid4(), began_at=func.now()).returning(Epoch.id)
    return (await session.execute(began)).scalar_one()
