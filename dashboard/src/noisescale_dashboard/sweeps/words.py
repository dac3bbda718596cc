"""Sentences that the pages of sweeps say, made from the answers."""

import re
from collections.abc import Sequence

from noisescale_dashboard.answers.common import Interval
from noisescale_dashboard.answers.sweeps import (
    CriticalBatch,
    Fit,
    LackOfFit,
    PublishedSweep,
    Refusal,
    StepsPoint,
    Sweep,
    SweepPlan,
    TargetFit,
)
from noisescale_dashboard.words.number_format import count, exactly, share, significant, span

LEAST_BATCH_SIZES = 5
"""The target shown first was reached at so many batch sizes, where there is such a one."""
REASONS = {
    "too_few_batch_sizes": "too few batch sizes",
    "steps_rise_with_batch_size": "steps rise with the batch size",
    "examples_fall_with_batch_size": "examples fall with the batch size",
    "repeats_disagree": "repeats disagree",
    "misfit": "the curve does not fit",
    "all_batch_sizes_below_critical": "all batch sizes below B_crit",
    "all_batch_sizes_above_critical": "all batch sizes above B_crit",
    "undetermined": "undetermined",
}

FINDINGS = {
    "exponent": "another bend",
    "misfit": "misfit",
    "unequal_noise": "unequal noise",
    "grid_edge": "edge of the grid",
    "few_steps": "few steps",
}
"""What speaks against a fit, short enough for a table."""
_MINUS = re.compile(r"(?<![\w.−-])-(?=\d)")


def true_minus(text: str) -> str:
    """`text` of the server with minus signs as they are typeset here."""
    return _MINUS.sub("−", text)


def metric_words(metric: str | None) -> str:
    """What the targets are values of."""
    return metric or "training loss"


def first_target(found: CriticalBatch) -> TargetFit | None:
    """The hardest target that was reached at five batch sizes, else the hardest with a fit, else the hardest."""
    ordered = sorted(found.targets, key=lambda one: one.target, reverse=found.goal == "max")
    well_known = [one for one in ordered if one.num_reached >= LEAST_BATCH_SIZES]
    fitted = [one for one in ordered if one.fit is not None]
    return next(iter((*well_known, *fitted, *ordered)), None)


def chosen_target(found: CriticalBatch, wanted: float | None) -> TargetFit | None:
    """The target of this value, else the one shown first."""
    own = next((one for one in found.targets if wanted is not None and one.target == wanted), None)
    return own or first_target(found)


def headline(target: TargetFit, *, unit: str, metric: str) -> str:
    """The answer: "Critical batch 992 sequences at val_loss 2.85"; at a single batch size its best learning rate."""
    at = f"at {metric} {exactly(target.target)}"
    known = bounds_words(target.critical_batch)
    if known:
        return f"Critical batch {known} {unit} {at}"
    if len(target.points) == 1 and target.points[0].num_learning_rates > 1 and target.num_reached:
        return _best_rate(target.points[0], unit)
    return f"No critical batch {at} yet"


def _best_rate(point: StepsPoint, unit: str) -> str:
    where = f"at batch {count(point.batch_size)} {unit}"
    tried = f"the {count(point.num_learning_rates)} that were tried"
    if point.is_at_grid_edge:
        return f"Best learning rate {exactly(point.lr)} {where}, at the edge of {tried}"
    return f"Best learning rate {exactly(point.lr)} {where}, of {tried}"


def bounds_words(found: Interval) -> str:
    """The value, or what is known of it: "992", "above 4,100", "between 40 and 900"; empty where nothing is."""
    if found.value is not None:
        return significant(found.value)
    if found.low is not None and found.high is not None:
        return f"between {significant(found.low)} and {significant(found.high)}"
    if found.low is not None:
        return f"above {significant(found.low)}"
    return f"below {significant(found.high)}" if found.high is not None else ""


def lede(sweep: Sweep, target: TargetFit, level: float) -> str:
    """How sure, from what, and what speaks against it."""
    num_sizes = len(target.points)
    sizes = f"{count(num_sizes)} batch size{'' if num_sizes == 1 else 's'}"
    made = f"{sizes}, {_tuned(target)}, {count(sweep.num_runs)} runs."
    if not sweep.targets:
        made += " It names no target: five that all of its runs reached stand in."
    if target.refusal is not None:
        return f"{true_minus(target.refusal.explanation)} {made}"
    found = target.critical_batch
    interval = f"Interval {span(found.low, found.high)} ({share(level)})."
    worry = " ".join(lack_of_fit_words(target.fit.lack_of_fit)) if target.fit and has_findings(target) else ""
    return " ".join(filter(None, (interval, made, turn_words(target.fit), worry)))


def turn_words(fit: Fit | None) -> str:
    """That examples rise again at small batches, with B_opt and its interval and what was left out; empty without."""
    if fit is None or fit.turn is None:
        return ""
    best = fit.turn.best_batch
    ends = f"{_end(best.low, 'below the sweep')} – {_end(best.high, 'above the sweep')}"
    return f"Best batch by examples {significant(best.value)} ({ends}). {true_minus(fit.turn.explanation)}"


