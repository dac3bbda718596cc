"""Our estimators on the same gradients: the product's own functions, from the terms of a step to value and interval."""

# R replicates, T steps

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.truth.step import RANKS, Array, Step, sq_norm
from noisescale_core.estimators import noise_scale, signal, uncertainty, windows

BLOCKS = 32
"""Blocks of a window at most, as in the SDK."""

SIZES = (1, 2, 3, 4, 4, 5, 6, 7)
"""Sizes of unequal micro-batches, in 32nds of a batch."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What the product says at the end of a window, for each replicate.

    Attributes:
        noise_scale: Ratio of sums whatever its state, [R]; may be negative.
        value: The value shown in a run that has shown a gradient before this window, nan while unresolved, [R].
        has_signal: The window alone shows a gradient: a run that began with it would have a value too, [R].
        low: Lower end of the interval, or 0, [R].
        high: Upper end, infinite while unbounded, [R].
        is_resolved: z ≥ 5 and an interval, [R].
        trace_cov_error: Window mean of estimate - truth of tr Σ, [R].
        grad_sq_norm_error: The same of |G|², [R].
    """

    noise_scale: Array
    value: Array
    has_signal: NDArray[np.bool_]
    low: Array
    high: Array
    is_resolved: NDArray[np.bool_]
    trace_cov_error: Array
    grad_sq_norm_error: Array


class Ours:
    """One way of taking small batches, followed over a window."""

    def __init__(self, name: str, group_count: int | None, terms: Callable[[Step], noise_scale.Terms]) -> None:
        self.name = name
        self.group_count = group_count
        self._terms = terms
        self._estimates: list[tuple[Array, Array]] = []
        self._truths: list[tuple[Array, Array]] = []

    def update(self, step: Step) -> None:
        """One more optimizer step."""
        terms = self._terms(step)
        self._estimates.append((np.asarray(terms.trace_cov), np.asarray(terms.grad_sq_norm)))
        self._truths.append((step.trace_cov, step.grad_sq_norm))

    def answers(self) -> Answers:
        """Value, interval and state of the window for every replicate."""
        trace_cov, grad_sq_norm = (np.array(term) for term in zip(*self._estimates, strict=True))
        true_trace_cov, true_grad_sq_norm = (np.array(term) for term in zip(*self._truths, strict=True))
        estimates = [
            estimate_window(numerators, denominators)
            for numerators, denominators in zip(trace_cov.T, grad_sq_norm.T, strict=True)
        ]
        return Answers(
            noise_scale=trace_cov.mean(0) / grad_sq_norm.mean(0),
            value=np.array([np.nan if e.value is None else e.value for e in estimates]),
            has_signal=np.array([shows_signal(terms) for terms in grad_sq_norm.T]),
            low=np.array([0.0 if e.low is None else e.low for e in estimates]),
            high=np.array([np.inf if e.high is None else e.high for e in estimates]),
            is_resolved=np.array([e.state is uncertainty.State.RESOLVED for e in estimates]),
            trace_cov_error=(trace_cov - true_trace_cov).mean(0),
            grad_sq_norm_error=(grad_sq_norm - true_grad_sq_norm).mean(0),
        )


def estimate_window(trace_cov: Array, grad_sq_norm: Array) -> uncertainty.NoiseScaleEstimate:
    """What the product says of a window, from the terms of its steps."""
    cuts = np.array_split(np.arange(len(trace_cov)), min(BLOCKS, len(trace_cov)))
    blocks = [(float(len(cut)), float(trace_cov[cut].sum()), float(grad_sq_norm[cut].sum())) for cut in cuts]
    return uncertainty.estimate(windows.WindowSums.from_blocks(blocks))


def shows_signal(grad_sq_norm: Array) -> bool:
    """Whether these steps alone show a gradient."""
    sums = len(grad_sq_norm), float(grad_sq_norm.sum()), float(grad_sq_norm @ grad_sq_norm)
    return signal.has_signal([signal.Evidence(*sums)])


