"""Finished runs on a real server, of known noise scales, by a clock of their own: the same numbers every time."""

import math
import random
import time
from collections.abc import Sequence

import httpx

import noisescale

SECONDS_PER_STEP = 0.25
STARTED_AT = 1.79e9


def stored_run(url: str, headers: dict[str, str], name: str, **settings: object) -> noisescale.Run:
    """A run with all of its rows on the server.

    Args:
        url: Address of the server that the environment names, too.
        headers: To look whether it has arrived.
        name: Of the run.
        settings: `steps`, `noise_scale`, `batch`, `noise` and `seed` of its steps; the others are of `init()`.
    """
    steps = {key: settings.pop(key) for key in ("steps", "noise_scale", "batch", "noise", "seed") if key in settings}
    described = {"project": "vision", "task": "digits", "example": "image", "unit": "images", **settings}
    run = noisescale.init(name=name, **described)
    log_steps(run, **steps)
    run.finish()
    wait_until_stored(url, headers, run.id)
    return run


def log_steps(
    run: noisescale.Run,
    *,
    steps: int = 400,
    noise_scale: float = 900.0,
    batch: int = 64,
    noise: float = 0.2,
    seed: int = 7,
) -> None:
    """Steps whose noise scale is known, and whose loss falls."""
    generator, now = random.Random(seed), STARTED_AT
    run._main.now = run._main._log._now = lambda: now
    for step in range(steps):
        now += SECONDS_PER_STEP
        trace, signal = noise_scale * generator.gauss(1, 0.05), generator.gauss(1, noise)
        run.log_norms(
            small_batch_size=8,
            big_batch_size=batch,
            small_sq_norm=signal + trace / 8,
            big_sq_norm=signal + trace / batch,
            lr=0.1,
            loss=0.3 + 2.0 * math.exp(-step / 100),
        )


def wait_until_stored(url: str, headers: dict[str, str], run_id: str) -> None:
    """What was sent travels on a thread of its own."""
    with httpx.Client(base_url=url, headers=headers) as http:
        for _ in range(2_000):
            answer = http.get(f"/api/v1/runs/{run_id}")
            if answer.status_code == httpx.codes.OK and answer.json()["finished_at"]:
                return
    raise AssertionError(f"run {run_id} never arrived")


def wait_until_judged(url: str, headers: dict[str, str], run_ids: Sequence[str]) -> None:
    """A list shows the decision of the last look, and servers look at a few runs a second."""
    deadline = time.monotonic() + 30
    with httpx.Client(base_url=url, headers=headers) as http:
        while time.monotonic() < deadline:
            rows = http.get("/api/v1/runs", params={"ids": ",".join(run_ids)}).json()["runs"]
            if all(row["decision"]["decision"] != "insufficient_evidence" for row in rows):
                return
            time.sleep(0.05)
    raise AssertionError("no server has judged the runs")
