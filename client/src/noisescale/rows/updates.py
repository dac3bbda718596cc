"""One optimizer step as it is recorded: its two terms, or the flag that says why there are none."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, SupportsFloat

from noisescale.rows.row_parts import BELOW, LayerNorms, PathPart, TermsOf, are_all_below, packed_columns
from noisescale_core.errors import ConfigError
from noisescale_core.estimators.flags import Flags
from noisescale_core.estimators.heterogeneity import are_duplicates
from noisescale_core.estimators.noise_scale import (
    Terms,
    check_groups,
    check_two_batches,
    robust_grad_sq_norm,
    solve_equally_weighted_groups,
    solve_two_batches,
    solve_unequal_groups,
)

if TYPE_CHECKING:
    from noisescale.capture.sums.step_norms import StepNorms


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
        layers: What gives the same per layer, in the order of the watched groups; None without layers or terms.
        loss: Finite, or None.
        flags: Bits of `Flags`.
        path: What is new of the parameters' path; None where nothing is.
    """

    logged: LoggedStep
    num_micro_batches: int
    micro_batch_size: float | None
    global_batch: float | None
    terms: Terms | None
    layers: LayerNorms | None
    loss: float | None
    flags: int
    path: PathPart | None = None


def update_from_norms(logged: LoggedStep, norms: "StepNorms") -> Update:
    """The update of a watched step."""
    sizes = norms.sizes
    flags = _flags_of_sizes(norms)
    is_matched = norms.adds_up and not has_vanished(norms) and not is_too_large(norms)
    if not is_matched:
        flags |= Flags.UNMATCHED_GRADIENT
    terms: Terms | None = None
    layers: LayerNorms | None = None
    if norms.weighted_sq_norms and is_matched:
        if has_duplicates(norms):
            flags |= Flags.DUPLICATED_SMALL_BATCHES
        else:
            terms, layers = terms_and_layers(norms)
        if terms is not None and not has_finite_squares(terms):
            terms, layers, flags = None, None, flags | Flags.NONFINITE_GRADIENT
    micro_batch_size = sizes.batch_size / sizes.num_small_batches if sizes.batch_size and terms is not None else None
    return _update(
        logged, sizes.num_small_batches, micro_batch_size, sizes.batch_size, terms, layers, norms.loss, flags
    )


def _flags_of_sizes(norms: "StepNorms") -> int:
    sizes = norms.sizes
    flags = 0  # and not Flags(0): most steps have none, and arithmetic with enumerations is slow
    if norms.lacks_parts:
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


def terms_and_layers(norms: "StepNorms") -> tuple[Terms, LayerNorms]:
    """The terms of all parameters, and what gives those of each group.

    Raises:
        EstimationError: With fewer than two small batches or without a batch size.
    """
    sizes = norms.sizes
    num_groups, batch_size = sizes.num_small_batches, sizes.batch_size or 0.0
    check_groups(num_groups, batch_size)
    first, second = norms.weighted_sq_norms, norms.big_sq_norms
    terms_of: TermsOf = solve_unequal_groups
    of_sizes: tuple[float, float] = (num_groups, batch_size)
    if norms.weighting == "equal" and sizes.mean_inverse_size is not None:
        terms_of, of_sizes = solve_equally_weighted_groups, (num_groups, sizes.mean_inverse_size)
    elif sizes.sum_of_sq_sizes is not None:
        first, second = _robust_columns(norms, batch_size, sizes.sum_of_sq_sizes)
        terms_of, of_sizes = _as_they_are, (0.0, 0.0)
    return Terms(*terms_of(first[0], second[0], *of_sizes)), LayerNorms(terms_of, first[1:], second[1:], of_sizes)


