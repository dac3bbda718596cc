"""What `noisescale.follow` is worth by its settings, and what it costs a training loop.

Regret as in `docs/policies.md`: the same held-out tasks, starts and seeds, constant and decaying rates, with the looks
and noise scales of that replay, and `noisescale_lab.follow.look` deciding. The wait for a fresh window is left to the
replay's own windows.
"""

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.extend(map(str, (Path(__file__).parents[1] / "tests").glob("**/support")))
from benchmarks.results_file import Figure, write
from benchmarks.smoke import IS_SMOKE, size
from noisescale.window.recent_updates import NoiseScale
from noisescale_core.theory.prices import worth_examples
from noisescale_lab.follow.books import Books
from noisescale_lab.follow.look import Plan, Sight, look
from noisescale_lab.follow.policy import Memory, RunState, Settings, Train
from noisescale_lab.follow.possible_batches import PossibleBatches
from noisescale_lab.reproduce.advice.ours import OURS
from noisescale_lab.reproduce.advice.references import complete
from noisescale_lab.reproduce.advice.replay import replay
from noisescale_lab.reproduce.advice.replays import all_starts
from noisescale_lab.reproduce.advice.scores import Results, score
from noisescale_lab.reproduce.advice.simple_policies import SIMPLE
from noisescale_lab.reproduce.registry import ADVICE_TARGETS, ALL, HELD_OUT
from scripted_run import Loop

REFERENCES = Path(__file__).parent / "policies" / "references.csv"
SEEDS = (400, 401)
SETTINGS = Settings(may_restart=False, may_branch=False)
FRESH = 1 << 30
"""Updates since a change: as if every window were fresh."""


@dataclass
class Follow:
    """A follower in the replay."""

    early: bool = False
    may_shrink: bool = False
    books: Books | None = None

    def decide(self, view: RunState) -> Train:
        """What the follower would set."""
        possible = PossibleBatches(1, (), self.may_shrink, SETTINGS.hysteresis)
        price = worth_examples(view.exchange_rate)
        plan = Plan(
            view.optimizer, view.batch, price, None, SETTINGS, possible, is_dry_run=False, acts_early=self.early
        )
        if self.books is None:
            memory = Memory.at_start(batch=view.batch, learning_rate=view.learning_rate, settings=SETTINGS)
            self.books = Books(
                steps=0, next_look=0, examples=0.0, batch=view.batch, rate_factor=view.learning_rate,
                memory=memory, examples_per_step=view.exchange_rate, highest_rate=1.0, last_rate=1.0,
            )  # fmt: skip
        noise_scale = NoiseScale(view.noise_scale, view.noise_scale.num_updates)
        sight = Sight(view.steps, view.batch, view.decay, noise_scale, updates_since_change=FRESH)
        self.books, decision = look(self.books, sight, plan)
        if decision is None:
            return Train(view.batch, view.learning_rate)
        return Train(decision.to_batch, decision.to_rate_factor)


POLICIES: dict[str, Callable[[], Any]] = {
    "keep": SIMPLE["keep"],
    "follow, as it comes": Follow,
    "follow, may_shrink": lambda: Follow(may_shrink=True),
    "follow, early": lambda: Follow(early=True),
    "follow, early and may_shrink": lambda: Follow(early=True, may_shrink=True),
    "the policy without branches": OURS["ours without branches"],
}


def regrets(*, decays: bool) -> list[Figure]:
    """Cost relative to keeping and median regret of every setting, over all starts."""
    starts = all_starts(SEEDS, decays=decays)
    names = [name for name in HELD_OUT if name in ADVICE_TARGETS]
    found: Results = {name: replay(ALL[name](), complete(REFERENCES, [name])[name], starts, POLICIES) for name in names}
    schedule = "decaying rate" if decays else "constant rate"
    figures = []
    for policy in POLICIES:
        everything, right = score(found, policy, "all"), score(found, policy, "right")
        about = f"held-out tasks, {schedule}: {policy}"
        figures += [
            Figure(f"{about}: cost relative to keeping", everything.relative, "1"),
            Figure(f"{about}: low", everything.low, "1"),
            Figure(f"{about}: high", everything.high, "1"),
            Figure(f"{about}: median regret", everything.median, "%"),
            Figure(f"{about}: p90 regret", everything.p90, "%"),
            Figure(f"{about}: median regret added to a run that started right", right.added, "%"),
            Figure(f"{about}: missed", 100 * everything.missed, "%"),
        ]
    return figures


NUM_MEASURED = 400
"""Steps that fill the window of the noise scale."""


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


def main() -> None:
    """Measure, print and write."""
    torch.set_num_threads(1)
    figures = [*costs(), *(() if IS_SMOKE else (*regrets(decays=False), *regrets(decays=True)))]
    assert all(math.isfinite(figure.value) for figure in figures)
    write("following", figures)


if __name__ == "__main__":
    main()
