"""`noisescale.learning_rate_range` on three real tasks, and everything put back bit for bit."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_digits
from torch import Tensor, nn
from torch.nn import functional

import noisescale
from noisescale import ConfigError

STEPS, SEED = 100, 3


@dataclass(frozen=True)
class Task:
    """Examples, a model, a loss and an optimizer."""

    x: Tensor
    y: Tensor
    model: Callable[[], nn.Module]
    loss: Callable[[Tensor, Tensor], Tensor]
    optimizer: Callable[[Any, float], torch.optim.Optimizer]

    def batch(self, number: int, size: int = 32) -> tuple[Tensor, Tensor]:
        places = torch.randint(len(self.x), (size,), generator=torch.Generator().manual_seed(number))
        return self.x[places], self.y[places]


def digits(optimizer: Callable[[Any, float], torch.optim.Optimizer]) -> Task:
    found = load_digits()
    x, y = torch.tensor(found.data / 16, dtype=torch.float32), torch.tensor(found.target)
    return Task(x, y, lambda: nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)),
                functional.cross_entropy, optimizer)  # fmt: skip


def cancer() -> Task:
    found = load_breast_cancer()
    x, y = torch.tensor(found.data, dtype=torch.float32), torch.tensor(found.target, dtype=torch.float32)[:, None]
    return Task((x - x.mean(0)) / x.std(0), y, lambda: nn.Linear(30, 1),
                functional.binary_cross_entropy_with_logits, lambda p, lr: torch.optim.Adam(p, lr=lr))  # fmt: skip


TASKS = {
    "digits, SGD": lambda: digits(lambda p, lr: torch.optim.SGD(p, lr=lr)),
    "digits, Adam": lambda: digits(lambda p, lr: torch.optim.Adam(p, lr=lr)),
    "breast cancer, Adam": cancer,
}


def step_of(task: Task, model: nn.Module, optimizer: torch.optim.Optimizer) -> Callable[[int], Tensor]:
    def train_step(number: int) -> Tensor:
        x, y = task.batch(number)
        optimizer.zero_grad()
        loss = task.loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return train_step


def best_of_a_sweep(task: Task) -> float:
    """The rate, among powers of two, with the least loss on all examples after 100 steps."""

    def final(rate: float) -> float:
        torch.manual_seed(SEED)
        model = task.model()
        optimizer = task.optimizer(model.parameters(), rate)
        train_step = step_of(task, model, optimizer)
        for number in range(STEPS):
            train_step(10_000 + number)
        with torch.no_grad():
            loss = task.loss(model(task.x), task.y).item()
        return loss if math.isfinite(loss) else math.inf

    return min((2.0**power for power in range(-9, 3)), key=final)


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_the_range_holds_the_best_rate_of_a_sweep(name: str) -> None:
    task = TASKS[name]()
    torch.manual_seed(SEED)
    model = task.model()
    optimizer = task.optimizer(model.parameters(), 0.01)

    found = noisescale.learning_rate_range(
        step_of(task, model, optimizer), model=model, optimizer=optimizer, progress=lambda _: None
    )

    assert found.low is not None
    assert found.high is not None
    assert found.low <= best_of_a_sweep(task) <= found.high
    assert found.low <= found.steepest <= found.high
    # a range of everything would hold it, too
    assert found.high / found.low < 1e4


class Trained:
    """A model half-way, with all that a helper could forget: buffers, gradients, moments, modes, a schedule."""

    def __init__(self) -> None:
        torch.manual_seed(SEED)
        self.model = nn.Sequential(nn.Linear(64, 16), nn.BatchNorm1d(16), nn.Dropout(0.2), nn.Linear(16, 10))
        groups = [{"params": self.model[0].parameters(), "lr": 0.02}, {"params": self.model[3].parameters()}]
        self.optimizer = torch.optim.AdamW(groups, lr=0.01, weight_decay=0.1)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 1000)
        self.task = digits(lambda p, lr: torch.optim.AdamW(p, lr=lr))
        for number in range(5):
            self.step(number)

    def step(self, number: int) -> float:
        random.random()
        np.random.rand()
        x, y = self.task.batch(number)
        self.optimizer.zero_grad()
        loss = self.task.loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def everything(self) -> list[Any]:
        """All of the state as bytes and numbers."""
        tensors = [*self.model.parameters(), *self.model.buffers(), *(p.grad for p in self.model.parameters())]
        moments = [value for state in self.optimizer.state.values() for value in state.values()]
        groups = [{k: v for k, v in group.items() if k != "params"} for group in self.optimizer.param_groups]
        return [
            [tensor.detach().numpy().tobytes() for tensor in (*tensors, *moments)], groups,
            self.schedule.state_dict(), random.getstate(), np.random.get_state()[1].tolist(),
            torch.get_rng_state().tolist(), [module.training for module in self.model.modules()],
        ]  # fmt: skip


def test_everything_is_put_back_bit_for_bit_and_training_goes_on_as_if_nothing_had_been(tmp_path) -> None:
    asked, alone = Trained(), Trained()
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    before = asked.everything()

    for keep_in in (None, tmp_path / "start"):
        noisescale.learning_rate_range(
            asked.step, model=asked.model, optimizer=asked.optimizer, others=[asked.schedule], num_steps=40,
            keep_in=keep_in, progress=lambda _: None,
        )  # fmt: skip
        assert asked.everything() == before

    assert not (tmp_path / "start").exists()
    went_on = [asked.step(number) for number in range(5, 10)]
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    assert went_on == [alone.step(number) for number in range(5, 10)]
    assert asked.everything() == alone.everything()


def test_what_goes_wrong_in_a_step_passes_through_after_everything_was_put_back() -> None:
    trained = Trained()
    before = trained.everything()

    def failing(number: int) -> float:
        if number == 15:
            raise MemoryError("no room")
        return trained.step(number)

    with pytest.raises(MemoryError, match="no room"):
        noisescale.learning_rate_range(failing, model=trained.model, optimizer=trained.optimizer)
    assert trained.everything() == before


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"lowest": 0.0}, "lowest must be positive"),
        ({"lowest": 1.0, "highest": 0.1}, "below highest"),
        ({"num_steps": 5}, "num_steps must be at least 20, got 5"),
    ],
)
def test_wrong_arguments_are_refused_by_name_and_value(wrong: dict[str, Any], words: str) -> None:
    trained = Trained()

    with pytest.raises(ConfigError, match=words):
        noisescale.learning_rate_range(trained.step, model=trained.model, optimizer=trained.optimizer, **wrong)


def test_a_schedule_inside_the_step_is_refused_as_it_would_undo_the_ramp() -> None:
    trained = Trained()
    schedule = torch.optim.lr_scheduler.ExponentialLR(trained.optimizer, 0.9)

    def stepping(number: int) -> float:
        trained.optimizer.param_groups[0]["lr"] = 0.5
        schedule.step()
        return trained.step(number)

    with pytest.raises(ConfigError, match="leave the schedule out"):
        noisescale.learning_rate_range(stepping, model=trained.model, optimizer=trained.optimizer)


def test_a_loss_that_no_rate_lowers_has_no_range_and_the_sentence_says_what_to_do() -> None:
    trained = Trained()

    found = noisescale.learning_rate_range(
        lambda number: 1.0, model=trained.model, optimizer=trained.optimizer, num_steps=20, progress=lambda _: None
    )

    assert (found.low, found.high, found.steepest) == (None, None, None)
    assert "more steps or a larger batch" in str(found)
