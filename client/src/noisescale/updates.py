"""One optimizer step as it is recorded: its two terms, or the flag that says why there are none."""

import math
from collections.abc import Sequence
from typing import NamedTuple, SupportsFloat

from noisescale.capture.step_norms import StepNorms
from noisescale.errors import ConfigError
from noisescale.estimators.flags import Flags
from noisescale.estimators.heterogeneity import are_duplicates
from noisescale.estimators.noise_scale import (
    Terms,
    from_equally_weighted_groups,
    from_unequal_groups,
    robust_grad_sq_norm,
    two_batch,
)

MAX_TERM = 1e70
"""The server takes sums up to 1e75; a gradient of this size has diverged long ago."""

ROUNDING = 1e-2
"""A gradient in 16 bits is this much too long at most where all its small batches are the same."""

ROUNDED = 0.1
"""Share of its squared norm that the sum of equal 16-bit gradients loses or gains by rounding: 0.04 after 256."""

VANISHED = 1e-8
"""The square of the smallest loss scale that is noticed, 1e4, inverted; scalers begin at 65,536."""


# The two that every logged step makes are tuples: frozen dataclasses cost the training thread three times as much.
class LoggedStep(NamedTuple):
    """What the host knows when a step is logged.

    Attributes:
        step: Number of the optimizer step, from 0.
        wall_time: Unix seconds.
        lr: Learning rate; None where unknown.
        examples: Cumulative examples of the run, this step included; None where unknown.
        num_steps: Optimizer steps that the watch had seen before.
        is_measured: Gradients were looked at in this step.
    """

    step: int
    wall_time: float
    lr: float | None = None
    examples: int | None = None
    num_steps: int = 0
    is_measured: bool = True

    def counted(self, examples: int | None) -> "LoggedStep":
        """The same step with the examples of the run up to here."""
        return LoggedStep(self.step, self.wall_time, self.lr, examples, self.num_steps, self.is_measured)


class Update(NamedTuple):
    """One optimizer step.

    Attributes:
        logged: When and where.
        num_micro_batches: Small batches in the step.
        micro_batch_size: Mean examples of a small batch.
        global_batch: Examples of the step.
        terms: tr Σ and |G|²; None where a flag says why.
        layers: The same per layer, in the order of the watched groups; empty without terms.
        loss: Finite, or None.
        flags: Bits of `Flags`.
    """

    logged: LoggedStep
    num_micro_batches: int
    micro_batch_size: float | None
    global_batch: float | None
    terms: Terms | None
    layers: Sequence[Terms]
    loss: float | None
    flags: int


def update_from_norms(logged: LoggedStep, norms: StepNorms) -> Update:
    """The update of a watched step."""
    sizes = norms.sizes
    flags = _flags_of_sizes(norms)
    is_matched = norms.adds_up and not has_vanished(norms) and not is_too_large(norms)
    if not is_matched:
        flags |= Flags.UNMATCHED_GRADIENT
    layers: list[Terms] = []
    if norms.weighted_sq_norms and is_matched:
        if has_duplicates(norms):
            flags |= Flags.DUPLICATED_SMALL_BATCHES
        else:
            layers = terms_of_columns(norms)
        if layers and not has_finite_squares(layers[0]):
            layers, flags = [], flags | Flags.NONFINITE_GRADIENT
    micro_batch_size = sizes.batch_size / sizes.num_small_batches if sizes.batch_size and layers else None
    return _update(logged, sizes.num_small_batches, micro_batch_size, sizes.batch_size, layers, norms.loss, flags)


def _flags_of_sizes(norms: StepNorms) -> int:
    sizes = norms.sizes
    flags = 0  # and not Flags(0): most steps have none, and arithmetic with enumerations is slow
    if norms.reason is not None:
        pass  # it is unmatched, and a backward whose parts are not known is no fault of the loop
    elif sizes.num_small_batches == 0:
        flags |= Flags.NO_BACKWARD
    elif sizes.num_small_batches == 1:
        flags |= Flags.ONE_SMALL_BATCH
    if sizes.batch_size is None:
        flags |= Flags.BATCH_SIZE_UNKNOWN
    if not sizes.are_equal:
        flags |= Flags.UNEQUAL_MICRO_BATCHES
        if norms.weighting == "equal":
            flags |= Flags.WEIGHTING_MISMATCH
    if norms.is_coupled and (sizes.batch_size is None or sizes.batch_size > sizes.num_small_batches):
        flags |= Flags.COUPLED_EXAMPLES
    if norms.is_compressed:
        flags |= Flags.COMPRESSED_GRADIENT
    if norms.is_partial:
        flags |= Flags.PARTIAL_GRADIENTS
    if norms.is_proxy:
        flags |= Flags.LAYER_NORM_PROXY
    return flags