def _robust_columns(norms: "StepNorms", batch_size: float, sum_of_sq_sizes: float) -> tuple[list[float], list[float]]:
    """Both terms of each column, |G|² from products of different groups alone.

    So it is free of the error of tr Σ, which heavy tails make large.
    """
    num_groups, unit = norms.sizes.num_small_batches, batch_size**2
    traces = [
        solve_unequal_groups(weighted_sq_norm, big_sq_norm, num_groups, batch_size)[0]
        for weighted_sq_norm, big_sq_norm in zip(norms.weighted_sq_norms, norms.big_sq_norms, strict=True)
    ]
    signals = [
        robust_grad_sq_norm(
            sum_sq_norm=unit * big_sq_norm,
            sum_of_sq_norms=unit * contributed,
            batch_size=batch_size,
            sum_of_sq_sizes=sum_of_sq_sizes,
        )
        for big_sq_norm, contributed in zip(norms.big_sq_norms, norms.contribution_sq_norms, strict=True)
    ]
    return traces, signals


def _as_they_are(trace_cov: float, grad_sq_norm: float, _: float, __: float) -> tuple[float, float]:
    """Columns that are terms already."""
    return trace_cov, grad_sq_norm


def update_from_two_batches(
    logged: LoggedStep,
    small_batch_size: float,
    big_batch_size: float,
    small_sq_norm: float,
    big_sq_norm: float,
    num_small: int,
    loss: float | None,
    layers: tuple[Sequence[float], Sequence[float]] | None = None,
) -> Update:
    """The update of a step whose norms the caller measured; sizes and norms as in `two_batch`.

    Args:
        logged: When and where.
        small_batch_size: Examples per small batch.
        big_batch_size: Examples of the step.
        small_sq_norm: Of all parameters.
        big_sq_norm: Of all parameters.
        num_small: Small batches in the step.
        loss: Of the step.
        layers: small_sq_norm and big_sq_norm of each layer.

    Raises:
        ConfigError: For a negative squared norm.
    """
    if small_sq_norm < 0 or big_sq_norm < 0:
        raise _not_squares(small_sq_norm, big_sq_norm)
    of_layers, are_finite = None, True
    if layers is not None:
        of_layers = layers_of_two_batches(small_batch_size, big_batch_size, layers)
        if not are_surely_finite(of_layers):
            _check_sq_norms(of_layers.first, of_layers.second)
            are_finite = small_batch_size == big_batch_size or _are_finite(of_layers)
    flags, terms = 0, None
    if small_batch_size == big_batch_size:
        flags |= Flags.ONE_SMALL_BATCH
    else:
        check_two_batches(small_batch_size, big_batch_size)
        terms = Terms(*solve_two_batches(small_sq_norm, big_sq_norm, small_batch_size, big_batch_size))
        if not (are_finite and has_finite_squares(terms)):
            terms, flags = None, flags | Flags.NONFINITE_GRADIENT
    if terms is None:
        of_layers = None
    return _update(logged, num_small, small_batch_size, big_batch_size, terms, of_layers, loss, flags)


def layers_of_two_batches(
    small_batch_size: float, big_batch_size: float, columns: tuple[Sequence[float], Sequence[float]]
) -> LayerNorms:
    """The layers of a step whose norms the caller measured: small_sq_norm and big_sq_norm of each."""
    return LayerNorms(solve_two_batches, *columns, (small_batch_size, big_batch_size), packed_columns(*columns))


def are_plain(terms: tuple[float, float], loss: float | None) -> bool:
    """Whether a step needs no flag: its terms have finite squares, and its loss is finite if it has one."""
    return has_finite_squares(terms) and (loss is None or -math.inf < loss < math.inf)


def _check_sq_norms(small_sq_norms: Sequence[float], big_sq_norms: Sequence[float]) -> None:
    """Refuse what is no square.

    Raises:
        ConfigError: For a negative number.
    """
    for small_sq_norm, big_sq_norm in zip(small_sq_norms, big_sq_norms, strict=True):
        if small_sq_norm < 0 or big_sq_norm < 0:
            raise _not_squares(small_sq_norm, big_sq_norm)


