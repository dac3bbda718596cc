"""Which runs are replayed: from starts that are off in batch and rate, under which policies."""

from collections.abc import Callable, Sequence

from noisescale_lab.reproduce.advice.first.first_version import FIRST
from noisescale_lab.reproduce.advice.ours import OURS
from noisescale_lab.reproduce.advice.run import Policy, Start
from noisescale_lab.reproduce.advice.simple_policies import SIMPLE

POLICIES: dict[str, Callable[[], Policy]] = SIMPLE | FIRST | OURS
AT_DECAYING_RATE_ONLY = ("Seesaw", "keep, extend", "ours without extension")
AT_CONSTANT_RATE = tuple(name for name in POLICIES if name not in AT_DECAYING_RATE_ONLY)


def all_starts(seeds: Sequence[int], *, decays: bool) -> list[Start]:
    """Batch off by 8 either way or right, rate by 4 below to 2 above."""
    return [
        Start(batch, rate, seed, decays) for seed in seeds for batch in (1 / 8, 1, 8) for rate in (1 / 4, 1 / 2, 1, 2)
    ]
