"""Words and numbers of docs/evidence.md, as files of results have them."""

import textwrap

from results_file import read


def paragraph(*sentences: str) -> str:
    """Lines of at most 120 characters, and an empty one."""
    return textwrap.fill("".join(sentences), 120, break_long_words=False, break_on_hyphens=False) + "\n"


def source(name: str) -> str:
    """Where a table comes from: its file, commits and commands."""
    rows = read(name)
    origins = dict.fromkeys((row["commit"], row.get("command") or "noisescale reproduce") for row in rows)
    commands: dict[str, list[str]] = {}
    for commit, how in origins:
        commands.setdefault(commit, []).append(f"`{how}`")
    said = "; ".join(f"commit {commit}: {', '.join(those)}" for commit, those in commands.items())
    return f"From `benchmarks/results/{name}.csv`, {said}.\n"


def value(figures: dict[str, dict[str, str]], figure: str, digits: int) -> str:
    """A figure of a file, with so many digits."""
    return number(figures[figure]["value"], digits)


def percent(value: float) -> str:
    """A share in per cent."""
    return f"{100 * value:.1f} %"


def number(value: str | float, digits: int) -> str:
    """A number with so many digits."""
    return f"{float(value):z,.{digits}f}"
