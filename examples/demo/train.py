"""The training loop of the demo: an ordinary loop with gradient accumulation, and four lines of noisescale."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

import noisescale
from demo.tasks import Task

MICRO_BATCHES = 8
EVALUATE_EVERY = 50


@dataclass(frozen=True, slots=True)
class Plan:
    """One run of the demo."""

    task: str
    batch_size: int
    learning_rate: float
    steps: int
    seed: int = 0

    @property
    def name(self) -> str:
        """The run's name in the dashboard."""
        return f"{self.task}-b{self.batch_size}"

    def scaled(self, factor: float) -> "Plan":
        """The same plan with its number of steps multiplied."""
        return replace(self, steps=max(1, round(self.steps * factor)))


PLANS = (
    Plan("digits", batch_size=256, learning_rate=0.05, steps=800),
    Plan("digits", batch_size=2048, learning_rate=0.05, steps=300),
    Plan("characters", batch_size=16, learning_rate=1e-3, steps=500),
    Plan("characters", batch_size=128, learning_rate=2e-3, steps=300),
)


def train(task: Task, plan: Plan, on_step: Callable[[int, float], None]) -> None:
    """Train as planned, log every step, and call `on_step(step, loss)`."""
    torch.manual_seed(plan.seed)
    generator = torch.Generator().manual_seed(plan.seed)
    model = task.make_model()
    optimizer = task.make_optimizer(model, plan.learning_rate)
    with noisescale.init(
        project="demo",
        task=task.name,
        name=plan.name,
        family=task.family,
        units=noisescale.Units(example=task.example, unit=task.unit, per_example=task.units_per_example),
        planned_steps=plan.steps,
        config={"batch_size": plan.batch_size, "lr": plan.learning_rate, "micro_batches": MICRO_BATCHES},
        tags=["demo"],
    ) as run:
        run.watch(model, optimizer)
        for step in range(plan.steps):
            inputs, targets = task.sample(plan.batch_size, generator)
            total = 0.0
            for micro_batch in zip(inputs.chunk(MICRO_BATCHES), targets.chunk(MICRO_BATCHES), strict=True):
                loss = task.loss(model, micro_batch) / MICRO_BATCHES
                loss.backward()
                total += loss.item()
            run.log_gradients(loss=total, batch_size=plan.batch_size)
            optimizer.step()
            optimizer.zero_grad()
            if step % EVALUATE_EVERY == 0:
                run.log_metrics(eval_loss=task.evaluate(model))
            on_step(step, total)
