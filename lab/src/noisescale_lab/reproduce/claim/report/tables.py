"""The results as tables of a terminal."""

from collections.abc import Sequence

from noisescale_lab.reproduce.claim.judged.findings import Findings
from noisescale_lab.reproduce.claim.judged.hooks_check import HooksCheck
from noisescale_lab.reproduce.claim.judged.retrospect import Series
from noisescale_lab.reproduce.claim.report.tables_of_claims import tables_of_claims
from noisescale_lab.reproduce.claim.task_result import TaskResult


def tables(found: Findings) -> str:
    """All tables, with a caption each that says what they do not show."""
    parts = (
        _points(found.results),
        _agreement(found.series),
        ["Left out of the figures:", *(f"  {line}" for line in found.exclusions)],
        _hooks(found.hooks),
        *tables_of_claims(found),
    )
    return "\n\n".join("\n".join(part) for part in parts)


def _points(results: Sequence[TaskResult]) -> list[str]:
    rows = [
        "Noise scale and critical batch of tuned runs, in each task's unit, with 95 % intervals;",
        "that of the noise scale holds the scatter of the measuring, not that of other seeds.",
        f"{'task':<20} {'target':>7} {'S_min':>8} {'B_crit':>8} {'interval':>19} {'noise scale':>12} {'interval':>19} "
        f"{'all batches':>12} {'κ':>6}",
    ]
    for result in results:
        for target in result.targets:
            if target.fit is None:
                continue
            factor = result.units_per_example
            low, high = (_end(end, factor) for end in (target.fit.low, target.fit.high))
            near = target.near_critical
            kappa = "-" if near is None else f"{target.fit.critical_batch / near:.2f}"
            mark = "" if target.exclusion is None else "  does not count"
            rows.append(
                f"{result.task:<20} {target.target:>7g} {target.fit.min_steps:>8.1f} "
                f"{target.fit.critical_batch * factor:>8,.0f} {f'{low} to {high}':>19} {_number(near, factor):>12} "
                f"{_between(target.near_interval, factor):>19} {_number(target.all_batches, factor):>12} "
                f"{kappa:>6}{mark}"
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


def _hooks(checks: Sequence[HooksCheck]) -> list[str]:
    rows = [
        "The hooks against every single example's gradient, on the same trajectories.",
        "Windows whose interval is open are not compared.",
        f"{'task':<20} {'windows':>8} {'bounded':>8} {'holding':>8} {'median ratio':>13}",
    ]
    for one in checks:
        bounded = one.num_bounded / one.num_windows if one.num_windows else 0.0
        holding = "-" if not one.num_compared else f"{one.num_holding / one.num_compared:.0%}"
        ratio = "-" if one.median_ratio is None else f"{one.median_ratio:.3f}"
        rows.append(f"{one.task:<20} {one.num_windows:>8} {bounded:>8.0%} {holding:>8} {ratio:>13}")
    return rows


def _end(value: float | None, factor: float) -> str:
    return "open" if value is None else f"{value * factor:,.0f}"


def _between(ends: tuple[float, float] | None, factor: float) -> str:
    return "-" if ends is None else f"{ends[0] * factor:,.1f} to {ends[1] * factor:,.1f}"


def _number(value: float | None, factor: float = 1) -> str:
    return "-" if value is None else f"{value * factor:,.1f}"
