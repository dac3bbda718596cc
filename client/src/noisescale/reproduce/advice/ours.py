"""Our policy, `noisescale.theory.policy`, with each of its parts switched off in turn."""

from dataclasses import dataclass, field

from noisescale.theory.policy import Action, Memory, RunState, Settings, advise


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


OURS = {
    "ours": Ours,
    "ours without branches": lambda: Ours(Settings(may_branch=False)),
    "ours without batch changes": lambda: Ours(Settings(may_change_batch=False)),
    "ours without restarts": lambda: Ours(Settings(may_restart=False)),
}
