"""Shallue's questions of a sweep: where scaling is perfect, where it ends, and whether large batches end worse."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from noisescale_importers.answers.fit_words import number
from noisescale_importers.delivery.connection import Connection

BUDGETS = {"equal_steps": "at equal steps", "equal_examples": "at equal examples", "large_budget": "given time"}


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
