"""A run whose noise scale is written by the test, and a loop that follows it."""

import math
import random
from dataclasses import dataclass, field, fields

import torch

import noisescale
from client_runs import KeptRecords, make_kept_run
from noisescale.run.run import Run
from noisescale_lab.follow.follower import Follower

SMALL, BIG = 8.0, 64.0
FIELDS = [one.name for one in fields(noisescale.Batches)]


def make_optimizer(kind=torch.optim.SGD, lr=0.1, num_groups=1, **settings):
    groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": lr / 10**place} for place in range(num_groups)]
    return kind(groups, **settings)


@dataclass
class Loop:
    """Steps of a job whose small batches show a noise scale that the test sets.

    Attributes:
        optimizer: Whose rates are scaled.
        scheduler: Stepped before the follower.
        batches: What `set_batch_size` was told.
        said: What the follower said.
        spread: Of each step's |G|², as a share of it.
    """

    optimizer: torch.optim.Optimizer = field(default_factory=make_optimizer)
    scheduler: object | None = None
    batches: list[int] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    spread: float = 0.05
    run: Run = None
    kept: KeptRecords = None
    follower: Follower = None

    def follow(self, **arguments):
        """Start to follow, with arguments of `follow` or fields of `Batches`; strict: our own errors fail the test."""
        self.run, self.kept = make_kept_run(strict=arguments.pop("strict", True))
        batches = {"now": 64, "micro_batch": 8, "devices": 1, "largest": 1 << 20, "set": self.batches.append}
        given = {name: arguments.pop(name) for name in FIELDS if name in arguments}
        defaults = {
            "batches": noisescale.Batches(**(batches | given)),
            "price": 64.0,
            "dry_run": False,
            "scheduler": self.scheduler,
            "progress": self.said.append,
        }
        self.follower = noisescale.follow(self.run, self.optimizer, **(defaults | arguments))
        return self

    def steps(self, num_steps, phi=64.0, loss=None):
        """Train; phi may be a function of the follower's step. Without a loss no raise is put on probation."""
        for _ in range(num_steps):
            number = self.follower._steps
            log_step(self.run, phi(number) if callable(phi) else phi, number, self.spread, loss)
            self.optimizer.step()
            if self.scheduler is not None:
                self.scheduler.step()
            self.follower.step()
        return self

    @property
    def rate(self):
        return self.optimizer.param_groups[0]["lr"]


def log_step(run, phi, number, spread, loss=None):
    """One step of a job with |G|² = 1 and tr Σ = φ, each with some noise of its own."""
    noise = random.Random(number)
    square, trace = 1 + spread * noise.gauss(0, 1), phi * (1 + 0.05 * noise.gauss(0, 1))
    run.log_norms(
        small_batch_size=SMALL,
        big_batch_size=BIG,
        small_sq_norm=square + trace / SMALL,
        big_sq_norm=square + trace / BIG,
        loss=loss,
    )


def best(price, phi):
    return math.sqrt(price * phi)
