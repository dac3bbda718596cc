"""What every estimator is shown: the gradients of one optimizer step, for many replicates at once, and their truth."""

# R replicates, L leaves (the smallest groups), K groups of equal size, D coordinates

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]

RANKS = 8
"""Groups of the peers that run on ranks."""


@dataclass(frozen=True, slots=True)
class Step:
    """One optimizer step of R independent trainings.

    Attributes:
        batch_size: Examples in the step.
        groups: Mean gradients of K equal groups of examples, [R, K, D] by K; the groups of a smaller K are unions.
        sq_norms: Their squared norms, [R, K] by K.
        gradient: Mean gradient of the whole batch, [R, D].
        sq_norm: Its squared norm, [R].
        per_example_sq_norm: Mean over the examples of |g_i|², [R].
        tensors: The coordinates of each parameter tensor.
        trace_cov: Exact tr Σ at the parameters of this step, [R].
        grad_sq_norm: Exact |G|² there, [R].
    """

    batch_size: int
    groups: Mapping[int, Array]
    sq_norms: Mapping[int, Array]
    gradient: Array
    sq_norm: Array
    per_example_sq_norm: Array
    tensors: tuple[slice, ...]
    trace_cov: Array
    grad_sq_norm: Array


class Target(Protocol):
    """Gradients with exactly known |G|² and tr Σ.

    Attributes:
        name: As tables call it.
        is_moving: The parameters change from step to step, by the very gradients that are measured.
        batch_size: Examples a step.
        num_steps: Steps in the window that is judged.
        group_counts: The K for which a step has groups, ascending.
        replicates_at_once: As many fit into memory.
    """

    name: str
    is_moving: bool
    batch_size: int
    num_steps: int
    group_counts: tuple[int, ...]
    replicates_at_once: int

    def steps(self, replicates: int, seed: int) -> Iterator[Step]:
        """The steps of so many independent trainings."""


def make_step(
    leaves: Array,
    *,
    batch_size: int,
    per_example_sq_norm: Array,
    trace_cov: Array,
    grad_sq_norm: Array,
    group_counts: tuple[int, ...],
    tensors: tuple[slice, ...] = (slice(None),),
) -> Step:
    """A step from the mean gradients of its leaves, [R, L, D].

    The largest K must be L and each K divide the next.
    """
    groups: dict[int, Array] = {group_counts[-1]: leaves}
    for count in reversed(group_counts[:-1]):
        groups[count] = merge(groups[min(groups)], count)
    gradient = merge(groups[min(groups)], 1)[:, 0]
    return Step(
        batch_size=batch_size,
        groups=groups,
        sq_norms={count: sq_norm(gradients) for count, gradients in groups.items()},
        gradient=gradient,
        sq_norm=sq_norm(gradient),
        per_example_sq_norm=per_example_sq_norm,
        tensors=tensors,
        trace_cov=trace_cov,
        grad_sq_norm=grad_sq_norm,
    )


def merge(groups: Array, count: int) -> Array:
    """Neighbouring groups joined to so many, [R, K, D] → [R, count, D]."""
    replicates, finer, coordinates = groups.shape
    return groups.reshape(replicates, count, finer // count, coordinates).mean(2)


def sq_norm(gradients: Array) -> Array:
    """Squared norm over the last axis, as fp64."""
    return np.einsum("...d,...d->...", gradients, gradients).astype(np.float64)
