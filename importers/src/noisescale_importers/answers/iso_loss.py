"""Tables in which a row is a run that trained for a budget: the loss at each batch size over budgets, best rate each.

Source of the idea: Li et al. 2025, arXiv:2503.04715, whose table is of this kind; steps to an equal loss are
interpolated over the budgets.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from noisescale_importers.answers.summary import Curve, Summary

MIN_BUDGETS = 2


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
