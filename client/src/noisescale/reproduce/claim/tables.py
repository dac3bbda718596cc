"""The results as tables of a terminal."""

from collections.abc import Sequence

from noisescale.reproduce.claim.hooks_check import hooks_check
from noisescale.reproduce.claim.other_claims import growth, rate_growth
from noisescale.reproduce.claim.retrospect import Series, exclusions
from noisescale.reproduce.claim.task_result import TaskResult

ENOUGH_BOUNDED, ENOUGH_HOLDING = 0.8, 0.9


def tables(results: Sequence[TaskResult], found: Sequence[Series]) -> str:
    """All tables, with a caption each that says what they do not show."""
    parts = (
        _points(results),
        _agreement(found),
        _exclusions(results),
        _hooks(results),
        _growth(results),
        _rates(results),
    )
    return "\n\n".join("\n".join(part) for part in parts)


def _points(results: Sequence[TaskResult]) -> list[str]:
    rows = [
        "Noise scale and critical batch of tuned runs, in each task's unit; B_crit with its 95 % interval.",
        f"{'task':<20} {'target':>7} {'S_min':>8} {'B_crit':>8} {'interval':>19} {'noise scale':>12} "
        f"{'all batches':>12} {'κ':>6}",
    ]
    for result in results:
        for target in result.targets:
            if target.fit is None:
                continue
            low, high = ("open" if end is None else f"{end:,.0f}" for end in (target.fit.low, target.fit.high))
            near = target.near_critical
            kappa = "-" if near is None else f"{target.fit.critical_batch / near:.2f}"
            mark = "" if target.exclusion is None else "  does not count"
            rows.append(
                f"{result.task:<20} {target.target:>7g} {target.fit.min_steps:>8.1f} "
                f"{target.fit.critical_batch:>8,.0f} {f'{low} to {high}':>19} {_number(near):>12} "
                f"{_number(target.all_batches):>12} {kappa:>6}{mark}"
            )
    return rows


def _agreement(found: Sequence[Series]) -> list[str]:
    rows = [
        "Noise scale against B_crit over tasks. r² is governed by the span: read it with the rms factor.",
        "95 % intervals: tasks are drawn again. κ = B_crit / noise scale.",
        f"{'average':<14} {'targets':<8} {'tasks':<20} {'n':>3} {'r² fit':>19} {'r² y = x':>20} {'rms factor':>19} "
        f"{'within × 2':>19} {'within × 3':>19} {'slope':>19} {'decades':>8}",
    ]
    for one in found:
        head = f"{one.average:<14} {one.targets:<8} {one.tasks:<20} {len(one.points):>3}"
        if one.agreement is None:
            rows.append(f"{head} fewer than five tasks: no figures")
            continue
        a = one.agreement
        rows.append(
            f"{head} {a.r_squared_of_fit!s:>19} {a.r_squared_of_identity!s:>20} {a.rms_factor!s:>19} "
            f"{a.within_factor_2!s:>19} {a.within_factor_3!s:>19} {a.slope!s:>19} {a.decades:>8.2f}"
        )
    return rows


def _exclusions(results: Sequence[TaskResult]) -> list[str]:
    return ["Left out of the figures:", *(f"  {line}" for line in exclusions(results))]


def _hooks(results: Sequence[TaskResult]) -> list[str]:
    rows = [
        "The hooks against every single example's gradient, on the same trajectories.",
        "Windows whose interval is open are not compared.",
        f"{'task':<20} {'windows':>8} {'bounded':>8} {'holding':>8} {'median ratio':>13}",
    ]
    for one in hooks_check(results):
        bounded = one.num_bounded / one.num_windows if one.num_windows else 0.0
        holding = "-" if not one.num_compared else f"{one.num_holding / one.num_compared:.0%}"
        ratio = "-" if one.median_ratio is None else f"{one.median_ratio:.3f}"
        rows.append(f"{one.task:<20} {one.num_windows:>8} {bounded:>8.0%} {holding:>8} {ratio:>13}")
    return rows


def _growth(results: Sequence[TaskResult]) -> list[str]:
    rows = [
        "The noise scale grows during training: last against first quarter of the tuned run nearest B_crit.",
        "Not from the first step on: some tasks dip first. Windows without a value are left out.",
        f"{'task':<20} {'first quarter':>14} {'last quarter':>14} {'ratio':>7} {'lowest at':>10}",
    ]
    for one in growth(results):
        ratio = one.late / one.early
        rows.append(f"{one.task:<20} {one.early:>14,.1f} {one.late:>14,.1f} {ratio:>7.2f} {one.lowest_at:>10.0%}")
    return rows


def _rates(results: Sequence[TaskResult]) -> list[str]:
    rows = [
        "Best learning rate ∝ B to a power; the theory for SGD: 1 far below B_crit, 0 far above it.",
        "Few batch sizes each, so there are no intervals: a picture, no measurement.",
        f"{'task':<20} {'optimizer':<10} {'below B_crit':>13} {'above B_crit':>13} {'all':>6}",
    ]
    for one in rate_growth(results):
        shown = ["-" if value is None else f"{value:.2f}" for value in (one.below, one.above, one.over_all)]
        rows.append(f"{one.task:<20} {one.optimizer:<10} {shown[0]:>13} {shown[1]:>13} {shown[2]:>6}")
    return rows


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"
