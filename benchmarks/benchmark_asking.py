"""What run.recommendation() costs a training: asked of a server, computed in the job, and the history kept for it."""

import random
import time
from collections.abc import Callable

from harness import LOCAL_TOKEN, free_port, percentile, server
from results_file import Figure, write
from smoke import size

import noisescale
from noisescale.rows.updates import LoggedStep, Update
from noisescale.run.run import Run
from noisescale.window.run_history import RunHistory
from noisescale_core.estimators.noise_scale import Terms

REPEATS = size(200, 3)
NUM_UPDATES = size(200_000, 2_000)


def train(url: str, num_steps: int) -> Run:
    """A run of so many steps, of which only norms were logged."""
    generator = random.Random(1)
    run = noisescale.init(
        project="asking", delivery=noisescale.Delivery(url=url, api_key=LOCAL_TOKEN), planned_steps=2 * num_steps
    )
    for _ in range(num_steps):
        x, y = 3000 * generator.gauss(1, 0.05), generator.gauss(1, 0.2)
        run.log_norms(small_batch_size=8, big_batch_size=64, small_sq_norm=y + x / 8, big_sq_norm=y + x / 64, lr=0.1)
    return run


def milliseconds(call: Callable[[], object], repeats: int = REPEATS) -> list[float]:
    """Of each call."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        found.append(1000 * (time.perf_counter() - start))
    return found


def p50_and_p99(name: str, found: list[float]) -> list[Figure]:
    """Both as figures."""
    return [Figure(f"{name}, {word}", percentile(found, share), "ms") for word, share in (("p50", 0.5), ("p99", 0.99))]


def of_server() -> list[Figure]:
    """Over loopback, while nothing else asks."""
    with server() as url:
        run = train(url, 2_000)
        run.finish()
        asked = milliseconds(run.recommendation)
        if run.recommendation().source != "server":
            raise RuntimeError(f"the server did not answer: {run.recommendation()}")
    return p50_and_p99("a server on this machine, 2,000 steps", asked)


def in_job() -> list[Figure]:
    """Nobody listens: the first question finds out, the others of the minute do not ask."""
    figures = []
    for num_steps in size((400, 20_000), (400,)):
        run = train(f"http://127.0.0.1:{free_port()}", num_steps)
        first = milliseconds(run.recommendation, 1)
        figures.append(Figure(f"in the job, {num_steps:,} steps, the first, which finds no server", first[0], "ms"))
        figures += p50_and_p99(f"in the job, {num_steps:,} steps", milliseconds(run.recommendation))
        run.finish(timeout_seconds=0)
    return figures


def history() -> Figure:
    """What each measured step pays."""
    kept, terms = RunHistory(), Terms(3000.0, 1.0)
    updates = [Update(LoggedStep(i, 1.0 * i, 0.1), 8, 8.0, 64.0, terms, None, 1.0, 0) for i in range(NUM_UPDATES)]
    start = time.perf_counter()
    for update in updates:
        kept.add(update)
    return Figure("history, each measured step", 1e6 * (time.perf_counter() - start) / NUM_UPDATES, "µs")


if __name__ == "__main__":
    write("asking", [history(), *in_job(), *of_server()])
