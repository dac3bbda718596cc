"""The table of a draw: what was planted, what caught it, and why the rest survived."""

import tomllib
from collections.abc import Sequence
from pathlib import Path

from mutation.drawing import Mutant
from mutation.trying import Verdict

Row = dict[str, str]

EXPLAINED = Path(__file__).with_name("explained.toml")


def row_of(mutant: Mutant, verdict: Verdict, original: str) -> Row:
    """A row without an explanation.

    Args:
        mutant: What was planted.
        verdict: What became of it.
        original: The file without it.
    """
    before, after = mutant.difference(original)
    return {
        "mutant": f"{mutant.operator} {mutant.occurrence}",
        "file": mutant.file,
        "line": str(mutant.line),
        "before": before,
        "after": after,
        "outcome": verdict.outcome,
        "caught by": verdict.by,
        "seconds": f"{verdict.seconds:.1f}",
        "explanation": "",
    }


def explain(rows: Sequence[Row]) -> None:
    """Say of each survivor why, as far as `explained.toml` knows."""
    known = {
        (one["file"], one["before"], one["after"]): one["why"] for one in tomllib.loads(EXPLAINED.read_text())["mutant"]
    }
    for row in rows:
        why = known.get((Path(row["file"]).name, row["before"], row["after"]), "")
        row["explanation"] = why if row["outcome"] == "survived" else ""


def summary(rows: Sequence[Row]) -> str:
    """The survivors, and how many there are."""
    survivors = [row for row in rows if row["outcome"] == "survived"]
    told = [
        f"survived: {row['file']}:{row['line']}\n  - {row['before']}\n  + {row['after']}\n  "
        f"{row['explanation'] or 'NOT EXPLAINED'}"
        for row in survivors
    ]
    return "\n".join([*told, f"{len(rows) - len(survivors)} of {len(rows)} caught"])
