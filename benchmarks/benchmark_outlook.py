"""After how many steps at least the log says that the noise scale is resolved, against when it was: simulated runs."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.extend(map(str, (Path(__file__).parents[1] / "tests").glob("**/support")))
from benchmarks.results_file import Figure, write
from benchmarks.smoke import size
from noisescale.window.recent_updates import NoiseScale, RecentUpdates
from noisescale_core.estimators.noise_scale import Terms
from simulated_runs import Setting, simulated_terms

LOOKS = (16, 64, 256)
"""Updates after which the log is read."""

RUNS = size(60, 3)

ALL_SETTINGS = {
    "easy": (Setting(1, 8, "30 equal"), 400),
    "easy, power law": (Setting(0.5, 8, "power law"), 400),
    "at the edge of the shortest window": (Setting(2.5, 8, "30 equal"), 3000),
    "medium": (Setting(5, 8, "30 equal"), 6000),
    "medium, two groups": (Setting(3, 2, "power law"), 12_000),
    "hard": (Setting(10, 8, "30 equal"), 20_000),
}
"""What kind of run, and updates within which every one is resolved."""

SETTINGS = size(ALL_SETTINGS, {"easy": ALL_SETTINGS["easy"]})


def foretold(now: NoiseScale) -> float | None:
    """More updates at least until it is resolved, as people read it; None where nothing is said."""
    found = re.search(r"at least ([\d.]+)( k)? more steps", str(now))
    return None if found is None else float(found.group(1)) * (1000 if found.group(2) else 1)


def ratios(setting: Setting, steps: int) -> tuple[list[float], dict[int, list[float]]]:
    """Updates until each run was resolved first, and foretold length ÷ that at each look before it."""
    trace, square = simulated_terms(np.random.default_rng(0), setting, runs=RUNS, steps=steps)
    lengths: list[float] = []
    found: dict[int, list[float]] = {look: [] for look in LOOKS}
    for terms in zip(trace.tolist(), square.tolist(), strict=True):
        recent, said, length = RecentUpdates(), {}, float("inf")
        for number, (trace_cov, grad_sq_norm) in enumerate(zip(*terms, strict=True), start=1):
            recent.add(Terms(trace_cov=trace_cov, grad_sq_norm=grad_sq_norm))
            now = NoiseScale(recent.estimate(), number)
            if now.state == "resolved":
                length = number
                break
            if number in LOOKS and (more := foretold(now)) is not None:
                said[number] = number + more
        lengths.append(length)
        for look, total in said.items():
            found[look].append(total / length)
    return lengths, found


def figures() -> Iterator[Figure]:
    """How often a run was resolved before, and the median of foretold ÷ true, for runs of each kind."""
    for name, (setting, steps) in SETTINGS.items():
        lengths, found = ratios(setting, steps)
        yield Figure(f"{name} ({setting}): median updates until resolved", float(np.median(lengths)), "updates")
        for look, of_look in found.items():
            if len(of_look) < RUNS / 3:
                continue
            too_much = float(np.mean(np.array(of_look) > 1))
            yield Figure(f"{name}: runs resolved before that, said after {look} updates", 100 * too_much, "%", "≤ 10")
            median = float(np.median(of_look))
            yield Figure(f"{name}: at least foretold / true after {look} updates, median", median, "")


if __name__ == "__main__":
    write("outlook", list(figures()))
