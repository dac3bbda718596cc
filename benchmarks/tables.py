"""Writes benchmarks/README.md and docs/evidence.md from the files of results: `python benchmarks/tables.py`.

The first holds every file, the second what they say of the product. With `--check` it writes nothing, and fails where
a page differs: a change of code can make a figure one of older code, which its page has to say.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import evidence
from measured_code import is_fresh
from results_file import RESULTS, read

ROOT = Path(__file__).parents[1]
PAGE = Path(__file__).with_name("README.md")
MOST_ROWS = 24
"""Of a longer file those with a target, at most so many."""

HEAD = """# Figures

Every number below comes from `benchmarks/results/`, where it stands with its commit, machine, load and command.
Absolute times are of shared two-core machines and differ by a factor of two from day to day: compare ratios of one
file. A file is *of the code as it is* when nothing that it measures has changed since (`measured_code.py`); others
say of which commit they are. `python benchmarks/tables.py` writes this page, and `docs/evidence.md`.

Each benchmark takes `--smoke`, seconds at sizes that say nothing; `make test-full` runs them all so.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(line for path in sorted(RESULTS.glob("*.csv")) for line in _section(path))])


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


def main() -> int:
    """Writes the pages, or says which differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only say whether the pages are what this writes")
    is_check = parser.parse_args().check
    pages = {PAGE: page(), evidence.PAGE: evidence.page()}
    stale = [path for path, text in pages.items() if path.read_text() != text]
    for path in stale:
        if is_check:
            print(
                f"{path.relative_to(ROOT)} says of a figure what is no longer so: python benchmarks/tables.py",
                file=sys.stderr,
            )
        else:
            path.write_text(pages[path])
    return 1 if is_check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
