"""The published comparison, computed by the same code as one's own."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from noisescale_server.analysis.comparison.comparison import Statistics, statistics
from noisescale_server.analysis.comparison.task_order import Rung, TaskOrder, task_order
from noisescale_server.services.comparison.published_tasks import (
    Form,
    PublishedNumber,
    PublishedTask,
    pairs,
    published_tasks,
)
from noisescale_server.services.comparison.reference_values import ReferenceValue

CHAINS = {
    "image classification": ("MNIST", "SVHN", "ImageNet (ResNet-50)"),
    "reinforcement learning": ("Atari (7 games, A2C)", "Dota 1v1 (PPO)", "Dota 5v5 (PPO)"),
}
"""From easy to hard; single games of Atari are published as a range alone."""

SELECTIONS: tuple[tuple[str, tuple[Form, ...]], ...] = (
    ("point tasks", ("point",)),
    ("point tasks and the middle of Atari", ("point", "range")),
    ("point tasks, the middle of Atari, and Dota 5v5 at its lower bound", ("point", "range", "lower_bound")),
)


@dataclass(frozen=True, slots=True)
class PublishedStatistics:
    """The statistics of some of the published tasks."""

    tasks: str
    statistics: Statistics


@dataclass(frozen=True, slots=True)
class PublishedComparison:
    """Published tasks with their statistics and order.

    Attributes:
        tasks: Table 1.
        statistics: For the point tasks, and with ranges and bounds at one value.
        orders: Chains from easy to hard.
        article_r_squared: What the authors' article gives, with single Atari games.
    """

    tasks: tuple[PublishedTask, ...]
    statistics: tuple[PublishedStatistics, ...]
    orders: tuple[TaskOrder, ...]
    article_r_squared: float


@lru_cache(maxsize=1)
def _computed(tasks: tuple[PublishedTask, ...], article: float) -> PublishedComparison:
    found = []
    for name, forms in SELECTIONS:
        one = statistics(pairs(tasks, *forms))
        assert one is not None, "Table 1 has eight point tasks"
        found.append(PublishedStatistics(name, one))
    return PublishedComparison(tasks, tuple(found), _orders(tasks), article)


def published(values: Sequence[ReferenceValue]) -> PublishedComparison:
    """The published comparison; computed once a process."""
    article = next(float(item.value) for item in values if item.quantity == "r2_noise_scale_vs_critical_batch")
    return _computed(published_tasks(values), article)


def _orders(tasks: Sequence[PublishedTask]) -> tuple[TaskOrder, ...]:
    by_name = {one.task: one for one in tasks}
    found = []
    for chain, names in CHAINS.items():
        members = [by_name[name] for name in names]
        found.append(task_order(chain, "noise_scale", [_rung(one.task, one.noise_scale) for one in members]))
        found.append(task_order(chain, "critical_batch", [_rung(one.task, one.critical_batch) for one in members]))
    return tuple(found)


def _rung(task: str, number: PublishedNumber) -> Rung:
    if number.value is not None:
        return Rung(task, number.value, number.value)
    assert number.low is not None, "a range and a bound have one"
    return Rung(task, number.low, number.high)
