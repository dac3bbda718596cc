"""A real training of a small classifier whose learning rate is followed, in one process or as one of several ranks."""

import torch
from torch import nn

import noisescale
from client_runs import make_kept_run

NUM_STEPS, BATCH = 300, 32


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(20, 30), nn.BatchNorm1d(30), nn.ReLU(), nn.Linear(30, 5))


class Training:
    """A small classifier on a task of its own; a rank of several has data of its own and one micro-batch a step."""

    def __init__(
        self,
        rate=0.01,
        kind=torch.optim.SGD,
        warm_up=0,
        *,
        rank=None,
        strict=True,
        wrap=lambda model: model,
        **arguments,
    ):
        self.run, self.kept = make_kept_run(strict=strict)
        self.model = wrap(make_model())
        self.optimizer = kind(self.model.parameters(), lr=rate)
        self.run.watch(self.model, self.optimizer)
        self.said = []
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: min(1.0, (step + 1) / max(1, warm_up))
        )
        defaults = {
            "scheduler": self.schedule,
            "planned_steps": NUM_STEPS,
            "dry_run": False,
            "progress": self.said.append,
        }
        self.follower = noisescale.follow(self.run, self.optimizer, **(defaults | arguments))
        self.data = torch.Generator().manual_seed(1 if rank is None else 10 + rank)
        self.teacher = torch.randn(20, 5, generator=torch.Generator().manual_seed(2))
        self.num_micro_batches = 2 if rank is None else 1
        self.losses = []

    def steps(self, count, *, is_logged=True, factor=1.0):
        num = self.num_micro_batches
        for _ in range(count):
            losses = []
            for _ in range(num):
                inputs = torch.randn(BATCH // 2, 20, generator=self.data)
                losses.append(nn.functional.cross_entropy(self.model(inputs), (inputs @ self.teacher).argmax(1)))
                (losses[-1] * factor / num).backward()
            self.losses.append(float(sum(losses).detach()) / num)
            self.run.log_gradients(loss=self.losses[-1] * factor if is_logged else None)
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.schedule.step()
            self.follower.step()
        return self

    def to_raise_on_probation(self):
        """Train until just after a raise that is on probation."""
        while not (self.follower.decisions and self.follower.decisions[-1].is_on_probation):
            self.steps(1)
        return self

    @property
    def rate(self):
        return self.optimizer.param_groups[0]["lr"]
