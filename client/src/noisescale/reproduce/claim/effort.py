"""How much is spent on a task: seeds, batch sizes and the tasks themselves, for the quick and for the full variant."""

from dataclasses import dataclass

from noisescale.reproduce.registry import OWN

LABEL_NOISE = frozenset({"digits_labelnoise", "digits_labelnoise9"})
"""Tasks whose gradient is nearly all noise: they widen the span, so figures are given with and without them."""

LEFT_OUT = {
    "charlm_transformer": "slow, as its gradients come from autograd; name it with --tasks",
    "diabetes_linreg": "not built; its targets are met in a few steps, where the theory does not hold",
    "cartpole_pg": "not built; its environment has no stacked form",
}
"""Tasks that do not run unless they are asked for, and why."""

CONVEX = frozenset({"iris_softmax", "digits_softmax", "cancer_logistic"})
CHARACTERS = frozenset({"char_bigram", "char_bigram_adam", "charlm_mlp", "charlm_mlp_adam"})


@dataclass(frozen=True, slots=True)
class Effort:
    """What a variant spends.

    Attributes:
        name: Of the variant.
        convex_seeds: Repeats of small convex tasks, whose steps scatter most.
        network_seeds: Repeats of small networks.
        character_seeds: Repeats of character models.
        batch_ratio: From one batch size to the next.
        reach: The batch sizes go to B_crit over and times this factor.
        widest: Largest batch size, in examples.
        watched_steps: Steps of all seeds at one setting up to which more seeds are watched while windows are open.
    """

    name: str
    convex_seeds: int
    network_seeds: int
    character_seeds: int
    batch_ratio: int
    reach: float
    widest: int
    watched_steps: int

    def num_seeds(self, task: str) -> int:
        """Repeats of each setting of a task."""
        if task in CONVEX:
            return self.convex_seeds
        return self.character_seeds if task in CHARACTERS else self.network_seeds


QUICK = Effort(
    "quick",
    convex_seeds=8,
    network_seeds=3,
    character_seeds=2,
    batch_ratio=4,
    reach=3.0,
    widest=4096,
    watched_steps=800,
)
FULL = Effort(
    "full",
    convex_seeds=16,
    network_seeds=4,
    character_seeds=3,
    batch_ratio=2,
    reach=5.0,
    widest=8192,
    watched_steps=4000,
)
EFFORTS = {effort.name: effort for effort in (QUICK, FULL)}


def group_of(task: str) -> str:
    """Group by which the figures are told apart: "own", "label_noise" or "listed"."""
    if task in OWN:
        return "own"
    return "label_noise" if task in LABEL_NOISE else "listed"
