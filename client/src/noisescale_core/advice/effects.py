"""What a batch would change: steps, examples, efficiencies, and the learning rate that goes with it."""

from typing import Literal

from noisescale_core.advice.parts.parts import (
    Interval,
    LearningRateAdvice,
    NowAndThen,
    Predicted,
    RunSetting,
    RunSoFar,
    Share,
)
from noisescale_core.advice.words import of_a_run as wording
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate
from noisescale_core.theory import learning_rate, trade_off


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
