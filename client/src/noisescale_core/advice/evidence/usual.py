"""What is usual of a critical batch before a run is measured: it lies near the batch in use.

Of a language model that is trained from scratch the planned tokens say more (`theory/language_models.py`). Published
tasks of other families say less than the batch in use: the critical batches of Table 1's four image classifiers alone
lie a factor of 75 apart (McCandlish et al. 2018, arXiv:1812.06162).
"""

import math
from dataclasses import dataclass

from noisescale_core.advice.parts.parts import RunSetting
from noisescale_core.theory.language_models import DEGREES_OF_FREEDOM, MOST_TOKENS, LanguageModel
from noisescale_core.theory.learning_rate import RuleFamily, family_of

USUAL_LOG_SD = 2.5
"""Standard deviation of ln B_crit about the batch that is trained with: 95 % within × / ÷ 130.

It keeps a noise scale that is hardly known from asking for a batch without bound, and hardly moves one that is known;
about the present batch the same advice follows in whatever unit examples are counted (decision 0025)."""

LANGUAGE_MODELS = ("language", "language model", "language models", "language modeling", "language modelling", "llm")
"""Families of tasks that are taken for language models trained from scratch."""

FLOOR_REACH = (4e9, 1e11)
"""Planned tokens between which a batch with the fewest tokens to a loss is published."""


@dataclass(frozen=True, slots=True)
class Usual:
    """A distribution of ln B_crit.

    Attributes:
        log_mean: Its middle, B_crit in examples.
        log_scale: Its scale.
        degrees_of_freedom: Of Student's t; infinite for a normal one.
    """

    log_mean: float
    log_scale: float
    degrees_of_freedom: float = math.inf

    def log_density(self, log_critical: float) -> float:
        """But for a constant.

        Args:
            log_critical: ln B_crit.
        """
        far = ((log_critical - self.log_mean) / self.log_scale) ** 2
        if math.isinf(self.degrees_of_freedom):
            return -0.5 * far
        return -0.5 * (self.degrees_of_freedom + 1) * math.log1p(far / self.degrees_of_freedom)


@dataclass(frozen=True, slots=True)
class Law:
    """What the planned tokens of a language model say.

    Attributes:
        tokens: Planned.
        usual: Of B_crit.
        floor: Batch in examples below which examples are lost again; 0 where none is published.
    """

    tokens: float
    usual: Usual
    floor: float


def near(batch_size: float) -> Usual:
    """What is usual about the batch in use.

    Args:
        batch_size: In examples.
    """
    return Usual(math.log(batch_size), USUAL_LOG_SD)


def law_of(run: RunSetting) -> Law | None:
    """What published language models say of a run; None where it is not said to be one, or without a plan.

    Args:
        run: Of the family `language`, counted in tokens, by Adam or a relative, with planned steps.
    """
    tokens = planned_tokens(run)
    if tokens is None or run.batch_size is None:
        return None
    model = LanguageModel(tokens)
    critical = model.critical_batch(run.batch_size * run.units_per_example) / run.units_per_example
    floor = model.floor / run.units_per_example if FLOOR_REACH[0] <= tokens <= FLOOR_REACH[1] else 0.0
    return Law(tokens, Usual(math.log(critical), model.uncertainty, DEGREES_OF_FREEDOM), floor)


def planned_tokens(run: RunSetting) -> float | None:
    """The tokens that a language model is trained on; None where the run is not said to be one, or has no plan.

    Args:
        run: As it stands.
    """
    is_one = (run.family or "").strip().lower() in LANGUAGE_MODELS and "token" in run.unit.lower()
    if not is_one or family_of(run.optimizer) is not RuleFamily.ADAM or not run.planned_steps or not run.batch_size:
        return None
    tokens = run.planned_steps * run.batch_size * run.units_per_example
    return tokens if 1 <= tokens <= MOST_TOKENS else None
