"""How much is spent on a task: seeds, batch sizes and the tasks themselves, for the quick and for the full variant."""

from dataclasses import dataclass

from noisescale_lab.reproduce.registry import ALL, OTHER_SIZES, OWN

LABEL_NOISE = frozenset({"digits_labelnoise", "digits_labelnoise9"})
"""Tasks whose gradient is nearly all noise: they widen the span, so figures are given with and without them."""

_FOR_ITS_TIME = "left out of --quick for its time; name it with --tasks"
LEFT_OUT_OF_QUICK = {
    "charlm_transformer": _FOR_ITS_TIME,
    "cartpole_pg": _FOR_ITS_TIME,
    "charlm_mlp": _FOR_ITS_TIME,
    "charlm_mlp_adam": _FOR_ITS_TIME,
    "digits_labelnoise9": _FOR_ITS_TIME,
    "digits_mlp_16": "left out of --quick with the comparison of sizes",
    "digits_mlp_256": "left out of --quick with the comparison of sizes",
}
"""Tasks of the full run alone, and why; for their time: all that take longer than forty seconds of a core, whether
they agree well or not."""

CARTPOLE_SEEDS = 24
"""Episodes are luck: its curves scatter more than any other task's."""

SHORT = frozenset(
    {"iris_softmax", "digits_softmax", "cancer_logistic", "diabetes_linreg", "powerlaw_regression", "img_nextpixel"}
)
CHARACTERS = frozenset({"charlm_mlp", "charlm_mlp_adam", "charlm_transformer"})


@dataclass(frozen=True, slots=True)
class Effort:
    """What a variant spends.

    Attributes:
        name: Of the variant.
        short_seeds: Repeats of convex and of short tasks, whose steps scatter most.
        network_seeds: Repeats of small networks and of tables of characters.
        character_seeds: Repeats of character models with hidden layers.
        batch_ratio: From one batch size to the next on the way out.
        reach: The batch sizes go to B_crit over and times this factor.
        num_batches: Fewest batch sizes; with three, one degree of freedom is left, and intervals are as good as open.
        widest: Largest batch size, in examples.
        watched_steps: Steps of all seeds at one setting up to which more seeds are watched while few windows are clear.
    """

    name: str
    short_seeds: int
    network_seeds: int
    character_seeds: int
    batch_ratio: int
    reach: float
    num_batches: int
    widest: int
    watched_steps: int

    def num_seeds(self, task: str) -> int:
        """Repeats of each setting of a task."""
        if task in SHORT:
            return self.short_seeds
        if task == "cartpole_pg":
            return CARTPOLE_SEEDS
        return self.character_seeds if task in CHARACTERS else self.network_seeds


QUICK = Effort(
    "quick",
    short_seeds=10,
    network_seeds=4,
    character_seeds=2,
    batch_ratio=4,
    reach=3.0,
    num_batches=5,
    widest=4096,
    watched_steps=800,
)
FULL = Effort(
    "full",
    short_seeds=32,
    network_seeds=6,
    character_seeds=3,
    batch_ratio=2,
    reach=4.0,
    num_batches=5,
    widest=8192,
    watched_steps=4000,
)


def usual_tasks(effort: str) -> tuple[str, ...]:
    """Names of the tasks that run unless others are named."""
    left_out = LEFT_OUT_OF_QUICK if effort == QUICK.name else {}
    return tuple(sorted(set(ALL) - set(left_out)))


EFFORTS = {effort.name: effort for effort in (QUICK, FULL)}


def group_of(task: str) -> str:
    """Group by which the figures are told apart: "own", "label_noise", "listed", or "size", which is in none."""
    if task in OTHER_SIZES:
        return "size"
    if task in OWN:
        return "own"
    return "label_noise" if task in LABEL_NOISE else "listed"
