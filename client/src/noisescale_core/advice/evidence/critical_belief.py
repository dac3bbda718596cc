"""What a noise scale says of the critical batch: B_crit = κ φ with κ known by its spread, and what is usual before."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul
from typing import TYPE_CHECKING

from noisescale_core.estimators.belief import Belief
from noisescale_core.theory.intervals import Estimate, LogError
from noisescale_core.theory.language_models import DEGREES_OF_FREEDOM, MOST_TOKENS, LanguageModel
from noisescale_core.theory.learning_rate import RuleFamily, family_of

if TYPE_CHECKING:
    from noisescale_core.advice.parts.parts import RunSetting


SMALLEST, LARGEST = 1e-9, 1e15
"""Batches and noise scales beyond these plan nothing; only vanished gradients get there."""

USUAL_LOG_SD = 2.5
"""Standard deviation of ln B_crit about the batch that is trained with: 95 % within × / ÷ 130.

It keeps a noise scale that is hardly known from asking for a batch without bound, and hardly moves one that is known;
about the present batch the same advice follows in whatever unit examples are counted (decision 0025)."""

LANGUAGE_MODELS = ("language", "language model", "language models", "language modeling", "language modelling", "llm")
"""Families of tasks that are taken for language models trained from scratch."""

FLOOR_REACH = (4e9, 1e11)
"""Planned tokens between which a batch with the fewest tokens to a loss is published."""

COARSEST, FINEST = 0.2, 0.05
"""Spacing of the grid of ln B_crit, a quarter of κ's standard deviation between these."""

FAR = 1e9
"""Times B_crit: where an end is open."""

REACH = 8.0
"""Of the grid to either side, in scales."""

LEVEL = 0.95


# What is usual of a critical batch before a run is measured: it lies near the batch in use.
#
# Of a language model that is trained from scratch the planned tokens say more (`theory/language_models.py`). Published
# tasks of other families say less than the batch in use: the critical batches of Table 1's four image classifiers alone
# lie a factor of 75 apart (McCandlish et al. 2018, arXiv:1812.06162).


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


def law_of(run: "RunSetting") -> Law | None:
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


def planned_tokens(run: "RunSetting") -> float | None:
    """The tokens that a language model is trained on; None where the run is not said to be one, or has no plan.

    Args:
        run: As it stands.
    """
    is_one = (run.family or "").strip().lower() in LANGUAGE_MODELS and "token" in run.unit.lower()
    if not is_one or family_of(run.optimizer) is not RuleFamily.ADAM or not run.planned_steps or not run.batch_size:
        return None
    tokens = run.planned_steps * run.batch_size * run.units_per_example
    return tokens if 1 <= tokens <= MOST_TOKENS else None


@dataclass(frozen=True, slots=True)
class Critical:
    """The critical batch of a run, in examples.

    Attributes:
        estimate: Its median with the interval that is shown.
        belief: How likely each value is, for odds and choices.
        floor: Batch in examples below which examples are lost again; 0 where none is known.
    """

    estimate: Estimate
    belief: Belief
    floor: float = 0.0


def critical_belief(noise_scale: Belief, *, log_mean: float, log_sd: float, usual: Sequence[Usual]) -> Belief:
    """The belief about B_crit.

    Args:
        noise_scale: The belief about φ, in examples.
        log_mean: Mean of ln κ.
        log_sd: Standard deviation of ln κ.
        usual: What is known of B_crit besides.
    """
    spacing = min(COARSEST, max(FINEST, log_sd / 4))
    phi = noise_scale.resampled(spacing)
    reach = math.ceil(5 * log_sd / spacing)
    kernel = [math.exp(-0.5 * (spacing * place / log_sd) ** 2) for place in range(-reach, reach + 1)]
    around = [*[0.0] * (2 * reach), *phi.weights, *[0.0] * (2 * reach)]
    start = phi.start + log_mean - spacing * reach
    logs = []
    for place in range(len(phi.weights) + 2 * reach):
        spread = sum(map(mul, kernel, around[place : place + len(kernel)]))
        before = math.fsum([one.log_density(start + spacing * place) for one in usual])
        logs.append((math.log(spread) if spread else -math.inf) + before)
    return Belief.of_logarithms(start, spacing, logs)


def critical_of(
    noise_scale: Belief,
    *,
    log_mean: float,
    odds_log_sd: float,
    shown_log_sd: float,
    usual: Sequence[Usual],
    floor: float = 0.0,
) -> Critical:
    """B_crit with its shown interval, whose statistical part is that of the noise scale alone.

    Args:
        noise_scale: The belief about φ, in examples.
        log_mean: Mean of ln κ.
        odds_log_sd: Its standard deviation for odds.
        shown_log_sd: For the interval, no smaller.
        usual: What is known of B_crit besides.
        floor: Batch in examples below which examples are lost again.
    """
    belief = critical_belief(noise_scale, log_mean=log_mean, log_sd=odds_log_sd, usual=usual)
    shown = belief
    if shown_log_sd != odds_log_sd:
        shown = critical_belief(noise_scale, log_mean=log_mean, log_sd=shown_log_sd, usual=usual)
    value = belief.quantile(0.5)
    whole = _distances(shown, value)
    # what is usual narrows a noise scale that is hardly known, so the part must not exceed the whole
    ends = zip(_distances(noise_scale, noise_scale.quantile(0.5)), whole, strict=True)
    measured = [min(own, both) for own, both in ends]
    model = [math.sqrt(max(0.0, both**2 - own**2)) for own, both in zip(measured, whole, strict=True)]
    return Critical(Estimate(value, LogError(*measured), LogError(*model), LEVEL), belief, floor)


def expected_critical(usual: Sequence[Usual], *, floor: float = 0.0) -> Critical:
    """B_crit before anything is measured.

    Args:
        usual: What is known of it, at least one.
        floor: Batch in examples below which examples are lost again.
    """
    low = min(one.log_mean - REACH * one.log_scale for one in usual)
    high = max(one.log_mean + REACH * one.log_scale for one in usual)
    places = range(math.ceil((high - low) / COARSEST) + 1)
    logs = [math.fsum(one.log_density(low + COARSEST * place) for one in usual) for place in places]
    belief = Belief.of_logarithms(low, COARSEST, logs)
    value = belief.quantile(0.5)
    return Critical(Estimate(value, LogError(0.0, 0.0), LogError(*_distances(belief, value)), LEVEL), belief, floor)


def stated_critical(estimate: Estimate) -> Critical:
    """B_crit as somebody said it, as a normal on the log scale to either side.

    Args:
        estimate: With its interval; an open end is far enough away to matter to no batch.
    """
    found = estimate.interval
    return Critical(
        estimate, Belief.of_interval(found.value, found.low, min(found.high, found.value * FAR), found.level)
    )


def _distances(belief: Belief, value: float) -> list[float]:
    """From the value down and up to the ends of the interval, on the log scale."""
    low, high = belief.quantile(0.5 - LEVEL / 2), belief.quantile(0.5 + LEVEL / 2)
    return [max(0.0, math.log(value / low)), max(0.0, math.log(high / value))]