def micro_batches(count: int) -> Ours:
    """K equal micro-batches, or ranks."""

    def terms(step: Step) -> noise_scale.Terms:
        return noise_scale.from_groups(
            mean_small_sq_norm=step.sq_norms[count].mean(1),  # type: ignore[arg-type]  # arrays pass through
            big_sq_norm=step.sq_norm,  # type: ignore[arg-type]
            num_groups=count,
            batch_size=step.batch_size,
        )

    return Ours(f"{count} micro-batches", count, terms)


def ranks_and_micro_batches(count: int) -> Ours:
    """8 ranks × K / 8 micro-batches: every rank adds its squared norms, one sum goes over the ranks."""

    def terms(step: Step) -> noise_scale.Terms:
        rank_sums = step.sq_norms[count].reshape(-1, RANKS, count // RANKS).sum(2)
        return noise_scale.from_groups(
            mean_small_sq_norm=rank_sums.sum(1) / count,
            big_sq_norm=step.sq_norm,  # type: ignore[arg-type]
            num_groups=count,
            batch_size=step.batch_size,
        )

    return Ours(f"{RANKS} ranks × {count // RANKS} micro-batches", count, terms)


def unequal_micro_batches_plain() -> Ours:
    """The same with |G|² as M - tr Σ / N (MATH 2.3), for comparison; the product does not use it."""

    def terms(step: Step) -> noise_scale.Terms:
        return noise_scale.from_unequal_groups(
            weighted_sq_norm=unequal_sq_norms(step) @ (np.array(SIZES) / sum(SIZES)),
            big_sq_norm=step.sq_norm,  # type: ignore[arg-type]
            num_groups=len(SIZES),
            batch_size=step.batch_size,
        )

    return Ours("8 unequal micro-batches, |G|² from tr Σ", None, terms)


def unequal_micro_batches() -> Ours:
    """8 micro-batches of 1/32 to 7/32 of the batch; |G|² from products of different ones, apart from the error of tr Σ.

    Squared norms of small groups weigh their few examples heavily: with heavy tails tr Σ is noisy, and |G|² less so.
    """

    def terms(step: Step) -> noise_scale.Terms:
        sizes = np.array(SIZES) * step.batch_size / sum(SIZES)
        sq_norms = unequal_sq_norms(step)
        weighted = noise_scale.from_unequal_groups(
            weighted_sq_norm=sq_norms @ (np.array(SIZES) / sum(SIZES)),
            big_sq_norm=step.sq_norm,  # type: ignore[arg-type]
            num_groups=len(SIZES),
            batch_size=step.batch_size,
        )
        grad_sq_norm = noise_scale.robust_grad_sq_norm(
            sum_sq_norm=step.batch_size**2 * step.sq_norm,  # type: ignore[arg-type]
            sum_of_sq_norms=sq_norms @ sizes**2,
            batch_size=step.batch_size,
            sum_of_sq_sizes=float(sizes @ sizes),
        )
        return noise_scale.Terms(trace_cov=weighted.trace_cov, grad_sq_norm=grad_sq_norm)

    return Ours("8 unequal micro-batches", None, terms)


def unequal_sq_norms(step: Step) -> Array:
    """|g_k|² of the unequal micro-batches, [R, 8]."""
    unions = np.repeat(np.eye(len(SIZES), dtype=np.float32), SIZES, axis=1) / np.array(SIZES, np.float32)[:, None]
    return sq_norm(unions @ step.groups[sum(SIZES)])


def per_example() -> Ours:
    """The norm of every example's own gradient."""

    def terms(step: Step) -> noise_scale.Terms:
        return noise_scale.two_batch(
            small_sq_norm=step.per_example_sq_norm,  # type: ignore[arg-type]
            big_sq_norm=step.sq_norm,  # type: ignore[arg-type]
            small_batch_size=1,
            big_batch_size=step.batch_size,
        )

    return Ours("per-example norms", None, terms)


def make_ours(group_counts: tuple[int, ...]) -> list[Ours]:
    """Every way of ours that a step with such groups can feed."""
    ours = [micro_batches(count) for count in group_counts]
    if sum(SIZES) in group_counts:
        ours += [ranks_and_micro_batches(sum(SIZES)), unequal_micro_batches(), unequal_micro_batches_plain()]
    return [*ours, per_example()]
