"""Which runs are replayed: from starts that are off in batch and rate, under which policies."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from noisescale_lab.follow.actions import Action, RunState
from noisescale_lab.follow.memory import Memory, Settings
from noisescale_lab.follow.policy import advise
from noisescale_lab.reproduce.advice.first_policy import FIRST
from noisescale_lab.reproduce.advice.run import Policy, Start
from noisescale_lab.reproduce.advice.simple_policies import SIMPLE

# Our policy, `noisescale_lab.follow.policy`, with each of its parts switched off in turn.


@dataclass
class Ours:
    """Keeps the memory that the pure policy asks for."""

    settings: Settings = field(default_factory=Settings)
    memory: Memory | None = None
    rescues = True

    def decide(self, view: RunState) -> Action:
        """What to do next."""
        memory = self.memory or Memory.at_start(
            batch=view.batch, learning_rate=view.learning_rate, settings=self.settings
        )
        action, self.memory = advise(view, memory, self.settings)
        return action


PERMITTED = Settings(may_extend=True)

OURS: dict[str, Callable[[], Policy]] = {
    "ours": lambda: Ours(PERMITTED),
    "ours without undo": lambda: Ours(replace(PERMITTED, may_undo=False)),
    "ours without batch changes": lambda: Ours(replace(PERMITTED, may_change_batch=False)),
    "ours without rate changes": lambda: Ours(replace(PERMITTED, may_change_rate=False)),
    "ours without restarts": lambda: Ours(replace(PERMITTED, may_restart=False)),
    "ours without extension": lambda: Ours(replace(PERMITTED, may_extend=False)),
}


POLICIES: dict[str, Callable[[], Policy]] = SIMPLE | FIRST | OURS
AT_DECAYING_RATE_ONLY = ("Seesaw", "keep, extend", "ours without extension")
AT_CONSTANT_RATE = tuple(name for name in POLICIES if name not in AT_DECAYING_RATE_ONLY)


def all_starts(seeds: Sequence[int], *, decays: bool) -> list[Start]:
    """Batch off by 8 either way or right, rate by 4 below to 2 above."""
    return [
        Start(batch, rate, seed, decays) for seed in seeds for batch in (1 / 8, 1, 8) for rate in (1 / 4, 1 / 2, 1, 2)
    ]
