"""The first version of our policy, as what the present one is compared with."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from noisescale_lab.follow.actions import Action, RunState
from noisescale_lab.reproduce.advice.first.first_policy import advise
from noisescale_lab.reproduce.advice.first.first_policy_memory import FirstPolicyMemory, FirstPolicySettings
from noisescale_lab.reproduce.advice.run import Policy


@dataclass
class FirstVersion:
    """Keeps the memory that the pure policy asks for."""

    settings: FirstPolicySettings = field(default_factory=FirstPolicySettings)
    memory: FirstPolicyMemory | None = None
    rescues = True

    def decide(self, view: RunState) -> Action:
        """What to do next."""
        memory = self.memory or FirstPolicyMemory.at_start(
            batch=view.batch, learning_rate=view.learning_rate, settings=self.settings
        )
        action, self.memory = advise(view, memory, self.settings)
        return action


PERMITTED = FirstPolicySettings(may_extend=True)

FIRST: dict[str, Callable[[], Policy]] = {
    "first version": lambda: FirstVersion(PERMITTED),
    "first version without branches": lambda: FirstVersion(replace(PERMITTED, may_branch=False)),
}
