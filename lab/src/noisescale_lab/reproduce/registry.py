"""All tasks by name, and which of them policies may be designed on.

The split was written down before any noise scale of a held-out task was looked at. A policy is designed on the design
tasks and on seeds of their own, then run once on the held-out tasks with other seeds.
"""

from collections.abc import Callable

from noisescale_lab.reproduce.task import Task
from noisescale_lab.reproduce.tasks import (
    cancer_logistic,
    cartpole_pg,
    diabetes_linreg,
    digits_ae_adam,
    digits_deep_adam,
    digits_labelnoise,
    digits_mlp,
    digits_softmax,
    digits_vae_adam,
    img_nextpixel,
    iris_softmax,
    patches_ae_adam,
    powerlaw_regression,
    teacher_student,
)
from noisescale_lab.reproduce.tasks.text import char_bigram, charlm_mlp, charlm_transformer

DESIGN: dict[str, Callable[[], Task]] = {
    "iris_softmax": iris_softmax.task,
    "digits_softmax": digits_softmax.task,
    "digits_mlp": digits_mlp.task,
    "digits_labelnoise": digits_labelnoise.seven_in_ten,
    "digits_ae_adam": digits_ae_adam.task,
    "char_bigram": char_bigram.with_sgd,
    "charlm_mlp_adam": charlm_mlp.with_adam,
    "img_nextpixel": img_nextpixel.task,
}

HELD_OUT: dict[str, Callable[[], Task]] = {
    "charlm_mlp": charlm_mlp.with_sgd,
    "char_bigram_adam": char_bigram.with_adam,
    "digits_labelnoise9": digits_labelnoise.nine_in_ten,
    "digits_vae_adam": digits_vae_adam.task,
    "charlm_transformer": charlm_transformer.task,
    "cancer_logistic": cancer_logistic.task,
    "teacher_student": teacher_student.task,
    "patches_ae_adam": patches_ae_adam.task,
    "digits_deep_adam": digits_deep_adam.task,
    "powerlaw_regression": powerlaw_regression.task,
}

OWN = frozenset({"cancer_logistic", "teacher_student", "patches_ae_adam", "digits_deep_adam", "powerlaw_regression"})
"""Tasks of ours, chosen and frozen before their noise scale was looked at."""

CLAIM_ONLY: dict[str, Callable[[], Task]] = {
    "diabetes_linreg": diabetes_linreg.task,
    "cartpole_pg": cartpole_pg.task,
}
"""Tasks that no policy is replayed on: one is over in a few steps, the other's examples depend on its weights."""

OTHER_SIZES: dict[str, Callable[[], Task]] = {"digits_mlp_16": digits_mlp.narrow, "digits_mlp_256": digits_mlp.wide}
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
