"""The accuracy table of the README, from results/truth.csv: `python benchmarks/truth/readme_table.py`."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "results" / "truth.csv"

OURS = ("8 micro-batches", "per-example norms")
OTHERS = ("KungFu, 8 ranks", "gpt-neox, 5 batches", "adaptdl, differenced", "mean of ratios, 8 groups")
HEADER = (
    "| target | B | ours, 8 micro-batches | ours, per-example | best right peer, 8 groups | ours ÷ that | "
    "fairscale | KungFu | gpt-neox | adaptdl, one batch a step | mean of ratios |"
)

Row = Mapping[str, str]


def readme_table(results: Path = RESULTS) -> str:
    """Root mean square of log B̂ / B in Markdown, a line a target; in brackets the share without a number."""
    with results.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return "\n".join([HEADER, "|---" * HEADER.count(" | ") + "|---|", *lines(rows)])


def lines(rows: Iterable[Row]) -> Iterator[str]:
    """A line a target, in the order measured."""
    for target, of_target in groupby(rows, key=lambda row: row["target"]):
        by_name = {row["estimator"]: row for row in of_target}
        ours = by_name[OURS[0]]
        right = [row for row in by_name.values() if row.get("paired_with") == OURS[0] and row["kind"] == "within step"]
        best = min(right, key=lambda row: float(row["paired_rms_peer"]))
        cells = [
            f"{target} ({int(ours['batch_size']):,} × {ours['steps']})",
            f"{float(ours['noise_scale']):,.4g}",
            *(error(by_name[name]) for name in OURS),
            f"{float(best['paired_rms_peer']):.3f} {best['estimator'].split(',')[0]}",
            f"{float(best['paired_ratio']):.3f}",
            error(by_name["fairscale, 8 ranks"]),
            *(error(by_name[name]) for name in OTHERS),
        ]
        yield f"| {' | '.join(cells)} |"


def error(row: Row) -> str:
    """Root mean square of the log error, and the share of replicates without a number where there is one."""
    without = float(row["without_number"])
    number = f"{float(row['rms_log_error']):.3f}" if without < 1 else "none"
    return f"{number} ({without:.0%})" if without >= 0.005 else number


if __name__ == "__main__":
    print(readme_table())
