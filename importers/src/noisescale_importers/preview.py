"""What an import will take for what, as a table."""

from collections import Counter
from collections.abc import Sequence

from noisescale_importers.prepared import Prepared
from noisescale_importers.reading import NOT_METRICS
from noisescale_importers.roles import ROLES, Taken
from noisescale_importers.source import shown

MAX_METRICS = 12
MISSING = {
    "loss": "without it no training loss is shown",
    "batch": "without it no critical batch can follow",
    "learning-rate": "without it a sweep takes the runs as they are",
    "step": "the rows are counted from 0",
    "gradient-norm": "without it no noise scale can follow",
}


def preview(runs: Sequence[Prepared]) -> str:
    """The table: for each role what fills it, its first value, and in how many runs."""
    num_filled = sum(one.has_rows for one in runs)
    lines = [f"{len(runs)} {'run' if len(runs) == 1 else 'runs'}, {num_filled} with rows", ""]
    rows = [("role", "taken from", "first value", "runs")]
    for role in ROLES:
        counted = Counter(_words(one.roles[role]) for one in runs if role in one.roles)
        for words, number in counted.most_common(3):
            first = next(one for one in runs if role in one.roles and _words(one.roles[role]) == words)
            rows.append((role, words, _number(first.number(role)), str(number)))
        if not counted and role in MISSING:
            rows.append((role, *_missing(role, runs)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    metrics = _metrics(runs)
    if metrics:
        more = f" and {len(metrics) - MAX_METRICS} more" if len(metrics) > MAX_METRICS else ""
        lines += ["", f"kept as metrics: {', '.join(shown(name, 40) for name in metrics[:MAX_METRICS])}{more}"]
    return "\n".join(lines)


def _missing(role: str, runs: Sequence[Prepared]) -> tuple[str, str, str]:
    if role == "step" and all(one.has_steps for one in runs if one.has_rows):
        return "the source itself", "", str(sum(one.has_rows for one in runs))
    why = next((one.not_taken[role] for one in runs if role in one.not_taken), MISSING[role])
    return ("each row's place" if role == "step" else "not found"), why, f"--{role} …"


def _words(taken: Taken) -> str:
    if taken.column is None:
        return f"{taken.origin}" if taken.origin.startswith("config") else "the number given"
    said = {"given": "as given", "guessed": "guessed", "source": "as its source says"}[taken.origin]
    return f"{shown(taken.column, 40)} ({said})"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.6g}"


def _metrics(runs: Sequence[Prepared]) -> list[str]:
    found: dict[str, None] = {}
    for one in runs:
        hidden = {taken.column for role, taken in one.roles.items() if role in NOT_METRICS}
        found |= dict.fromkeys(name for name in one.columns if name not in hidden)
    return list(found)
