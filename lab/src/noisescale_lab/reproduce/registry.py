"""All tasks by name, and which of them policies may be designed on.

The split was written down before any noise scale of a held-out task was looked at. A policy is designed on the design
tasks and on seeds of their own, then run once on the held-out tasks with other seeds.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from noisescale_lab.reproduce.stacked.optimizers import ADAM, MOMENTUM, Optimizer
from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.tasks import cartpole, digits, made_up_data, photographs, small_tables, text, transformer

DESIGN: dict[str, Callable[[], Task]] = {
    "iris_softmax": small_tables.iris_softmax,
    "digits_softmax": digits.softmax,
    "digits_mlp": digits.mlp,
    "digits_labelnoise": digits.seven_in_ten,
    "digits_ae_adam": digits.autoencoder,
    "char_bigram": text.bigram_with_sgd,
    "charlm_mlp_adam": text.mlp_with_adam,
    "img_nextpixel": photographs.next_pixel,
}

HELD_OUT: dict[str, Callable[[], Task]] = {
    "charlm_mlp": text.mlp_with_sgd,
    "char_bigram_adam": text.bigram_with_adam,
    "digits_labelnoise9": digits.nine_in_ten,
    "digits_vae_adam": digits.variational_autoencoder,
    "charlm_transformer": transformer.charlm_transformer,
    "cancer_logistic": small_tables.cancer_logistic,
    "teacher_student": made_up_data.teacher_student,
    "patches_ae_adam": photographs.patches_autoencoder,
    "digits_deep_adam": digits.deep,
    "powerlaw_regression": made_up_data.powerlaw_regression,
}

OWN = frozenset({"cancer_logistic", "teacher_student", "patches_ae_adam", "digits_deep_adam", "powerlaw_regression"})
"""Tasks of ours, chosen and frozen before their noise scale was looked at."""

CLAIM_ONLY: dict[str, Callable[[], Task]] = {
    "diabetes_linreg": small_tables.diabetes_linreg,
    "cartpole_pg": cartpole.task,
}
"""Tasks that no policy is replayed on: one is over in a few steps, the other's examples depend on its weights."""

LONG: dict[str, Callable[[], Task]] = {
    "charlm_long_adamw": transformer.charlm_long,
    "denoiser_momentum": photographs.denoiser,
    "charlm_finetuned_adamw": transformer.charlm_finetuned,
    "powerlaw_long": made_up_data.long_powerlaw,
}
"""Held out, too: tuned runs of about a thousand steps and more; but for the last with warm-up, noise from small
batches, and an optimizer that no policy was designed on."""

OTHER_SIZES: dict[str, Callable[[], Task]] = {"digits_mlp_16": digits.narrow, "digits_mlp_256": digits.wide}
"""`digits_mlp` narrower and wider, to tell a model's size from its loss; they are no tasks of their own."""

ALL = DESIGN | HELD_OUT | CLAIM_ONLY | OTHER_SIZES

ADVICE_TARGETS = {
    "digits_softmax": 0.12,
    "digits_mlp": 0.1,
    "digits_labelnoise": 2.11,
    "digits_ae_adam": 0.06,
    "char_bigram": 2.6,
    "charlm_mlp_adam": 2.6,
    "img_nextpixel": 0.045,
    "charlm_mlp": 2.65,
    "digits_labelnoise9": 2.285,
    "cancer_logistic": 0.05,
    "teacher_student": 0.3,
    "patches_ae_adam": 0.035,
    "digits_deep_adam": 0.05,
    "powerlaw_regression": 0.27,
}
"""Evaluation loss that runs with advice must reach: far enough for advice to matter, near enough for many repetitions.

Chosen from loss curves alone. Some are harder than a task's own targets, which a tuned run meets within ten steps. Not
listed: tasks whose best run takes fewer than 30 steps even to a hard target (iris_softmax 13, char_bigram_adam 15),
which leaves no room for advice; and those that have no sweep yet (digits_vae_adam, charlm_transformer)."""

LONG_TARGETS = {
    "charlm_long_adamw": 2.24,
    "denoiser_momentum": 0.0365,
    "charlm_finetuned_adamw": 1.82,
    "powerlaw_long": 0.268,
}
"""The same for long runs, chosen from loss curves alone."""

PRICES = {"charlm_long_adamw": 1 / 1000, "charlm_finetuned_adamw": 1 / 1000}
"""r over B_crit of tasks whose B_crit is so large that their best run at r = B_crit is short: where examples are dear,
small batches and many steps are best."""


def with_optimizer(name: str, optimizer: Optimizer) -> Task:
    """A task trained by another optimizer.

    Args:
        name: Of the task.
        optimizer: Instead of its own.
    """
    return replace(ALL[name](), name=f"{name}_by_{optimizer.name}", optimizer=optimizer)


BY_OTHER_OPTIMIZERS: dict[str, Callable[[], Task]] = {
    f"{name}_by_{optimizer.name}": partial(with_optimizer, name, optimizer)
    for name in ADVICE_TARGETS
    if name in DESIGN
    for optimizer in (MOMENTUM, ADAM)
    if not name.endswith("_adam")
}
"""Design tasks under optimizers that they do not have, for what is fitted by family of optimizers."""

EVERY = ALL | LONG | BY_OTHER_OPTIMIZERS
"""All tasks that runs with advice may be replayed on."""

TARGETS = (
    ADVICE_TARGETS | LONG_TARGETS | {name: ADVICE_TARGETS[name.rpartition("_by_")[0]] for name in BY_OTHER_OPTIMIZERS}
)
"""Of these."""
