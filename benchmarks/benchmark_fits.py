"""Do the fits of sweeps find what was planted? Coverage, lack of fit, and MLPerf's published sweeps."""

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from benchmarks.harness import Figure, write
from noisescale_server.analysis.batch_sweep.sweep_fit import SweepFit
from noisescale_server.analysis.published_sweeps import published_sweeps
from synthetic_sweeps import Setting, shares

SWEEPS = 2000
CENSORED_SWEEPS = 1000
WIDE_SPACING_SWEEPS = 100

AS_ASSUMED = {
    "9 batch sizes, 5 repeats": (Setting(), SWEEPS),
    "9 batch sizes, single runs": (Setting(repeats=1), SWEEPS),
    "4 batch sizes up to B_crit": (Setting(octaves=(-2, 0), num_batch_sizes=4), SWEEPS),
    "runs end before the target, single runs": (Setting(budget=6000, repeats=1), CENSORED_SWEEPS),
    "evaluations 25 % apart, 2 repeats": (Setting(spacing=1.25, repeats=2), WIDE_SPACING_SWEEPS),
}
NOT_AS_ASSUMED = {
    "tuning scatters by 5 %, 3 repeats": Setting(repeats=3, tuning=0.05),
    "noise from 2 to 15 %": Setting(scatter=(0.02, 0.15)),
    "noise from 2 to 20 %": Setting(scatter=(0.02, 0.2)),
    "exponent 0.7": Setting(exponent=0.7),
    "exponent 1.4": Setting(exponent=1.4),
    "exponent 0.7, 7 batch sizes, 3 repeats": Setting(exponent=0.7, num_batch_sizes=7, repeats=3),
    "exponent 1.4, 7 batch sizes, 3 repeats": Setting(exponent=1.4, num_batch_sizes=7, repeats=3),
}


def of_planted_sweeps() -> Iterator[Figure]:
    """Shares of 95 % intervals that hold the truth, and of sweeps in which lack of fit is found."""
    for name, (setting, sweeps) in AS_ASSUMED.items():
        found = shares(setting, sweeps=sweeps, seed=11)
        target = "0.925 to 0.975" if setting.spacing is None else "at least 0.925"
        yield Figure(f"{name}: S_min held", found.min_steps, "", target)
        yield Figure(f"{name}: E_min held", found.min_examples, "", target)
        yield Figure(f"{name}: B_crit held", found.critical_batch, "", target)
        yield Figure(f"{name}: lack of fit found", found.lack_of_fit, "")
        yield Figure(f"{name}: sweeps", sweeps, "sweeps")
    for name, setting in NOT_AS_ASSUMED.items():
        found = shares(setting, sweeps=1000, seed=12)
        is_curve = setting.exponent == 1
        yield Figure(f"{name}: lack of fit found", found.lack_of_fit, "", "" if setting.tuning else ">= 0.8")
        if is_curve:
            yield Figure(f"{name}: S_min held", found.min_steps, "", "0.925 to 0.975")
            yield Figure(f"{name}: B_crit held", found.critical_batch, "", "0.925 to 0.975")


def of_published_sweeps() -> Iterator[Figure]:
    """B_crit, its interval and the misfit of each workload of MLPerf, or that it was refused."""
    for sweep in published_sweeps():
        name = f"MLPerf {sweep.workload.name} {sweep.workload.version}"
        outcome = sweep.outcome
        if not isinstance(outcome, SweepFit):
            yield Figure(f"{name}: refused, {outcome.reason}", 1, "")
            continue
        critical = outcome.critical_batch
        assert critical.low is not None
        assert critical.high is not None
        yield Figure(f"{name}: B_crit", critical.value, "examples")
        yield Figure(f"{name}: B_crit, low", critical.low, "examples")
        yield Figure(f"{name}: B_crit, high", critical.high, "examples")
        yield Figure(f"{name}: misfit (rms)", outcome.rms, "", "<= 0.08")


def main() -> None:
    """Measure and write the results."""
    write("fits", [*of_planted_sweeps(), *of_published_sweeps()])


if __name__ == "__main__":
    main()
