"""Records steps whose norms the script has measured: at two batch sizes, or of groups inside groups."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from noisescale.rows.updates import (
    ROUNDING,
    LoggedStep,
    Update,
    are_plain,
    are_surely_finite,
    layers_of_two_batches,
    plain_number,
    update_from_terms,
    update_from_two_batches,
)
from noisescale.track.step_counter import checked_size
from noisescale.track.stream_description import StreamDescription
from noisescale_core.errors import ConfigError, EstimationError
from noisescale_core.estimators.nested_groups import NestedSizes, NestedTerms, Tree, from_nested_groups, sizes_of
from noisescale_core.estimators.noise_scale import Terms, solve_two_batches

if TYPE_CHECKING:
    from noisescale.track.step_log import StepLog


# Steps whose squared gradient norms the script measured itself, in any framework.


def mean_of_small(
    small_sq_norm: float | Sequence[float] | None, sum_small_sq_norm: float | None, num_small: int | None
) -> tuple[float, int | None]:
    """Mean squared norm of the small batches, and how many there are, however they were given.

    Raises:
        ConfigError: Unless exactly one of mean (or list) and sum was given, and the sum with a number.
    """
    if (small_sq_norm is None) == (sum_small_sq_norm is None):
        raise ConfigError("log_norms() needs small_sq_norm (a mean or a list) or sum_small_sq_norm, and not both")
    if small_sq_norm is None:
        assert sum_small_sq_norm is not None
        if num_small is None or num_small < 1:
            raise ConfigError(f"sum_small_sq_norm needs num_small, the small batches in the sum, got {num_small!r}")
        return plain_number(sum_small_sq_norm) / num_small, num_small
    if isinstance(small_sq_norm, Sequence):
        if not small_sq_norm:
            raise ConfigError("small_sq_norm must hold at least one squared norm, got an empty list")
        return math.fsum(plain_number(one) for one in small_sq_norm) / len(small_sq_norm), len(small_sq_norm)
    return plain_number(small_sq_norm), num_small


def columns_of(layers: Mapping[str, tuple[float, float]]) -> tuple[Sequence[float], Sequence[float]]:
    """The first and the second norm of each layer.

    Raises:
        ValueError: For a layer that has not two.
    """
    # twice as fast as zip(*…), which makes an iterator of each layer
    small = [one for one, _ in layers.values()]
    big = [one for _, one in layers.values()]
    if not layers:
        return small, big
    if _are_numbers(small) and _are_numbers(big):
        return small, big
    return [plain_number(value) for value in small], [plain_number(value) for value in big]


def _are_numbers(values: Sequence[float]) -> bool:
    """Whether all are plain numbers already: their sum tells in a tenth of the time that looking at each takes."""
    try:
        # a tensor or a scalar of numpy would make the sum one of its kind
        return type(values[0]) is float and type(sum(values)) is float
    except (TypeError, OverflowError):
        return False


def nested_terms(
    sum_sq_norms: Mapping[str, float], big_sq_norm: float, sizes: NestedSizes | Sequence[Tree]
) -> tuple[NestedTerms, NestedSizes]:
    """The terms of nested groups, and their sizes; arguments as in `Run.log_nested_norms`.

    Raises:
        EstimationError: For levels that cannot be told apart, do not fit the sizes or are not the coarsest first.
    """
    known = sizes if isinstance(sizes, NestedSizes) else sizes_of(sizes)
    of_levels = [plain_number(value) for value in sum_sq_norms.values()]
    whole = known.num_units * plain_number(big_sq_norm)
    terms = from_nested_groups([whole, *of_levels], known, levels=tuple(sum_sq_norms))
    check_inward([("the whole step", whole), *zip(sum_sq_norms, of_levels, strict=True)])
    return terms, known


def check_inward(sums: Sequence[tuple[str, float]]) -> None:
    """Refuse what no gradients can give: Σ n |g|² never falls from groups to their own groups (Jensen's inequality).

    Args:
        sums: Name and Σ n |g|² of each level, from the whole step to the finest.

    Raises:
        EstimationError: With the two levels and what to do.
    """
    for (outer, coarse), (inner, fine) in pairwise(sums):
        if min(coarse, fine) < 0:
            raise EstimationError(f"Σ n |g|² must not be negative, got {coarse:g} of {outer} and {fine:g} of {inner}")
        if fine < coarse * (1 - ROUNDING):
            raise EstimationError(
                f"Σ n |g|² must not fall from {outer} to {inner}, got {coarse:g} and {fine:g}: give the levels with "
                "the coarsest first, and of each the sum over all groups of units × squared norm of the mean gradient"
            )


def update_from_nested(
    logged: LoggedStep, terms: NestedTerms, sizes: NestedSizes, big_sq_norm: float, loss: float | None
) -> Update:
    """The update of a step of nested groups.

    Its trace is N (|ḡ|² - |G|²), in expectation V + Σ_j k_0j V_j: the noise of one unit as it counts in a step of such
    groups, so that the noise scale is that of a batch which grows by more of the coarsest groups.
    """
    num_units = sizes.num_units
    total = Terms(
        trace_cov=num_units * (plain_number(big_sq_norm) - terms.grad_sq_norm), grad_sq_norm=terms.grad_sq_norm
    )
    return update_from_terms(logged, total, num_small=sizes.count(sizes.depth), batch_size=num_units, loss=loss)


def noise_by_level(terms: NestedTerms, levels: Sequence[str]) -> dict[str, float]:
    """The noise of each level by the metric's name: what the units of a group share, and of the finest level their own.

    Args:
        terms: Of the step.
        levels: Names, the coarsest first.
    """
    return {
        f"noise/{level}": value for level, value in zip(levels, [*terms.group_noise, terms.unit_noise], strict=True)
    }


class _Sizes(NamedTuple):
    """The sizes of a step; nearly all steps are as the one before, and their sizes are not looked at again.

    Attributes:
        given_small: Examples of a small batch, as the script has them.
        given_big: The same of the step.
        small: Examples of a small batch, checked.
        big: Of the step, checked.
        num_small: Small batches in the step, as the sizes say.
        tell_apart: Noise and signal can be told apart by them.
    """

    given_small: float
    given_big: float
    small: float
    big: float
    num_small: int
    tell_apart: bool


def _checked_sizes(small_batch_size: float, big_batch_size: float) -> _Sizes:
    big = checked_size("big_batch_size", big_batch_size)
    small = checked_size("small_batch_size", small_batch_size)
    return _Sizes(small_batch_size, big_batch_size, small, big, round(big / small), small < big)


class GivenLog:
    """Takes the norms, and hands the steps to the log.

    Args:
        log: The steps of the run.
        stream: Says where the norms come from.
        show: Is told the number of each step.
        log_metrics: Takes the noise of each level, by the number of the step.
    """

    def __init__(
        self,
        log: "StepLog",
        stream: StreamDescription,
        *,
        show: Callable[[int], None],
        log_metrics: Callable[[int, Mapping[str, float]], None],
    ) -> None:
        self._log = log
        self._stream = stream
        self._show = show
        self._log_metrics = log_metrics
        self._sizes = _Sizes(0.0, 0.0, 0.0, 0.0, 0, False)

    def log_norms(
        self,
        small_batch_size: float,
        big_batch_size: float,
        small_sq_norm: float,
        big_sq_norm: float,
        num_small: int | None,
        step: int | None,
        loss: float | None,
        lr: float | None,
        layers: Mapping[str, tuple[float, float]] | None,
    ) -> None:
        """Record a step by norms at two batch sizes; see `Run.log_norms`."""
        if self._stream.estimator == "none":
            self._begin("norms")
        columns: tuple[Sequence[float], Sequence[float]] | None = None
        if layers is not None:
            self._log.name_groups(list(layers))
            columns = columns_of(layers)
        sizes = self._sizes
        if small_batch_size != sizes.given_small or big_batch_size != sizes.given_big:
            self._sizes = sizes = _checked_sizes(small_batch_size, big_batch_size)
        # most numbers are plain ones, and a call to find that out takes a hundredth of this one
        big_number = big_sq_norm if type(big_sq_norm) is float else plain_number(big_sq_norm)
        known_loss = loss if loss is None or type(loss) is float else plain_number(loss)
        log = self._log
        num = sizes.num_small if num_small is None else num_small
        if sizes.tell_apart and small_sq_norm >= 0 and big_number >= 0:
            terms = solve_two_batches(small_sq_norm, big_number, sizes.small, sizes.big)
            of_layers = None if columns is None else layers_of_two_batches(sizes.small, sizes.big, columns)
            if are_plain(terms, known_loss) and (of_layers is None or are_surely_finite(of_layers)):
                number = log.add_plain(step, lr, (sizes.small, sizes.big, num), terms, known_loss, of_layers)
                if number is not None:
                    self._show(number)
                    return
        logged = log.given(step, lr, sizes.big)
        update = update_from_two_batches(
            logged, sizes.small, sizes.big, small_sq_norm, big_number, num, known_loss, columns
        )
        log.add(update)
        self._show(logged.step)

    def log_nested_norms(
        self,
        sum_sq_norms: Mapping[str, float],
        big_sq_norm: float,
        sizes: "NestedSizes | Sequence[Tree]",
        *,
        step: int | None,
        loss: float | None,
        lr: float | None,
    ) -> None:
        """Record a step of nested groups; see `Run.log_nested_norms`."""
        terms, known = nested_terms(sum_sq_norms, big_sq_norm, sizes)
        self._begin("nested_groups")
        logged = self._log.given(step, lr, known.num_units)
        plain_loss = None if loss is None else plain_number(loss)
        update = update_from_nested(logged, terms, known, big_sq_norm, plain_loss)
        self._log.add(update)
        if update.terms is not None:
            self._log_metrics(logged.step, noise_by_level(terms, list(sum_sq_norms)))
        self._show(logged.step)

    def _begin(self, estimator: str) -> None:
        """Norms come from the script."""
        if self._stream.estimator == "none":
            self._stream.estimator = estimator
            self._stream.batch_size_source = "argument"
