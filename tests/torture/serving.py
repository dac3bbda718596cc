"""A server process of the torture: the real application on a fixed port.

It counts what came again, and holds each answer back for a moment after COMMIT, so that many a fault falls in between.
"""

import argparse
import asyncio
import os
import random
from pathlib import Path
from typing import Any

import uvicorn

from noisescale_server.api.ingest import streams as routes
from noisescale_server.app import create_app
from noisescale_server.process.settings import Settings
from noisescale_server.services.ingest import ingestion
from noisescale_server.services.ingest.ingestion import Batch
from noisescale_server.storage.ingest.progress import Advance
from noisescale_server.storage.runs.streams import Cursor
from torture import mutants
from torture.nursery import serve_forks
from torture.oracle import APPENDING

LONGEST_HOLD_SECONDS = 0.2


def count_redelivered(folder: Path) -> None:
    """Write down how many records of each batch the server had already."""
    file = os.open(folder / "redelivered", APPENDING, 0o600)
    repeated, advance = ingestion._check_repeated, ingestion.advance_of

    def noted_repeated(batch: Batch, cursor: Cursor) -> None:
        os.write(file, b"%d\n" % (batch.last_seq - batch.first_seq + 1))
        repeated(batch, cursor)

    def noted_advance(new: Batch, cursor: Cursor) -> Advance:
        if cursor.next_seq > new.first_seq:
            os.write(file, b"%d\n" % (cursor.next_seq - new.first_seq))
        return advance(new, cursor)

    ingestion._check_repeated, ingestion.advance_of = noted_repeated, noted_advance


def hold_answers_back(seconds: float | None) -> None:
    """Wait between COMMIT and answer: so long, or a little."""
    commit = routes.commit_with_retry

    async def held(*arguments: Any, **named: Any) -> Any:
        result = await commit(*arguments, **named)
        await asyncio.sleep(random.uniform(0, LONGEST_HOLD_SECONDS) if seconds is None else seconds)
        return result

    routes.commit_with_retry = held


def num_redelivered(folder: Path) -> int:
    """Records that came again and were dropped."""
    path = folder / "redelivered"
    return sum(map(int, path.read_text().split())) if path.exists() else 0


def serve(words: list[str]) -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--oracle", type=Path, required=True)
    parser.add_argument("--mutant", default="")
    parser.add_argument("--hold-seconds", type=float)
    arguments = parser.parse_args(words)
    count_redelivered(arguments.oracle)
    hold_answers_back(arguments.hold_seconds)
    mutants.apply_to_server(arguments.mutant)
    uvicorn.run(create_app(Settings()), host="127.0.0.1", port=arguments.port, log_level="critical", loop="uvloop")


if __name__ == "__main__":
    serve_forks(serve)
