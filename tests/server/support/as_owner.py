"""What only the owner of the tables may do, which no server is."""

from sqlalchemy import text

from noisescale_server.storage.platform.engine import create_engine


async def execute(url: str, statement: str) -> None:
    """Run one statement and commit it."""
    engine = create_engine(url, pool_size=1)
    async with engine.begin() as connection:
        await connection.execute(text(statement))
    await engine.dispose()
