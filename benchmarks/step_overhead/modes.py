"""How a training can be watched, as arguments of `Run.watch()`."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field

from noisescale.options import Arithmetic
from noisescale.run.run import Run


@dataclass(frozen=True, slots=True)
class Mode:
    """One way to watch.

    Attributes:
        name: As results call it.
        options: Of `Run.watch()`.
    """

    name: str
    options: Mapping[str, object] = field(default_factory=dict)


MODES = (
    Mode("total", {"groups": "none"}),
    Mode("per layer"),
    Mode("accumulate", {"arithmetic": Arithmetic(accumulate="fp32")}),
    Mode("per example", {"small_batches": "per_example"}),
    Mode("overhead=0.01", {"overhead": 0.01}),
)


def why_not(mode: Mode) -> str:
    """Why a mode cannot be measured with the installed client; empty where it can."""
    known = inspect.signature(Run.watch).parameters
    missing = next((name for name in mode.options if name not in known), None)
    return "" if missing is None else f"watch() knows no {missing}="
