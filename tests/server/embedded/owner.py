"""Owns an embedded Postgres, writes rows and says each one's number once it is committed; runs until it is killed."""

import asyncio
import json
import os
import sys
from pathlib import Path

import asyncpg

from noisescale_server.embedded import EmbeddedPostgres


async def write_rows(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("CREATE TABLE IF NOT EXISTS written (number bigint PRIMARY KEY)")
    number = await connection.fetchval("SELECT coalesce(max(number), 0) FROM written")
    while True:
        number += 1
        await connection.execute("INSERT INTO written VALUES ($1)", number)
        print(number, flush=True)


def main() -> None:
    with EmbeddedPostgres(Path(sys.argv[1])) as postgres:
        url = postgres.url(driver="postgresql")
        print(json.dumps({"postmaster": postgres.pid, "url": url, "uid": os.geteuid()}), flush=True)
        asyncio.run(write_rows(url))


if __name__ == "__main__":
    main()
