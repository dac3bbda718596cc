"""What a batch would change: steps, examples, efficiencies, and the learning rate that goes with it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from noisescale_core.advice.limits.predictions import scaled
from noisescale_core.advice.parts.parts import (
    Interval,
    LearningRateAdvice,
    NowAndThen,
    Predicted,
    RunSetting,
    RunSoFar,
    Share,
    SpentPoint,
    Waste,
)
from noisescale_core.advice.words import of_a_run as wording
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate
from noisescale_core.theory import learning_rate, trade_off
from noisescale_core.theory.cost import SECONDS_PER_HOUR
from noisescale_core.theory.learning_rate import BatchChange, RuleFamily, family_of
from noisescale_core.theory.rescaling import Hyperparameters, Rescaling, rescale_all
from noisescale_core.theory.trade_off import step_efficiency

LARGEST_FACTOR = 1e6
"""No published rule was tried on a larger change of the batch."""

_SGD_NAMES = {"momentum": ("momentum",)}
_ADAM_NAMES = {
    "beta1": ("beta1", "adam_beta1"),
    "beta2": ("beta2", "adam_beta2"),
    "epsilon": ("epsilon", "adam_epsilon", "eps", "adam_eps"),
}
_ALL_NAMES = {"weight_decay": ("weight_decay",), "warmup_steps": ("warmup_steps", "warmup_iters", "lr_warmup_iters")}


# What to set with the recommended batch besides it, from what the run's config tells of its optimizer.


def rescaling(
    run: RunSetting, config: Mapping[str, Any], critical: Interval | None, to_batch: float | None
) -> Rescaling | None:
    """The whole set that goes with a batch; None without a learning rate, a batch or a rule that reaches so far.

    Args:
        run: As it stands.
        config: What the run was described with, by the names that trainers use; what it does not say is left out.
        critical: B_crit, in examples.
        to_batch: In examples.
    """
    rate, batch = run.learning_rate, run.batch_size
    if rate is None or not 0 < rate < math.inf or not batch or to_batch is None or critical is None:
        return None
    if not 1 / LARGEST_FACTOR < to_batch / batch < LARGEST_FACTOR:
        return None
    change = BatchChange(from_batch=batch, to_batch=to_batch, noise_scale=critical.value)
    return rescale_all(run.optimizer or "unknown", _hyperparameters(run.optimizer, rate, config), change)


def _hyperparameters(optimizer: str | None, rate: float, config: Mapping[str, Any]) -> Hyperparameters:
    family = family_of(optimizer)
    own = _SGD_NAMES if family is RuleFamily.SGD else _ADAM_NAMES if family is RuleFamily.ADAM else {}
    found = {
        field: next((config[name] for name in names if _is_usable(field, config.get(name))), None)
        for field, names in (own | _ALL_NAMES).items()
    }
    return Hyperparameters(learning_rate=rate, **found)


def _is_usable(field: str, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return False
    return value < 1 or field not in ("momentum", "beta1", "beta2")


# What a run has spent so far that smaller batches would not have needed.


def waste(spent: Sequence[SpentPoint], usd_spent: float | None, *, devices_stay: bool = False) -> Waste | None:
    """Examples so far that smaller batches would not have needed; None where no stretch has a bounded noise scale.

    Args:
        spent: The run so far, stretch by stretch.
        usd_spent: Its money; None without a price.
        devices_stay: The devices are what they are whatever the batch: then time and money do not go with examples.

    Source: an ideal step costs B + φ examples at batch B, φ of them unavoidable (McCandlish et al. 2018, appendix D.1).
    """
    all_examples = sum(point.examples for point in spent)
    known = [
        (p.examples, p.batch_size, p.value, p.low or 0.0, p.high)
        for p in spent
        if p.batch_size is not None and p.value is not None and p.high is not None
    ]
    covered = sum(examples for examples, *_ in known)
    if covered <= 0:
        return None
    value = sum(e * step_efficiency(phi, b) for e, b, phi, _, _ in known)
    least = sum(e * step_efficiency(high, b) for e, b, _, _, high in known)
    most = sum(e * step_efficiency(low, b) for e, b, _, low, _ in known)
    fraction = Interval(value / covered, least / covered, most / covered)
    usd = None if usd_spent is None or devices_stay else scaled(fraction, usd_spent)
    seconds = sum(point.seconds for point in spent if point.seconds)
    hours = scaled(fraction, seconds / SECONDS_PER_HOUR) if seconds and not devices_stay else None
    return Waste(Interval(value, least, most), fraction, covered / all_examples, usd, hours)


def predicted_factors(from_batch: float, to_batch: float, critical: Interval) -> Predicted:
    """Steps and examples to the same loss, relative to now, with the error of B_crit.

    Args:
        from_batch: In examples.
        to_batch: In examples.
        critical: B_crit.
    """

    def over(factor: Literal["steps", "examples"]) -> Interval:
        function = trade_off.steps_factor if factor == "steps" else trade_off.examples_factor
        value, *ends = (
            function(from_batch=from_batch, to_batch=to_batch, critical_batch=b)
            for b in (critical.value, critical.low, critical.high)
        )
        return Interval(value, min(ends), max(ends))

    return Predicted(steps_factor=over("steps"), examples_factor=over("examples"))


def now_and_then(share: Share, run: RunSoFar, to_batch: float) -> NowAndThen | None:
    """An efficiency at the present and the new batch; None while the noise scale has no value.

    Args:
        share: Which efficiency.
        run: As it stands.
        to_batch: In examples.
    """
    if run.batch_size is None:
        return None
    now, then = share_interval(share, run.noise_scale, run.batch_size), share_interval(share, run.noise_scale, to_batch)
    return NowAndThen(now, then) if now and then else None


def share_interval(share: Share, noise_scale: NoiseScaleEstimate, batch_size: float) -> Interval | None:
    """An efficiency at a batch size with its statistical interval; None while the noise scale has no value."""
    if noise_scale.value is None or noise_scale.high is None:
        return None
    ends = (share(noise_scale.low or 0.0, batch_size), share(noise_scale.high, batch_size))
    return Interval(share(noise_scale.value, batch_size), min(ends), max(ends))


def learning_rate_advice(run: RunSetting, critical: Interval | None, to_batch: float) -> LearningRateAdvice | None:
    """The learning rate that goes with a batch, by the optimizer's rule; None where the run logs none.

    Args:
        run: As it stands.
        critical: B_crit in examples; the rate is no surer than it.
        to_batch: In examples.
    """
    if run.learning_rate is None or run.batch_size is None or critical is None:
        return None
    rules = [
        learning_rate.rescale(optimizer=run.optimizer, from_batch=run.batch_size, to_batch=to_batch, noise_scale=value)
        for value in (critical.value, critical.low, critical.high)
    ]
    center, *ends = (run.learning_rate * rule.factor for rule in rules)
    return LearningRateAdvice(
        current=run.learning_rate,
        recommended=center,
        low=min(ends),
        high=max(ends),
        rule=rules[0].name,
        candidates=(center / 2, center, 2 * center),
        text=wording.learning_rate_text(run.optimizer, rules[0]),
    )
