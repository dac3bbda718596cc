"""The obviously right recomputation: every row in memory, no pyramid, no SQL."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from noisescale_core.estimators.windows import WindowSums


@dataclass(frozen=True)
class Row:
    """One measurement of one stream."""

    stream: int
    seq: int
    step: int
    num_updates: int
    values: dict[str, Any]

    @property
    def has_estimate(self) -> bool:
        return self.values["sum_trace_cov"] is not None


def rows_of(stream: int, measurements: dict[str, list[Any]]) -> list[Row]:
    """The rows of wire columns."""
    return [
        Row(
            stream,
            seq,
            measurements["step"][i],
            measurements["num_updates"][i],
            {k: v[i] for k, v in measurements.items()},
        )
        for i, seq in enumerate(measurements["seq"])
    ]


def live_rows(streams: Sequence[Sequence[Row]]) -> list[Row]:
    """Rows that no newer stream covers, in the order of steps; streams come oldest first."""
    covers = [
        (max(0, min(row.step - row.num_updates + 1 for row in rows)), max(row.step for row in rows)) for rows in streams
    ]
    live = [
        row
        for number, rows in enumerate(streams)
        for row in rows
        if not any(first <= row.step <= last for first, last in covers[number + 1 :])
    ]
    return sorted(live, key=lambda row: (row.step, row.stream, row.seq))


def block_key(row: Row, level: int) -> tuple[int, ...]:
    """At level 0 each row is a block, above it each bucket of 32**level steps."""
    return (row.step // 32**level,) if level else (row.step, row.stream, row.seq)


def window_sums(rows: Iterable[Row], level: int) -> WindowSums:
    """The sums over the blocks of these rows."""
    blocks: dict[tuple[int, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row.has_estimate:
            blocks[block_key(row, level)].append(row)
    return WindowSums.from_blocks(
        (
            float(sum(row.num_updates for row in block)),
            sum(row.values["sum_trace_cov"] for row in block),
            sum(row.values["sum_grad_sq_norm"] for row in block),
        )
        for block in blocks.values()
    )


def windows(
    rows: Sequence[Row], *, level: int, steps_per_point: int, window_steps: int, low: int, high: int
) -> dict[int, tuple[WindowSums, WindowSums]]:
    """For each point in [low, high] that has rows: the sums over its window and over the four windows' length before.

    A window reaches back until it holds 8 blocks, what is before it until it holds 32. Where points are smaller than
    blocks, windows start with a whole block.
    """
    num_points = -(-window_steps // steps_per_point)
    steps_per_unit = max(32**level, steps_per_point)
    units_before = -(-4 * num_points * steps_per_point // steps_per_unit)
    found = {}
    for point in sorted({row.step // steps_per_point for row in rows if low <= row.step <= high}):
        end = min((point + 1) * steps_per_point - 1, high)
        unit = (point - num_points + 1) * steps_per_point // steps_per_unit
        start, sums = _reaching_back(rows, level, unit, end, steps_per_unit=steps_per_unit, num_blocks=8)
        first = start - units_before
        _, before = _reaching_back(
            rows, level, first, start * steps_per_unit - 1, steps_per_unit=steps_per_unit, num_blocks=32
        )
        found[point] = sums, before
    return found


def _reaching_back(
    rows: Sequence[Row], level: int, unit: int, end: int, *, steps_per_unit: int, num_blocks: int
) -> tuple[int, WindowSums]:
    """From which unit on there are as many blocks up to step `end`, at most `unit`, and their sums."""
    while True:
        sums = window_sums([row for row in rows if unit * steps_per_unit <= row.step <= end], level)
        if sums.num_blocks >= num_blocks or unit <= 0:
            return unit, sums
        unit -= 1


def own(rows: Sequence[Row]) -> dict[str, Any]:
    """What these rows hold apart from the window: loss, batch, learning rate, extremes."""
    measured = [row for row in rows if row.has_estimate]
    losses = [row for row in rows if row.values["num_loss"]]
    last = max(rows, key=lambda row: (row.step, row.seq)).values
    return {
        "step": last["step"],
        "examples": last["examples"],
        "wall_time": last["wall_time"],
        "lr": last["lr"],
        "loss": mean([r.values["sum_loss"] for r in losses], sum(r.values["num_loss"] for r in losses)),
        "loss_min": min((r.values["sum_loss"] / r.values["num_loss"] for r in losses), default=None),
        "loss_max": max((r.values["sum_loss"] / r.values["num_loss"] for r in losses), default=None),
        "global_batch": mean(
            [r.values["global_batch"] * r.num_updates for r in rows], sum(r.num_updates for r in rows)
        ),
        "trace_cov_min": min((r.values["sum_trace_cov"] / r.num_updates for r in measured), default=None),
        "trace_cov_max": max((r.values["sum_trace_cov"] / r.num_updates for r in measured), default=None),
        "grad_sq_norm_min": min((r.values["sum_grad_sq_norm"] / r.num_updates for r in measured), default=None),
        "grad_sq_norm_max": max((r.values["sum_grad_sq_norm"] / r.num_updates for r in measured), default=None),
        "flags": bits(row.values["flags"] for row in rows),
    }


def mean(values: Sequence[float], count: int) -> float | None:
    return sum(values) / count if count else None


def bits(flags: Iterable[int]) -> int:
    total = 0
    for one in flags:
        total |= one
    return total
