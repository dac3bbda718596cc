"""The targets of a sweep: its own, or where it has none a ladder over what its runs reached."""

from collections.abc import Sequence

from noisescale_server.analysis.sweeps.steps_to_target.ladder import target_ladder
from noisescale_server.analysis.sweeps.steps_to_target.setting import Setting
from noisescale_server.services.sweeps.sweeps import Goal
from noisescale_server.storage.platform.tables import Sweep

NUM_TARGETS = 5


def goal_of(sweep: Sweep) -> Goal:
    """Whether the sweep's metric falls or rises to a target."""
    return "max" if sweep.goal == "max" else "min"


def targets_of(sweep: Sweep, settings: Sequence[Setting]) -> list[float]:
    """Targets, the hardest first; empty where the sweep names none and its runs did not improve."""
    return sorted(sweep.targets or ladder(settings), reverse=sweep.goal == "max")


def ladder(settings: Sequence[Setting]) -> Sequence[float]:
    """Targets from easy to hard that every run reached; empty where there are none."""
    curves = [curve for setting in settings for curve in setting.curves]
    return target_ladder(curves, num_targets=NUM_TARGETS) if curves else ()
