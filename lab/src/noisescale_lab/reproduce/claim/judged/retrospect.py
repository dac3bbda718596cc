"""The retrospective figures: which points count, in which series, and what each series says."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from noisescale_lab.reproduce.claim.effort import LEFT_OUT_OF_QUICK
from noisescale_lab.reproduce.claim.judged.agreement_over_tasks import Agreement, Point, agreement
from noisescale_lab.reproduce.claim.task_result import TargetResult, TaskResult

# The published noise scales and critical batches, as a second series beside one's own.
#
# Averages over training, where both numbers are single ones; a range over games and a lower bound are left out.
#
# Source: McCandlish et al. 2018, arXiv:1812.06162, Table 1.

PUBLISHED = (
    Point("MNIST", None, 900, 200),
    Point("SVHN", None, 4_000, 500),
    Point("CIFAR10", None, 2_000, 900),
    Point("ImageNet (ResNet-50)", None, 30_000, 15_000),
    Point("Autoencoder (SVHN)", None, 2, 40),
    Point("VAE (SVHN)", None, 10, 200),
    Point("Billion Word LM (LSTM)", None, 150_000, 100_000),
    Point("Dota 1v1 (PPO)", None, 300_000, 3_000_000),
)


AVERAGES: dict[str, Callable[[TargetResult], float | None]] = {
    "near_critical": lambda found: found.near_critical,
    "ideal_steps": lambda found: found.ideal_steps,
    "all_batches": lambda found: found.all_batches,
}
"""Along the tuned run nearest B_crit; the same in ideal steps; and over tuned runs at all batch sizes."""

TARGETS = ("all", "hardest")
GROUPS: dict[str, frozenset[str]] = {
    "all tasks": frozenset(),
    "without own": frozenset({"own"}),
    "without label noise": frozenset({"label_noise"}),
    "without both": frozenset({"own", "label_noise"}),
}
"""Groups of tasks that are left out."""


@dataclass(frozen=True, slots=True)
class Series:
    """One choice of points.

    Attributes:
        average: How the noise scale was averaged; "published" for the paper's own.
        targets: "all" or "hardest".
        tasks: Which tasks, in words.
        points: What counts.
        agreement: None with fewer than five tasks.
    """

    average: str
    targets: str
    tasks: str
    points: tuple[Point, ...]
    agreement: Agreement | None


def series(results: Sequence[TaskResult]) -> tuple[Series, ...]:
    """Every combination, the headline first, and the published table last."""
    found = []
    for targets, tasks, average in product(("hardest", "all"), GROUPS, AVERAGES):
        counted = [result for result in results if result.group not in GROUPS[tasks] | {"size"}]
        points = tuple(_points(counted, average, only_hardest=targets == "hardest"))
        found.append(Series(average, targets, tasks, points, agreement(points)))
    return (*found, Series("published", "all", "Table 1", PUBLISHED, agreement(PUBLISHED)))


def exclusions(results: Sequence[TaskResult]) -> tuple[str, ...]:
    """What is left out, and why, one line each."""
    left_out = [
        f"{result.task} at {found.target:g}: {found.exclusion}"
        for result in results
        for found in result.targets
        if found.exclusion is not None
    ]
    done = {result.task for result in results}
    is_quick = any(result.effort == "quick" for result in results)
    never_run = LEFT_OUT_OF_QUICK.items() if is_quick else ()
    return (*left_out, *(f"{task}: {reason}" for task, reason in never_run if task not in done))


def _points(results: Iterable[TaskResult], average: str, *, only_hardest: bool) -> Iterable[Point]:
    for result in results:
        counted = [found for found in result.targets if found.exclusion is None]
        for found in counted[-1:] if only_hardest else counted:
            value = AVERAGES[average](found)
            if value is not None and found.fit is not None:
                in_units = (result.in_units(number) for number in (value, found.fit.critical_batch))
                yield Point(result.task, found.target, *in_units)