def _not_squares(small_sq_norm: float, big_sq_norm: float) -> ConfigError:
    return ConfigError(f"squared norms must not be negative, got {small_sq_norm:g} and {big_sq_norm:g}")


def are_surely_finite(layers: LayerNorms) -> bool:
    """Whether all are squares whose terms have finite squares, seen from a byte of each: a tenth of the time."""
    small_batch_size, big_batch_size = layers.sizes
    if not small_batch_size < big_batch_size or not layers.first:
        return False
    # |tr Σ| and |G|² are at most this many times the larger of the two norms
    growth = max(
        1 / (1 / small_batch_size - 1 / big_batch_size),
        (big_batch_size + small_batch_size) / (big_batch_size - small_batch_size),
    )
    return 2 * BELOW * growth < MAX_TERM and layers.packed is not None and are_all_below(layers.packed)


def _are_finite(layers: LayerNorms | None) -> bool:
    """Whether the terms of all layers have finite squares."""
    return layers is None or all(
        has_finite_squares(Terms(*layers.terms_of(*norms, *layers.sizes)))
        for norms in zip(layers.first, layers.second, strict=True)
    )


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
        terms if is_finite else None,
        None,
        loss,
        0 if is_finite else Flags.NONFINITE_GRADIENT,
    )


def update_without_norms(logged: LoggedStep, batch_size: float | None, loss: float | None) -> Update:
    """The update of a step in which nothing was watched."""
    flags = Flags.NO_BACKWARD if batch_size else Flags.NO_BACKWARD | Flags.BATCH_SIZE_UNKNOWN
    return _update(logged, 0, None, batch_size, None, None, loss, flags)


def has_vanished(norms: "StepNorms") -> bool:
    """Whether the gradient is far too small for its small batches: pure noise would leave |ḡ|² near W / K.

    So it looks after `GradScaler.unscale_()`, which is the one change that torch's own counter does not show.
    """
    if not norms.weighted_sq_norms:
        return False
    return norms.sizes.num_small_batches * norms.big_sq_norms[0] < VANISHED * norms.weighted_sq_norms[0]


def is_too_large(norms: "StepNorms") -> bool:
    """Whether the gradient is longer than any mean of its small batches can be: |Σ p g|² ≤ Σ p |g|² (Jensen)."""
    if not norms.weighted_sq_norms:
        return False
    return norms.big_sq_norms[0] > (1 + ROUNDING) * norms.weighted_sq_norms[0]


def has_duplicates(norms: "StepNorms") -> bool:
    """Whether all small batches of a step had the same gradient."""
    small, big = norms.weighted_sq_norms[0], norms.big_sq_norms[0]
    if norms.has_equal_norms and abs(small - big) <= ROUNDED * small:
        return small > 0
    return are_duplicates(small_sq_norm=small, big_sq_norm=big)


def plain_number(value: SupportsFloat) -> float:
    """The value as a float; a tensor is detached first, because one that requires a gradient would warn."""
    if type(value) is float:
        return value
    detach = getattr(value, "detach", None)
    return float(value if detach is None else detach())


def has_finite_squares(terms: tuple[float, float]) -> bool:
    """Whether the terms are numbers whose squares can be added up in double precision."""
    trace_cov, grad_sq_norm = terms
    return -MAX_TERM < trace_cov < MAX_TERM and -MAX_TERM < grad_sq_norm < MAX_TERM


def _update(
    logged: LoggedStep,
    num_micro_batches: int,
    micro_batch_size: float | None,
    global_batch: float | None,
    terms: Terms | None,
    layers: LayerNorms | None,
    loss: float | None,
    flags: int,
) -> Update:
    """An update without a loss that is not finite."""
    if loss is not None and not math.isfinite(loss):
        loss, flags = None, flags | Flags.NONFINITE_LOSS
    return Update(logged, num_micro_batches, micro_batch_size, global_batch, terms, layers, loss, flags)
