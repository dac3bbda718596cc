"""What `noisescale.follow` is worth by what it may do, and what it costs a training loop.

Regret as in `docs/policies.md`: the same held-out tasks and starts, constant and decaying rates, seeds of their own. A
follower has no restarts and extends no plan; what else it may do is taken away in turn. `--long` replays each long task
by itself in place of them, an hour or two on two cores, and writes results/following_long.csv.
"""

import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.extend(map(str, (Path(__file__).parents[1] / "tests").glob("**/support")))
from benchmarks.results_file import Figure, write
from benchmarks.smoke import IS_SMOKE, size
from noisescale_lab.follow.memory import Settings
from noisescale_lab.reproduce.advice.replay import replay
from noisescale_lab.reproduce.advice.replays import Ours, all_starts
from noisescale_lab.reproduce.advice.scores import Results, score
from noisescale_lab.reproduce.advice.simple_policies import SIMPLE
from noisescale_lab.reproduce.advice.sweep import complete
from noisescale_lab.reproduce.registry import ADVICE_TARGETS, EVERY, HELD_OUT, LONG, PRICES
from scripted_run import Loop

REFERENCES = Path(__file__).parent / "policies" / "references.csv"
SEEDS, SEEDS_OF_LONG = (570, 571, 572), (570,)
IN_A_JOB = Settings(may_restart=False)

POLICIES: dict[str, Callable[[], Any]] = {
    "keep": SIMPLE["keep"],
    "follow": lambda: Ours(IN_A_JOB),
    "follow, nothing can be undone": lambda: Ours(replace(IN_A_JOB, may_undo=False)),
    "follow, the rate alone": lambda: Ours(replace(IN_A_JOB, may_change_batch=False)),
    "follow, the batch alone": lambda: Ours(replace(IN_A_JOB, may_change_rate=False)),
}

ON_LONG_TASKS = ("keep", "follow", "follow, the rate alone", "follow, the batch alone")


def regrets(task: str | None, *, decays: bool) -> list[Figure]:
    """Cost relative to keeping and regret of every setting, over all starts.

    Args:
        task: A long one; None: all held-out ones.
        decays: The learning rate decays over the plan.
    """
    names = [name for name in HELD_OUT if name in ADVICE_TARGETS] if task is None else [task]
    starts = all_starts(SEEDS if task is None else SEEDS_OF_LONG, decays=decays)
    policies = {name: build for name, build in POLICIES.items() if task is None or name in ON_LONG_TASKS}
    found: Results = {}
    for name in names:
        reference = replace(complete(REFERENCES, [name])[name], price_factor=PRICES.get(name, 1.0))
        found[name] = replay(EVERY[name](), reference, starts, policies)
    schedule = "decaying rate" if decays else "constant rate"
    figures = []
    for policy in policies:
        everything, right = score(found, policy, "all"), score(found, policy, "right")
        about = f"{'held-out tasks' if task is None else f'long task {task}'}, {schedule}: {policy}"
        figures += [
            Figure(f"{about}: cost relative to keeping", everything.relative, "1"),
            # over tasks and seeds, of which a long task has one each
            *(
                Figure(f"{about}: {end}", value, "1")
                for end, value in (("low", everything.low), ("high", everything.high))
                if task is None
            ),
            Figure(f"{about}: median regret", everything.median, "%"),
            Figure(f"{about}: p90 regret", everything.p90, "%"),
            Figure(f"{about}: median regret added to a run that started right", right.added, "%"),
            Figure(f"{about}: missed", 100 * everything.missed, "%"),
        ]
    return figures


NUM_MEASURED = 400
"""Steps that the run has behind it when looks are timed."""


def costs(num_steps: int = size(200_000, 500), num_looks: int = size(300, 2)) -> list[Figure]:
    """Time of a step between looks, and of a look."""
    loop = Loop().follow().steps(NUM_MEASURED)
    follower = loop.follower
    looks: list[float] = []
    while len(looks) < num_looks:
        follower._steps = follower._due - 1
        start = time.perf_counter()
        follower.step()
        looks.append(time.perf_counter() - start)
    follower._due = sys.maxsize
    start = time.perf_counter()
    for _ in range(num_steps):
        follower.step()
    idle = (time.perf_counter() - start) / num_steps
    return [
        Figure("follower.step() between looks", 1e6 * idle, "µs"),
        Figure("follower.step() with a look, median", 1e6 * sorted(looks)[num_looks // 2], "µs"),
    ]


def all_regrets(tasks: Sequence[str | None]) -> list[Figure]:
    """Of these tasks at both rates, a process for each core; see `regrets`."""
    parts = [(task, decays) for task in tasks for decays in (False, True)]
    with get_context("spawn").Pool(os.cpu_count(), initializer=torch.set_num_threads, initargs=(1,)) as pool:
        waiting = [pool.apply_async(regrets, (task,), {"decays": decays}) for task, decays in parts]
        return [figure for one in waiting for figure in one.get()]


def main() -> None:
    """Measure, print and write."""
    torch.set_num_threads(1)
    if sys.argv[1:] == ["--long"]:
        write("following_long", all_regrets(tuple(LONG)), command="python benchmarks/benchmark_following.py --long")
        return
    figures = [*costs(), *(() if IS_SMOKE else all_regrets((None,)))]
    assert all(math.isfinite(figure.value) for figure in figures)
    write("following", figures)


if __name__ == "__main__":
    main()
