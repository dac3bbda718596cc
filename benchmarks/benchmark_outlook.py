"""How long the log says it takes until the noise scale is resolved, against how long it took, on simulated runs."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.extend(map(str, (Path(__file__).parents[1] / "tests").glob("**/support")))
from benchmarks.results_file import Figure, write
from benchmarks.smoke import size
from noisescale.recent_updates import NoiseScale, RecentUpdates
from noisescale_core.estimators.noise_scale import Terms
from simulated_runs import Setting, simulated_terms

LOOKS = (16, 64, 256)
"""Updates after which the log says how long it takes."""

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
    """More updates until it is resolved, as people read it; None where only "at least" so many is said."""
    found = re.search(r"(?:about|in about) ([\d.]+) more steps", str(now))
    return None if found is None else float(found.group(1))


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
    """Median and quartiles of foretold ÷ true, for runs of each kind."""
    for name, (setting, steps) in SETTINGS.items():
        lengths, found = ratios(setting, steps)
        yield Figure(f"{name} ({setting}): median updates until resolved", float(np.median(lengths)), "updates")
        for look, of_look in found.items():
            if len(of_look) < RUNS / 3:
                continue
            quartiles = np.quantile(of_look, [0.5, 0.25, 0.75])
            for word, value in zip(("median", "lower quartile", "upper quartile"), quartiles, strict=True):
                target = "1/1.5 to 1.5" if word == "median" else ""
                yield Figure(f"{name}: foretold / true after {look} updates, {word}", float(value), "", target)


if __name__ == "__main__":
    write("outlook", list(figures()))