def terms_of_columns(norms: StepNorms) -> list[Terms]:
    """The terms of all parameters, then of each group; norms of at least two small batches and a known batch size."""
    sizes = norms.sizes
    assert sizes.batch_size is not None
    if norms.weighting == "equal" and sizes.mean_inverse_size is not None:
        return [
            from_equally_weighted_groups(
                mean_sq_norm=weighted_sq_norm,
                big_sq_norm=big_sq_norm,
                num_groups=sizes.num_small_batches,
                mean_inverse_size=sizes.mean_inverse_size,
            )
            for weighted_sq_norm, big_sq_norm in zip(norms.weighted_sq_norms, norms.big_sq_norms, strict=True)
        ]
    layers = [
        from_unequal_groups(
            weighted_sq_norm=weighted_sq_norm,
            big_sq_norm=big_sq_norm,
            num_groups=sizes.num_small_batches,
            batch_size=sizes.batch_size,
        )
        for weighted_sq_norm, big_sq_norm in zip(norms.weighted_sq_norms, norms.big_sq_norms, strict=True)
    ]
    if sizes.sum_of_sq_sizes is None:
        return layers
    # From products of different groups alone: free of the error of tr Σ, which heavy tails make large.
    unit = sizes.batch_size**2
    return [
        Terms(
            terms.trace_cov,
            robust_grad_sq_norm(
                sum_sq_norm=unit * big_sq_norm,
                sum_of_sq_norms=unit * contributed,
                batch_size=sizes.batch_size,
                sum_of_sq_sizes=sizes.sum_of_sq_sizes,
            ),
        )
        for terms, big_sq_norm, contributed in zip(layers, norms.big_sq_norms, norms.contribution_sq_norms, strict=True)
    ]


def update_from_two_batches(
    logged: LoggedStep,
    *,
    small_batch_size: float,
    big_batch_size: float,
    sq_norms: Sequence[tuple[float, float]],
    num_small: int | None,
    loss: float | None,
) -> Update:
    """The update of a step whose norms the caller measured; sizes as in `two_batch`.

    Args:
        logged: When and where.
        small_batch_size: Examples per small batch.
        big_batch_size: Examples of the step.
        sq_norms: (small_sq_norm, big_sq_norm) of all parameters, then of each layer.
        num_small: Small batches in the step; None: as the sizes say.
        loss: Of the step.

    Raises:
        ConfigError: For a negative squared norm.
    """
    for small_sq_norm, big_sq_norm in sq_norms:
        if small_sq_norm < 0 or big_sq_norm < 0:
            raise ConfigError(f"squared norms must not be negative, got {small_sq_norm:g} and {big_sq_norm:g}")
    flags = 0
    layers: list[Terms] = []
    num_micro_batches = round(big_batch_size / small_batch_size) if num_small is None else num_small
    if small_batch_size == big_batch_size:
        flags |= Flags.ONE_SMALL_BATCH
    else:
        layers = [
            two_batch(
                small_sq_norm=small_sq_norm,
                big_sq_norm=big_sq_norm,
                small_batch_size=small_batch_size,
                big_batch_size=big_batch_size,
            )
            for small_sq_norm, big_sq_norm in sq_norms
        ]
        if not all(map(has_finite_squares, layers)):
            layers, flags = [], flags | Flags.NONFINITE_GRADIENT
    return _update(logged, num_micro_batches, small_batch_size, big_batch_size, layers, loss, flags)


def update_from_terms(
    logged: LoggedStep, terms: Terms, *, num_small: int, batch_size: float, loss: float | None
) -> Update:
    """The update of a step whose terms are known already; without any where they are not finite."""
    is_finite = has_finite_squares(terms)
    return _update(
        logged,
        num_small,
        batch_size / num_small,
        batch_size,
        [terms] if is_finite else [],
        loss,
        0 if is_finite else Flags.NONFINITE_GRADIENT,
    )


def update_without_norms(logged: LoggedStep, batch_size: float | None, loss: float | None) -> Update:
    """The update of a step in which nothing was watched."""
    flags = Flags.NO_BACKWARD if batch_size else Flags.NO_BACKWARD | Flags.BATCH_SIZE_UNKNOWN
    return _update(logged, 0, None, batch_size, [], loss, flags)


def has_vanished(norms: StepNorms) -> bool:
    """Whether the gradient is far too small for its small batches: pure noise would leave |ḡ|² near W / K.

    So it looks after `GradScaler.unscale_()`, which is the one change that torch's own counter does not show.
    """
    if not norms.weighted_sq_norms:
        return False
    return norms.sizes.num_small_batches * norms.big_sq_norms[0] < VANISHED * norms.weighted_sq_norms[0]


def is_too_large(norms: StepNorms) -> bool:
    """Whether the gradient is longer than any mean of its small batches can be: |Σ p g|² ≤ Σ p |g|² (Jensen)."""
    if not norms.weighted_sq_norms:
        return False
    return norms.big_sq_norms[0] > (1 + ROUNDING) * norms.weighted_sq_norms[0]


def has_duplicates(norms: StepNorms) -> bool:
    """Whether all small batches of a step had the same gradient."""
    small, big = norms.weighted_sq_norms[0], norms.big_sq_norms[0]
    if norms.has_equal_norms and abs(small - big) <= ROUNDED * small:
        return small > 0
    return are_duplicates(small_sq_norm=small, big_sq_norm=big)


def plain_number(value: SupportsFloat) -> float:
    """The value as a float; a tensor is detached first, because one that requires a gradient would warn."""
    detach = getattr(value, "detach", None)
    return float(value if detach is None else detach())


def has_finite_squares(terms: Terms) -> bool:
    """Whether the terms are numbers whose squares can be added up in double precision."""
    return abs(terms.trace_cov) < MAX_TERM and abs(terms.grad_sq_norm) < MAX_TERM


def _update(
    logged: LoggedStep,
    num_micro_batches: int,
    micro_batch_size: float | None,
    global_batch: float | None,
    layers: list[Terms],
    loss: float | None,
    flags: int,
) -> Update:
    """An update whose first layer is the total."""
    is_nonfinite_loss = loss is not None and not math.isfinite(loss)
    return Update(
        logged,
        num_micro_batches,
        micro_batch_size,
        global_batch,
        layers[0] if layers else None,
        layers[1:],
        None if is_nonfinite_loss else loss,
        flags | Flags.NONFINITE_LOSS if is_nonfinite_loss else flags,
    )
