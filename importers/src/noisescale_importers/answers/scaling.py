"""Shallue's questions of a sweep: where scaling is perfect, where it ends, and whether large batches end worse."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from noisescale_importers.delivery.connection import Connection

BUDGETS = {"equal_steps": "at equal steps", "equal_examples": "at equal examples", "large_budget": "given time"}


# The server's fit of a sweep in words.


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


def regimes(fit: Mapping[str, object]) -> str | None:
    """The three regimes of one target: up to which batch doubling halves the steps, and from which it saves none."""
    found = fit.get("regimes")
    slopes = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    if not slopes:
        return None
    perfect = _leading(slopes, "perfect")
    maximal = _leading(slopes[::-1], "maximal")
    ends = (
        f"perfect scaling up to a batch of {number(perfect[-1]['to_batch_size'])}" if perfect else "no perfect scaling"
    )
    begins = f"none from {number(maximal[-1]['from_batch_size'])} on" if maximal else "steps saved up to the largest"
    return f"{ends}, {begins}"


def _leading(slopes: list[dict[str, Any]], regime: str) -> list[dict[str, Any]]:
    return list(takewhile(lambda one: one.get("regime") == regime, slopes))


def quality_sentences(connection: Connection, sweep_id: str) -> Iterator[str]:
    """Whether larger batches end at a worse metric, under each of three budgets.

    Raises:
        TransportError: Without a server.
        ConfigError: Where the key may not.
    """
    answer = connection.request("GET", f"/api/v1/sweeps/{sweep_id}/quality")
    found = answer.body.get("comparisons")
    if not isinstance(found, list):
        return
    for one in found:
        points = one.get("points") or []
        values = ", ".join(f"{number(point['batch_size'])}: {number(point['mean'])}" for point in points)
        if len(points) > 1:
            verdict = {"open": "not decided"}.get(str(one.get("verdict")), f"larger batches {one.get('verdict')}")
            yield f"  {BUDGETS.get(str(one.get('budget')), one.get('budget'))}, by batch: {values} ({verdict})"


def beside_each_other(fitted: Sequence[tuple[str, str, str, str]]) -> Iterator[str]:
    """Tasks with their target, B_crit and regimes, one a line; empty for fewer than two.

    Args:
        fitted: Task, target, B_crit with its interval, and regimes.
    """
    if len(fitted) < 2:
        return
    yield "\nthe tasks beside each other:"
    rows = [("task", "target", "B_crit", "regimes"), *fitted]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        yield "  " + "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
