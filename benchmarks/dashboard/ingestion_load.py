"""Jobs that go on sending while something else is measured: a hundred at ten steps a second, by eight senders."""

import argparse
import asyncio
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import httpx

sys.path.insert(0, str(Path(__file__).parents[1]))
from harness import AS_LOCAL_USER
from stored_data import JSON, Job, Steps, Stored, batch_of, seq_after

PERIOD_SECONDS, ROWS = 5.0, 50
NUM_SENDERS = 8


@dataclass(slots=True)
class Load:
    """What was sent, once it has ended.

    Attributes:
        rows: Accepted.
        seconds: Over which.
    """

    rows: int = 0
    seconds: float = 0.0

    @property
    def rows_per_second(self) -> float:
        """The rate that the server took."""
        return self.rows / self.seconds if self.seconds else 0.0


@contextmanager
def sending(url: str, stored: Stored, started_at: dict[str, int]) -> Iterator[Load]:
    """Jobs send from a process of their own until the block ends.

    Args:
        url: Of the server.
        stored: The jobs and the long run, which sends too.
        started_at: By run id the step at which it goes on; moved on by what is sent here.
    """
    load = Load()
    jobs = [(job, stored.steps_of_each + 2, stored.steps_of_each) for job in stored.jobs]
    jobs.append((stored.long_run, seq_after(stored.steps), stored.steps))
    plan = [
        [str(job.run_id), str(job.stream_id), seq, started_at.get(str(job.run_id), step), step]
        for job, seq, step in jobs
    ]
    command = [sys.executable, __file__, url]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps({"plan": plan, "headers": AS_LOCAL_USER | JSON}) + "\n")
    process.stdin.flush()
    try:
        yield load
    finally:
        said, _ = process.communicate("stop\n", timeout=60)
        found = json.loads(said)
        load.rows, load.seconds = found["rows"], found["seconds"]
        started_at |= found["steps"]


async def send_all(url: str, plan: list[list[str | int]], headers: dict[str, str]) -> dict[str, object]:
    """Send in turn until standard input ends; rows accepted, seconds, and where each run stands."""
    steps = Steps(ROWS, noise_scale=500.0, batch=256.0, seed=1)
    places = {str(run_id): int(step) for run_id, _, _, step, _ in plan}
    turns = itertools.cycle(plan)
    begin, is_over, rows = time.perf_counter(), asyncio.Event(), 0
    asyncio.get_running_loop().add_reader(sys.stdin, is_over.set)

    async def send(client: httpx.AsyncClient, number: int) -> None:
        nonlocal rows
        due = begin + number * PERIOD_SECONDS / len(plan)
        while not is_over.is_set():
            run_id, stream_id, seq, _, first = next(turns)
            job, step = Job(UUID(str(run_id)), UUID(str(stream_id))), places[str(run_id)]
            body = batch_of(job, steps, first_step=step, first_seq=int(seq) + step - int(first))
            answer = await client.post(f"/api/v1/streams/{stream_id}/batches", content=body, headers=headers)
            answer.raise_for_status()
            places[str(run_id)] = step + ROWS
            rows += ROWS
            due += PERIOD_SECONDS * NUM_SENDERS / len(plan)
            await asyncio.sleep(max(0.0, due - time.perf_counter()))

    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        await asyncio.gather(*(send(client, number) for number in range(NUM_SENDERS)))
    return {"rows": rows, "seconds": time.perf_counter() - begin, "steps": places}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    print(json.dumps(asyncio.run(send_all(parser.parse_args().url, **json.loads(sys.stdin.readline())))))
