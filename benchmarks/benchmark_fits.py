"""Do the fits of sweeps find what is true? Planted sweeps, grids that end too early, known quadratics, MLPerf."""

import itertools
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.extend(map(str, (Path(__file__).parents[1] / "tests").glob("**/support")))
import quadratic_flow
from benchmarks.results_file import Figure, write
from benchmarks.smoke import size
from exact_quadratic import fit_of
from noisescale_server.analysis.sweeps.fitting.lack_of_fit import Finding
from noisescale_server.analysis.sweeps.fitting.sweep_fit import SweepFit
from noisescale_server.analysis.sweeps.published import published_sweeps
from synthetic_grids import GridSetting, findings
from synthetic_sweeps import Setting, shares

SWEEPS = size(2000, 4)
CENSORED_SWEEPS = size(1000, 2)
WIDE_SPACING_SWEEPS = size(100, 2)

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
GRIDS = {
    "rates end an octave early": GridSetting(beyond=1),
    "rates end an octave early, single runs": GridSetting(beyond=1, seeds=1),
    "rates end an octave early, flat optimum": GridSetting(beyond=1, valley=0.05),
    "rates end two octaves early": GridSetting(beyond=2),
    "rates go on for two octaves": GridSetting(beyond=-2),
}
GRID_SWEEPS = size(1000, 2)
QUADRATIC_SWEEPS = size(200, 1)
QUADRATIC_SHARE = 0.003


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
        found = shares(setting, sweeps=size(1000, 2), seed=12)
        is_curve = setting.exponent == 1
        yield Figure(f"{name}: lack of fit found", found.lack_of_fit, "", "" if setting.tuning else ">= 0.8")
        if is_curve:
            yield Figure(f"{name}: S_min held", found.min_steps, "", "0.925 to 0.975")
            yield Figure(f"{name}: B_crit held", found.critical_batch, "", "0.925 to 0.975")


def of_grids() -> Iterator[Figure]:
    """Shares of sweeps in which a grid of learning rates that ends too early is found."""
    for name, setting in GRIDS.items():
        found = findings(setting, sweeps=GRID_SWEEPS, seed=13)
        is_early = setting.beyond > 0
        edge, anything = (np.mean([bool(one & some) for one in found]) for some in ({Finding.GRID_EDGE}, set(Finding)))
        yield Figure(f"{name}: edge of the grid found", float(edge), "", ">= 0.8" if is_early else "")
        yield Figure(f"{name}: lack of fit found", float(anything), "", ">= 0.8" if is_early else "")


def of_quadratics() -> Iterator[Figure]:
    """Shares of 95 % intervals from trainings on a quadratic that hold what gradient, noise and curvature say."""
    exact = quadratic_flow.truth(QUADRATIC_SHARE)
    fits = [fit_of(QUADRATIC_SHARE, seeds=range(4 * sweep, 4 * sweep + 4)) for sweep in range(QUADRATIC_SWEEPS)]
    for name, field in (("S_min", "min_steps"), ("E_min", "min_examples"), ("B_crit", "critical_batch")):
        truth = getattr(exact, field)
        held = np.mean([getattr(fit, field).holds(truth) for fit in fits])
        off = np.mean([math.log(getattr(fit, field).value / truth) for fit in fits])
        yield Figure(f"exact quadratic: {name} held", float(held), "", "0.925 to 0.975")
        yield Figure(f"exact quadratic: mean log error of {name}", float(off), "")


def of_published_sweeps() -> Iterator[Figure]:
    """B_crit, its interval and the misfit of each workload of MLPerf, or that it was refused."""
    for sweep in itertools.islice(published_sweeps(), size(None, 3)):
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
    write("fits", [*of_planted_sweeps(), *of_grids(), *of_quadratics(), *of_published_sweeps()])


if __name__ == "__main__":
    main()
