"""Real jobs, one process each, behind a real proxy that misbehaves, and a real server on a throw-away Postgres."""

import asyncio
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import asyncpg

from noisescale.outbox import SPOOL
from noisescale.transport.upload.left_behind import written_down
from noisescale_server.embedded import EmbeddedPostgres
from noisescale_server.process.migrating import migrate
from real_proxy import proxied
from served_app import TOKEN, served_app
from simulated_jobs import Story, stories, windows_of
from simulated_proxy import Proxy, Window

AT_ONCE = 6
LONGEST_SECONDS = 20.0
SYNC_SECONDS = 25.0

JOB = """
import os, random, sys, time
import noisescale
first, number, pause, is_killed = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4] == "1"
num_others = int(sys.argv[5])
run = noisescale.init(project="proxied", task="proxied")
for at in range(first, first + number):
    run.log_metrics(at, number=float(at), **{f"x{other}": random.random() for other in range(num_others)})
    time.sleep(pause)
if is_killed:
    os.kill(os.getpid(), 9)
run.finish(timeout_seconds=3)
"""


@dataclass
class RealOutcome:
    """What became of the records of a job, its successor and a sync.

    Attributes:
        num_logged: Calls that returned.
        num_stored: Numbers in the database, each counted once.
        num_doubled: Numbers that are there more than once.
        num_declared: Declared lost: in the database, or in the book of the state folder.
        answered: Status and kind of body of the proxy's answers.
        said: What the processes printed.
    """

    num_logged: int
    num_stored: int
    num_doubled: int
    num_declared: int
    answered: Counter[tuple[int, str]] = field(default_factory=Counter)
    said: str = ""

    @property
    def num_answers(self) -> int:
        """Of the proxy."""
        return self.answered.total()

    @property
    def num_unsaid(self) -> int:
        """Neither stored nor declared."""
        return max(0, self.num_logged - self.num_stored - self.num_declared)

    @property
    def is_good(self) -> bool:
        """Every record is stored once or declared."""
        return not self.num_doubled and not self.num_unsaid


def real_jobs(number: int, folder: Path, seed: int = 3) -> list[RealOutcome]:
    """What becomes of so many jobs, a few at a time.

    Args:
        number: How many.
        folder: For their state folders.
        seed: Of what the proxy says.
    """
    with EmbeddedPostgres.throw_away() as postgres:
        postgres.create_database("proxied")
        database_url = postgres.url("proxied")
        migrate(database_url)
        with served_app(database_url) as server_url, ThreadPoolExecutor(AT_ONCE) as pool:
            chosen = stories(number, seed)
            return list(pool.map(lambda story: _told(story, server_url, database_url, folder), chosen))


def _told(story: Story, server_url: str, database_url: str, folder: Path) -> RealOutcome:
    dice = random.Random(story.seed)
    state = folder / f"real-{story.seed}"
    run_ids = [str(uuid4()), str(uuid4())]
    proxy = Proxy(time.monotonic, body_limit=story.body_limit)
    answered, said, num_logged = Counter[tuple[int, str]](), "", 0
    with proxied(proxy, lambda: server_url) as url:
        environment = os.environ | {"NOISESCALE_URL": url, "NOISESCALE_API_KEY": TOKEN, "NOISESCALE_DIR": str(state)}
        environment["XDG_STATE_HOME"] = str(state / "home")
        for phase in range(3):
            windows = _short(windows_of(dice, story.answers[2 * phase : 2 * phase + 2]))
            proxy.begin(windows)
            if phase < 2:
                amount, pause = dice.randint(30, 120), dice.choice((0.002, 0.05))
                is_killed = story.is_killed and phase == 0
                others = 0 if story.body_limit is None else 200
                arguments = ["-c", JOB, *map(str, (num_logged, amount, pause, int(is_killed), others))]
                said += _run(arguments, environment | {"NOISESCALE_RUN_ID": run_ids[phase]})
                num_logged += amount
            else:
                said += _run(["sync", str(state), "--timeout", str(SYNC_SECONDS)], environment)
            for window in windows:
                answered[window.answer.status, window.answer.kind] += window.num_answers
        proxy.begin()
        proxy.body_limit = None
        said += _run(["sync", str(state), "--timeout", "60"], environment)
    counts, num_lost = asyncio.run(_stored(database_url, run_ids))
    in_book = sum(one.num_records for one in written_down(state / SPOOL))
    doubled = sum(count > 1 for count in counts.values())
    return RealOutcome(num_logged, len(counts), doubled, num_lost + in_book, +answered, said)


def _short(windows: Sequence[Window]) -> list[Window]:
    for window in windows:
        window.seconds = 1.0 + (LONGEST_SECONDS - 1.0) * window.seconds / 300.0
    return list(windows)


def _run(arguments: Sequence[str], environment: dict[str, str]) -> str:
    program = sys.executable if arguments[0] == "-c" else str(Path(sys.executable).with_name("noisescale"))
    finished = subprocess.run(
        [program, *arguments], env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    return finished.stdout + finished.stderr


async def _stored(database_url: str, run_ids: Sequence[str]) -> tuple[Counter[int], int]:
    """How often each number is stored, and how many records are declared lost."""
    connection = await asyncpg.connect(database_url.replace("postgresql+asyncpg", "postgresql"))
    try:
        rows = await connection.fetch(
            "SELECT value FROM metric WHERE name = 'number' AND run_id = ANY($1::uuid[])", run_ids
        )
        lost = await connection.fetchval(
            "SELECT coalesce(sum(to_seq - from_seq + 1), 0) FROM stream_loss WHERE run_id = ANY($1::uuid[])", run_ids
        )
    finally:
        await connection.close()
    return Counter(int(row["value"]) for row in rows), int(lost)
