"""The results as tables of a terminal."""

from collections.abc import Sequence

from noisescale_lab.reproduce.claim.exact_quadratics import QuadraticCheck
from noisescale_lab.reproduce.claim.judged.findings import Findings
from noisescale_lab.reproduce.claim.judged.loss_law import SIZE_BATCH, LossLaw, SizeEffect
from noisescale_lab.reproduce.claim.judged.other_claims import CurveMisfit, Growth, HooksCheck, RateGrowth
from noisescale_lab.reproduce.claim.judged.retrospect import Series
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


# Tables of a terminal for the claims beside the headline, each with what it does not show.


def tables_of_claims(found: Findings) -> tuple[list[str], ...]:
    """One list of lines a table."""
    return (
        _quadratics(found.quadratics),
        _growth(found.growth),
        _loss_laws(found.loss_laws),
        _size(found.size_effect),
        _misfits(found.misfits),
        _rates(found.rate_growth),
        _adaptive(found.results),
    )


def _quadratics(checks: Sequence[QuadraticCheck]) -> list[str]:
    rows = [
        "Noisy quadratics, where every noise scale is known: the hooks against the truth, averaged over the run.",
        "B_crit belongs to kind hessian, the last column: kind simple is the same only where H is isotropic.",
        f"{'task':<32} {'windows':>8} {'bounded':>8} {'holding':>8} {'measured':>10} {'exact':>10} {'hessian':>10}",
    ]
    for one in checks:
        rows.append(
            f"{one.task:<32} {one.num_windows:>8} {one.num_bounded:>8} {one.num_holding:>8} "
            f"{_number(one.measured):>10} {_number(one.exact):>10} {one.exact_hessian:>10,.1f}"
        )
    return rows


def _growth(found: Sequence[Growth]) -> list[str]:
    rows = [
        "The noise scale grows during training: last against first quarter of the tuned run nearest B_crit.",
        "Not from the first step on: where the lowest window is not the first, it dips before it grows.",
        f"{'task':<20} {'first quarter':>14} {'last quarter':>14} {'ratio':>7} {'lowest at':>10}",
    ]
    for one in found:
        rows.append(
            f"{one.task:<20} {one.early:>14,.1f} {one.late:>14,.1f} {one.late / one.early:>7.2f} {one.lowest_at:>10.0%}"
            f"{'  dips' if one.lowest_at > 0 else ''}"
        )
    return rows


def _loss_laws(found: Sequence[LossLaw]) -> list[str]:
    rows = [
        "Noise scale ∝ loss to a power along that run, with a 95 % interval for independent windows.",
        "Loss and training time go together within one run: this cannot tell which of them it is.",
        f"{'task':<20} {'exponent':>22} {'r²':>6} {'loss from':>10} {'to':>8} {'windows':>8}",
    ]
    for one in found:
        rows.append(
            f"{one.task:<20} {one.exponent!s:>22} {one.r_squared:>6.2f} {one.highest_loss:>10.3g} "
            f"{one.lowest_loss:>8.3g} {one.num_windows:>8}"
        )
    return rows


def _size(found: SizeEffect | None) -> list[str]:
    if found is None:
        return [
            "A model's size acts through its loss: needs digits_mlp_16 and digits_mlp_256, which --quick leaves out."
        ]
    sizes = ", ".join(map(str, found.sizes))
    return [
        f"A model's size acts through its loss: digits_mlp with {sizes} hidden units, batch {SIZE_BATCH}, tuned rates,",
        f"{found.num_windows} windows. Noise scale ∝ loss^a · size^b; windows of one run are not independent.",
        f"  a = {found.loss_exponent}, b = {found.size_exponent}, r² {found.r_squared:.2f}",
    ]


def _misfits(found: Sequence[CurveMisfit]) -> list[str]:
    rows = [
        "Steps against the fitted curve S_min (1 + B_crit / B), for each target.",
        f"{'task':<20} {'target':>7} {'batches':>8} {'rms factor':>11} {'farthest':>9} {'at batch':>9}",
    ]
    for one in found:
        rows.append(
            f"{one.task:<20} {one.target:>7g} {one.num_points:>8} {one.rms_factor:>11.2f} "
            f"{one.largest_factor:>9.2f} {one.farthest_batch:>9,}"
        )
    return rows


def _rates(found: Sequence[RateGrowth]) -> list[str]:
    rows = [
        "Best learning rate ∝ B to a power. Theory: for SGD 1 far below B_crit, 0 far above; Adam 0.4 to 0.8.",
        "Few batch sizes each, so there are no intervals: a picture, no measurement.",
        f"{'task':<20} {'optimizer':<10} {'below B_crit':>13} {'above B_crit':>13} {'all':>6}",
    ]
    for one in found:
        shown = ["-" if value is None else f"{value:.2f}" for value in (one.below, one.above, one.over_all)]
        rows.append(f"{one.task:<20} {one.optimizer:<10} {shown[0]:>13} {shown[1]:>13} {shown[2]:>6}")
    return rows


def _adaptive(results: Sequence[TaskResult]) -> list[str]:
    rows = [
        "A batch size that follows the noise scale, B = √(B_crit × noise scale), against the tuned constant one.",
        "Cost: steps + examples / B_crit to the hardest target, over that of the constant run. One run each, made with",
        "knowledge of the whole noise scale: differences of a tenth are luck.",
        f"{'task':<20} {'batch from':>10} {'to':>8} {'foreseen':>9} {'measured':>9}",
    ]
    for result in results:
        one = result.adaptive
        if one is not None:
            measured = "missed" if one.measured is None else f"{one.measured:.2f}"
            rows.append(f"{result.task:<20} {one.smallest:>10,} {one.largest:>8,} {one.foreseen:>9.2f} {measured:>9}")
    return rows