def _end(value: float | None, otherwise: str) -> str:
    return otherwise if value is None else significant(value)


def _tuned(target: TargetFit) -> str:
    tried = [point.num_learning_rates for point in target.points]
    return "learning rate tuned at each" if tried and min(tried) > 1 else "some with a single learning rate"


def has_findings(target: TargetFit) -> bool:
    """Whether something speaks against the fit."""
    return target.fit is not None and bool(target.fit.lack_of_fit.findings)


def lack_of_fit_words(lack: LackOfFit) -> list[str]:
    """A sentence for each finding; one that nothing was found where nothing was."""
    if not lack.findings:
        return [f"The curve fits{_exponent_words(lack)}."]
    return [_finding_words(finding, lack) for finding in lack.findings]


def _exponent_words(lack: LackOfFit) -> str:
    found = lack.exponent
    if found.value is None:
        return ""
    if found.low is None and found.high is None:
        return ""
    return f" (exponent {significant(found.value)}, {_ends(found)}; theory: 1)"


def _ends(found: Interval) -> str:
    low = significant(found.low) if found.low is not None else "below 0.1"
    high = significant(found.high) if found.high is not None else "above 10"
    return f"{low} – {high}"


def _finding_words(finding: str, lack: LackOfFit) -> str:
    sizes = ", ".join(count(size) for size in lack.grid_edge_batch_sizes)
    words = {
        "exponent": f"The bend has another shape than the curve{_exponent_words(lack)}.",
        "misfit": f"The points miss the curve by more than repeats allow{_chance(lack.misfit_probability)}.",
        "unequal_noise": f"Repeats scatter unequally over batch sizes{_chance(lack.unequal_noise_probability)}.",
        "grid_edge": f"At batch {sizes} the best learning rate was the last one tried: a better one may lie beyond it.",
        "few_steps": "S_min is below 5 steps, where the theory does not hold.",
    }
    return words.get(finding, finding.replace("_", " ").capitalize() + ".")


def _chance(probability: float | None) -> str:
    return "" if probability is None else f" (probability by chance {significant(probability, 2)})"


def reason_words(refusal: Refusal) -> str:
    """Why there is no fit, short enough for a table."""
    return REASONS.get(refusal.reason, refusal.reason.replace("_", " "))


def between_words(found: TargetFit | PublishedSweep) -> str:
    """The interval of B_crit for a table, or why there is none."""
    if found.refusal is not None:
        return reason_words(found.refusal)
    return span(found.critical_batch.low, found.critical_batch.high)


def doubt_words(found: TargetFit | PublishedSweep) -> str:
    """That a sweep turns and what speaks against its fit, for a table; empty where neither is so."""
    if found.fit is None:
        return ""
    turn = found.fit.turn
    turns = [] if turn is None else [f"turns up below {significant(turn.best_batch.value)}"]
    findings = found.fit.lack_of_fit.findings
    return ", ".join([*turns, *(FINDINGS.get(finding, finding.replace("_", " ")) for finding in findings)])


def found_words(found: TargetFit | PublishedSweep) -> str:
    """In short for a table: "992", "> 4,100" or why nothing is known."""
    known = found.critical_batch
    if known.value is not None:
        return significant(known.value)
    if known.low is not None:
        return f"> {significant(known.low)}"
    if known.high is not None:
        return f"< {significant(known.high)}"
    return "–"


def sweeps_sentence(sweeps: Sequence[Sweep], total: int) -> str:
    """What there is."""
    branches = sum(sweep.kind == "branch" for sweep in sweeps)
    scope = f"Of the {len(sweeps)} newest, " if total > len(sweeps) else ""
    own = f"{count(len(sweeps) - branches)} trained from the start to measure a critical batch size"
    return f"{scope}{own}; {count(branches)} branched from a run under way."


def plan_words(plan: SweepPlan) -> str:
    """What the next runs would bring."""
    if plan.present_ratio is None or plan.expected_ratio is None or not plan.proposals:
        return true_minus(plan.explanation)
    return (
        f"The interval's ends are now × {significant(plan.present_ratio)} apart; after these runs "
        f"× {significant(plan.expected_ratio)} are expected, if curve and scatter stay."
    )


def steps_sentence(target: TargetFit, *, unit: str) -> str:
    """What the figures of steps show, for those who do not see them."""
    reached = [point for point in target.points if point.steps is not None]
    if not reached:
        return "No batch size reached this target."
    first, last = reached[0], reached[-1]
    said = (
        f"Steps to target {exactly(target.target)} fall from {significant(first.steps)} at batch "
        f"{count(first.batch_size)} to {significant(last.steps)} at batch {count(last.batch_size)} {unit}."
    )
    known = bounds_words(target.critical_batch)
    return f"{said} Critical batch {known}." if known else f"{said} No critical batch was found."


def targets_sentence(found: CriticalBatch) -> str:
    """What the figure of critical batches over targets shows."""
    said = [f"{found_words(one)} at target {exactly(one.target)}" for one in found.targets]
    return f"Critical batch in {found.unit}: {', '.join(said)}."
