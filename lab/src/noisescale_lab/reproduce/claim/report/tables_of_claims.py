"""Tables of a terminal for the claims beside the headline, each with what it does not show."""

from collections.abc import Sequence

from noisescale_lab.reproduce.claim.exact_quadratics import QuadraticCheck
from noisescale_lab.reproduce.claim.judged.findings import Findings
from noisescale_lab.reproduce.claim.judged.loss_law import SIZE_BATCH, LossLaw, SizeEffect
from noisescale_lab.reproduce.claim.judged.other_claims import CurveMisfit, Growth, RateGrowth
from noisescale_lab.reproduce.claim.task_result import TaskResult


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


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"
