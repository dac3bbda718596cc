"""How good is a recommendation half-way? Writes results/policies_recommendations.csv.

Runs from all starts go on as they are; the product's recommendation at shares of each run is compared with the answer
of the task's sweep. `--smoke` prints one task and writes nothing.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
import torch

from benchmarks.results_file import write_rows
from benchmarks.smoke import IS_SMOKE
from noisescale_lab.reproduce.advice.glimpses import glimpses
from noisescale_lab.reproduce.advice.recommendation_scores import Row, rows
from noisescale_lab.reproduce.advice.replays import all_starts
from noisescale_lab.reproduce.advice.sweep import read
from noisescale_lab.reproduce.registry import ADVICE_TARGETS, ALL

ROOT = Path(__file__).parent.parent.parent
REFERENCES = Path(__file__).with_name("references.csv")
QUICK = ("powerlaw_regression",)
SEEDS = (200, 201)
SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)


def show(found: Sequence[Row]) -> None:
    """The table."""
    for one in found:
        print(
            f"{one.rate:9} {one.share:>5} {one.noise:31} {one.kappa:34} shown {one.shown:4.0%} resolved "
            f"{one.resolved:4.0%}  holds {one.holds:4.0%} [{one.holds_low:.0%}, {one.holds_high:.0%}]  decided "
            f"{one.decided:3.0%} [{one.decided_low:.0%}, {one.decided_high:.0%}] right {one.right:4.0%}  × "
            f"{math.exp(one.log_error):.1f}  regret {one.recommended_median:.0f} / {one.recommended_p90:.0f}, followed "
            f"{one.followed_median:.0f} / {one.followed_p90:.0f}, kept {one.kept_median:.0f} / {one.kept_p90:.0f}"
        )


def main() -> None:
    """Train, look, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args()
    torch.set_num_threads(1)
    references = read(REFERENCES)
    found = []
    for decays in (False, True):
        starts = all_starts(SEEDS, decays=decays)
        looks = {
            name: glimpses(ALL[name](), references[name], starts, SHARES)
            for name in (QUICK if IS_SMOKE else ADVICE_TARGETS)
        }
        found += rows("decaying" if decays else "constant", looks, references, SHARES)
    show(found)
    command = "python benchmarks/policies/benchmark_recommendations.py"
    write_rows("policies_recommendations", [asdict(one) for one in found], command=command)


if __name__ == "__main__":
    main()
