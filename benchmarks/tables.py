"""Writes the figures of benchmarks/README.md and README.md from the files of results: `python benchmarks/tables.py`.

The first holds every file, the second the rows of those that are of the code as it is.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from measured_code import fingerprint
from readme_figures import README, with_fresh_rows
from results_file import RESULTS, read

PAGE = Path(__file__).with_name("README.md")
MOST_ROWS = 24
"""Of a longer file those with a target, at most so many."""

HEAD = """# Figures

Every number below comes from `benchmarks/results/`, where it stands with its commit, machine, load and command.
Absolute times are of shared two-core machines and differ by a factor of two from day to day: compare ratios of one
file. A file is *of the code as it is* when nothing that it measures has changed since (`measured_code.py`); others
say of which commit they are. `python benchmarks/tables.py` writes this page, and into the README the rows of the
files that are of the code as it is.

Each benchmark takes `--smoke`, seconds at sizes that say nothing; `make test-full` runs them all so.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(line for path in sorted(RESULTS.glob("*.csv")) for line in _section(path))])


def readme() -> str:
    """README with its table as it should be."""
    names = [path.stem for path in RESULTS.glob("*.csv")]
    return with_fresh_rows(README.read_text(), {what: is_fresh(what, read(what)) for what in names})


def is_fresh(what: str, rows: Sequence[dict[str, str]]) -> bool:
    """Whether a file of results is of the code as it is.

    Args:
        what: Its name without ending.
        rows: Of the file.
    """
    codes = {row.get("code") for row in rows}
    return len(codes) == 1 and None not in codes and codes == {fingerprint(what)}


def _section(path: Path) -> Iterator[str]:
    rows = read(path.stem)
    commits = sorted({row.get("commit", "unknown") for row in rows})
    of = "of the code as it is" if is_fresh(path.stem, rows) else f"of commit {', '.join(commits)}"
    yield f"## {path.stem}\n"
    yield f"[`results/{path.name}`](results/{path.name}), {rows[0].get('date', 'no date')}, {of}.\n"
    if not {"figure", "value", "unit", "target"} <= rows[0].keys():
        yield f"{len(rows)} rows.\n"
        return
    with_target = [row for row in rows if row["target"]]
    shown = with_target if len(rows) > MOST_ROWS and with_target else rows
    yield "| figure | measured | target |\n|---|---|---|"
    for row in shown[:MOST_ROWS]:
        yield f"| {row['figure'].replace('|', '·')} | {float(row['value']):,.4g} {row['unit']} | {row['target']} |"
    left_out = len(rows) - min(len(shown), MOST_ROWS)
    yield f"\n{left_out} more in the file.\n" if left_out else ""


if __name__ == "__main__":
    PAGE.write_text(page())
    README.write_text(readme())
