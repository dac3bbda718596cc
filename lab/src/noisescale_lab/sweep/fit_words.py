"""The server's fit in words: values with their intervals, and what speaks against them."""

from collections.abc import Mapping, Sequence

SHOWN = (
    ("B_crit", "critical_batch", "examples"),
    ("S_min", "min_steps", "steps"),
    ("E_min", "min_examples", "examples"),
)


def fit_lines(found: Mapping[str, object]) -> list[str]:
    """The fit of one target, or why there is none; then one line for each thing that speaks against it.

    Args:
        found: One target of the answer to `GET …/critical-batch`.
    """
    fit, refusal = found.get("fit"), found.get("refusal")
    if not isinstance(fit, Mapping):
        explanation = refusal.get("explanation") if isinstance(refusal, Mapping) else None
        return [f"No fit: {explanation}"]
    values = "; ".join(f"{name} {_interval(fit.get(field))} {unit}" for name, field, unit in SHOWN)
    lack = fit.get("lack_of_fit")
    named = lack.get("findings") if isinstance(lack, Mapping) else None
    findings = [str(one) for one in named] if isinstance(named, Sequence) else []
    against = [f"Against the fit: {_said(finding, fit)}" for finding in findings]
    return [f"{values} ({_level(fit)} %).", *_turn(fit), *(against or ["Nothing speaks against the fit."])]


def _turn(fit: Mapping[str, object]) -> list[str]:
    """The batch with the fewest examples, and what was left out below it, where a sweep turns up again there."""
    turn = fit.get("turn")
    if not isinstance(turn, Mapping):
        return []
    return [f"B_opt {_interval(turn.get('best_batch'))} examples. {turn.get('explanation')}"]


def _said(finding: str, fit: Mapping[str, object]) -> str:
    """A finding as a sentence with its number and the way out."""
    lack = fit.get("lack_of_fit")
    assert isinstance(lack, Mapping)
    if finding == "exponent":
        return (
            f"the curve bends in another way than the theory's, with exponent {_interval(lack.get('exponent'))} and "
            "not 1: B_crit holds near the batch sizes that were tried."
        )
    if finding == "misfit":
        rms = fit.get("rms")
        by = f" by {rms:.0%} (rms)" if isinstance(rms, float) else ""
        return f"batch sizes miss the curve{by}, more than repeats differ: tune the outlying ones again."
    if finding == "unequal_noise":
        return "repeats scatter more at some batch sizes than at others; the intervals allow for it."
    if finding == "grid_edge":
        sizes = lack.get("grid_edge_batch_sizes")
        named = ", ".join(f"{size:,.0f}" for size in sizes) if isinstance(sizes, Sequence) else "some"
        return f"the best learning rate was the last one tried at batch size {named}: try rates beyond it."
    if finding == "few_steps":
        return "S_min is below 5 steps, where the theory does not hold: choose a harder target."
    return f"{finding.replace('_', ' ')}."


def _level(fit: Mapping[str, object]) -> str:
    critical = fit.get("critical_batch")
    level = critical.get("level") if isinstance(critical, Mapping) else None
    return f"{level * 100:.4g}" if isinstance(level, float) else "?"


def _interval(estimate: object) -> str:
    if not isinstance(estimate, Mapping):
        return "unknown"
    value, low, high = (estimate.get(name) for name in ("value", "low", "high"))
    shown = [_number(number) if isinstance(number, int | float) else "?" for number in (value, low, high)]
    return f"{shown[0]} [{shown[1]}, {shown[2]}]"


def _number(value: float) -> str:
    """Four significant digits, with thousands separators instead of an exponent."""
    rounded = float(f"{value:.4g}")
    return f"{rounded:,.0f}" if 1000 <= abs(rounded) < 1e15 else f"{rounded:.4g}"
