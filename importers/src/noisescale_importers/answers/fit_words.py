"""The server's fit of a sweep in words."""

from collections.abc import Mapping


def fit_sentences(found: Mapping[str, object], unit: str, units_per_example: float) -> list[str]:
    """One target of the answer to `GET …/critical-batch`: values with intervals, or why there are none.

    Args:
        found: The target's answer.
        unit: What examples count as.
        units_per_example: How many of them an example is.
    """
    fit, refusal = found.get("fit"), found.get("refusal")
    if not isinstance(fit, Mapping):
        explanation = refusal.get("explanation") if isinstance(refusal, Mapping) else None
        return [f"no fit: {explanation}"]
    scale = units_per_example if units_per_example > 0 else 1.0
    said = [
        f"B_crit {interval(fit.get('critical_batch'), scale)} {unit}; "
        f"S_min {interval(fit.get('min_steps'))} steps; E_min {interval(fit.get('min_examples'), scale)} {unit} (95 %)"
    ]
    turn = fit.get("turn")
    if isinstance(turn, Mapping):
        said.append(f"B_opt {interval(turn.get('best_batch'), scale)} {unit}: {turn.get('explanation')}")
    lack = fit.get("lack_of_fit")
    findings = lack.get("findings") if isinstance(lack, Mapping) else None
    if isinstance(findings, list) and findings:
        said.append(f"against the fit: {', '.join(str(one).replace('_', ' ') for one in findings)} (docs/sweeps.md)")
    return said


def interval(estimate: object, scale: float = 1.0) -> str:
    """A value with its interval."""
    if not isinstance(estimate, Mapping):
        return "unknown"
    parts = [estimate.get(name) for name in ("value", "low", "high")]
    value, low, high = (number(one * scale) if isinstance(one, int | float) else "?" for one in parts)
    return f"{value} [{low}, {high}]"


def number(value: float) -> str:
    """Four significant digits, with thousands separators instead of an exponent."""
    rounded = float(f"{value:.4g}")
    return f"{rounded:,.0f}" if 1000 <= abs(rounded) < 1e15 else f"{rounded:.4g}"
