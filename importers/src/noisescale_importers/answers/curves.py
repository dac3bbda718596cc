"""Curves that a sweep can cross: smoothed training losses, and targets that every batch size reached."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from noisescale_importers.answers.summary import Curve, Summary

HALF_WIDTH = 0.05
"""Half of the window of a training loss, as a share of its step, to either side."""

EARLIER = (1.0, 0.75, 0.5)
"""Targets: what the batch size that got least far had at its end, and at these shares of its steps."""

OF_REPEATS = (0.9, 0.7, 0.5)
"""The same where a setting was repeated: the mean over repeats gets where each of them got, and a little later."""

MIN_BUDGETS = 2


def smoothed(curve: Curve) -> Curve:
    """The mean over steps within 5 % to either side, at their mean step: a single step's loss crosses early by luck."""
    steps, values = curve.steps, curve.values
    found = Curve()
    first = last = 0
    for step in steps:
        while steps[first] + 1 < (step + 1) * (1 - HALF_WIDTH):
            first += 1
        while last < len(steps) and steps[last] + 1 <= (step + 1) * (1 + HALF_WIDTH):
            last += 1
        window = range(first, last)
        at = round(fmean(steps[k] for k in window))
        if found.steps and at <= found.steps[-1]:
            continue
        found.steps.append(at)
        found.values.append(fmean(values[k] for k in window))
    return found


def proposed_targets(settings: Mapping[tuple[float, float | None], Sequence[Curve]], *, goal: str) -> list[float]:
    """The hardest target that all batch sizes reached, and easier ones on the way of the one that got least far.

    Args:
        settings: By batch size and learning rate, the curves of its repeats, all of which have to reach a target.
        goal: "min" where the metric falls, else "max".
    """
    sign = 1.0 if goal == "max" else -1.0
    furthest: dict[float, tuple[float, Curve]] = {}
    for (batch, _), curves in settings.items():
        best = [(max(sign * value for value in curve.values), curve) for curve in curves if curve.values]
        if best:
            worst = min(best, key=lambda one: one[0])
            furthest[batch] = max(worst, furthest.get(batch, worst), key=lambda one: one[0])
    if not furthest:
        return []
    hardest, slowest = min(furthest.values(), key=lambda one: one[0])
    at = next(k for k, value in enumerate(slowest.values) if sign * value >= hardest)
    targets: list[float] = []
    for share in OF_REPEATS if any(len(curves) > 1 for curves in settings.values()) else EARLIER:
        place = max(k for k in range(at + 1) if slowest.steps[k] <= share * slowest.steps[at] or k == 0)
        value = max(sign * one for one in slowest.values[: place + 1])
        target = _easier(sign * value, goal)
        if target not in targets:
            targets.append(target)
    return targets


def _easier(target: float, goal: str) -> float:
    """The target with four significant digits, rounded to where it is reached all the same."""
    if target == 0:
        return target
    unit: float = 10.0 ** (math.floor(math.log10(abs(target))) - 3)
    whole = math.floor(target / unit) if goal == "max" else math.ceil(target / unit)
    return float(f"{whole * unit:.4g}")


# Tables in which a row is a run that trained for a budget: the loss at each batch size over budgets, best rate each.
#
# Source of the idea: Li et al. 2025, arXiv:2503.04715, whose table is of this kind; steps to an equal loss are
# interpolated over the budgets.


def budget_curves(rows: Sequence[tuple[Summary, float]]) -> Iterator[tuple[str, float, float | None, Curve]]:
    """For each batch size with two budgets at least: an id, the batch, the rate of the largest budget, and the curve.

    The rate is the best one of each budget. A larger budget that ends at a higher loss than a smaller one says that
    its rates were not tuned: it is left out.
    """
    of_batch: dict[float, dict[int, Summary]] = defaultdict(dict)
    for one, batch in rows:
        step, loss = one.loss.steps[-1], one.loss.values[-1]
        best = of_batch[batch].get(step)
        if best is None or loss < best.loss.values[-1]:
            of_batch[batch][step] = one
    for batch, budgets in sorted(of_batch.items()):
        curve, last = Curve(), None
        for step, one in sorted(budgets.items()):
            if not curve.values or one.loss.values[-1] < curve.values[-1]:
                curve.add(step, one.loss.values[-1])
                last = one
        if last is not None and len(curve.steps) >= MIN_BUDGETS:
            yield last.run_id, batch, last.lr, curve
