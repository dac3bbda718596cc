"""The formulas of other implementations, as their public sources have them, on the same gradients as ours.

Written anew for many replicates at once. Left out: what has no formula (hooks, communication, overflow handling).
The quirks that change the number shown are kept: floors, clamps, rank 0 only, norms that are not squared.
"""

# R replicates, K groups, D coordinates

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

import numpy as np

from benchmarks.truth.step import RANKS, Array, Step


class Kind(StrEnum):
    """What a peer's formula is worth while training goes on."""

    WITHIN_STEP = "within step"
    """Compares groups of one step: right in form."""
    CROSS_STEP = "cross step"
    """Compares gradients of different steps: right only while the parameters stand still."""
    CLAMPED = "clamped"
    """Cuts single steps before averaging: what is cut does not vanish with more steps."""
    WRONG_FORMULA = "wrong formula"


class Peer(Protocol):
    """An estimator that is shown step after step and gives a number whenever asked.

    Attributes:
        name: As tables call it.
        kind: What its formula is worth.
        group_count: The K whose groups it sees; None for the whole batch, or single examples.
    """

    name: str
    kind: Kind
    group_count: int | None

    def update(self, step: Step) -> None:
        """One more optimizer step."""

    def noise_scale(self) -> Array:
        """The number shown in examples, [R]: possibly negative, infinite or not a number."""


class MovingAverage:
    """An exponential moving average from 0, and the weight it has gathered."""

    def __init__(self, decay: float) -> None:
        self.decay = decay
        self.value: Array = np.zeros(1)
        self.weight = 0.0

    def update(self, value: Array) -> None:
        """One more value."""
        self.value = self.decay * self.value + (1 - self.decay) * value
        self.weight = self.decay * self.weight + 1 - self.decay

    @property
    def debiased(self) -> Array:
        """The weighted mean of the values so far."""
        return self.value / self.weight


def ratio(numerator: Array, denominator: Array) -> Array:
    """A quotient that may be infinite or not a number."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(numerator / denominator)


class KDiffusion:
    """k-diffusion `gns.py`, class GradientNoiseScale: ranks, very long averages, floors under averages from 0.

    Source: github.com/crowsonkb/k-diffusion, k_diffusion/gns.py (2023).
    """

    kind = Kind.WITHIN_STEP

    def __init__(self, group_count: int = RANKS, *, decay: float = 0.9998, floor: float = 1e-8) -> None:
        self.name = f"k-diffusion, {group_count} ranks"
        self.group_count = group_count
        self._floor = floor
        self._grad_sq_norm, self._trace_cov = MovingAverage(decay), MovingAverage(decay)

    def update(self, step: Step) -> None:
        """One more optimizer step."""
        small, big = step.batch_size / self.group_count, step.batch_size
        small_sq_norm = step.sq_norms[self.group_count].mean(1)
        self._grad_sq_norm.update((big * step.sq_norm - small * small_sq_norm) / (big - small))
        self._trace_cov.update((small_sq_norm - step.sq_norm) / (1 / small - 1 / big))

    def noise_scale(self) -> Array:
        """The number shown: both floors apply before the averages are debiased."""
        return np.maximum(self._trace_cov.value, self._floor) / np.maximum(self._grad_sq_norm.value, self._floor)


class AdaptDL:
    """adaptdl `gradient_noise_scale.py`: all pairs of replicas × accumulation steps, averages debiased.

    Source: github.com/petuum/adaptdl, adaptdl/adaptdl/torch/gradient_noise_scale.py (2022), plain SGD.
    """

    kind = Kind.WITHIN_STEP

    def __init__(self, group_count: int = RANKS) -> None:
        self.name = f"adaptdl, {group_count} groups"
        self.group_count = group_count
        decay = 0.999**group_count
        self._grad_sq_norm, self._group_variance = MovingAverage(decay), MovingAverage(decay)
        self._group_size = 0.0

    def update(self, step: Step) -> None:
        """One more optimizer step."""
        count = self.group_count
        local = step.sq_norms[count].mean(1)
        self._grad_sq_norm.update((count * step.sq_norm - local) / (count - 1))
        self._group_variance.update((local - step.sq_norm) * count / (count - 1))
        self._group_size = step.batch_size / count

    def noise_scale(self) -> Array:
        """Group size × variance of a group's gradient ÷ |G|², each floored as it is read."""
        variance = np.maximum(self._group_variance.debiased, 1e-6)
        return self._group_size * ratio(variance, np.maximum(self._grad_sq_norm.debiased, 0.0))


class AdaptDLDifferenced:
    """adaptdl with one batch a step: the gradients of two consecutive steps are its two groups."""

    name = "adaptdl, differenced"
    kind = Kind.CROSS_STEP
    group_count = None

    def __init__(self) -> None:
        decay = 0.999**2
        self._grad_sq_norm, self._variance = MovingAverage(decay), MovingAverage(decay)
        self._previous: Array | None = None
        self._previous_sq_norm: Array | None = None
        self._batch_size = 0

    def update(self, step: Step) -> None:
        """One more optimizer step."""
        if self._previous is not None and self._previous_sq_norm is not None:
            local = (step.sq_norm + self._previous_sq_norm) / 2
            both = sq_norm_of_sum(step.gradient, self._previous) / 4
            self._grad_sq_norm.update(2 * both - local)
            self._variance.update(2 * (local - both))
        self._previous, self._previous_sq_norm, self._batch_size = step.gradient, step.sq_norm, step.batch_size

    def noise_scale(self) -> Array:
        """As `AdaptDL`, for groups of a whole batch."""
        variance = np.maximum(self._variance.debiased, 1e-6)
        return self._batch_size * ratio(variance, np.maximum(self._grad_sq_norm.debiased, 0.0))


class AdaScale:
    """fairscale `AdaScale`: all pairs too, but |G|² of every single step is cut at 0 before it is averaged.

    Source: github.com/facebookresearch/fairscale, fairscale/optim/adascale.py; scale = world size.
    """

    kind = Kind.CLAMPED

    def __init__(self, group_count: int = RANKS) -> None:
        self.name = f"fairscale, {group_count} ranks"
        self.group_count = group_count
        decay = max(1 - group_count / 1000, 0.0)
        self._grad_sq_norm, self._group_variance = MovingAverage(decay), MovingAverage(decay)
        self._group_size = 0.0

    def update(self, step: Step) -> None:
        """One more optimizer step."""
        count = self.group_count
        variance = (step.sq_norms[count].sum(1) - count * step.sq_norm) / (count - 1)
        self._grad_sq_norm.update(np.maximum(step.sq_norm - variance / count, 0.0))
        self._group_variance.update(np.maximum(variance, 1e-6))
        self._group_size = step.batch_size / count

    def noise_scale(self) -> Array:
        """Group size × variance of a group's gradient ÷ |G|²."""
        return self._group_size * ratio(self._group_variance.debiased, self._grad_sq_norm.debiased)


class GptNeox:
    """gpt-neox `gradient_noise_scale.py`: the last of five optimizer steps against the mean of the five.

    Source: github.com/EleutherAI/gpt-neox, megatron/gradient_noise_scale/gradient_noise_scale.py. Its debiasing counts
    steps where it averages fives; the factor is the same for both terms and leaves the ratio alone.
    """

    kind = Kind.CROSS_STEP
    group_count = None

    def __init__(self, num_batches: int = 5, *, decay: float = 0.99) -> None:
        self.name = f"gpt-neox, {num_batches} batches"
        self._num_batches = num_batches
        self._grad_sq_norm, self._trace_cov = MovingAverage(decay), MovingAverage(decay)
        self._sum: Array | None = None
        self._num_steps = 0

    def update(self, step: Step) -> None:
        """One more optimizer step."""
        self._num_steps += 1
        self._sum = step.gradient if self._sum is None else self._sum + step.gradient
        if self._num_steps % self._num_batches:
            return
        big_sq_norm = np.einsum("rd,rd->r", self._sum, self._sum).astype(np.float64) / self._num_batches**2
        small, big = step.batch_size, step.batch_size * self._num_batches
        self._grad_sq_norm.update((big * big_sq_norm - small * step.sq_norm) / (big - small))
        self._trace_cov.update((step.sq_norm - big_sq_norm) / (1 / small - 1 / big))
        self._sum = None

    def noise_scale(self) -> Array:
        """The number logged."""
        return ratio(self._trace_cov.value, self._grad_sq_norm.value)


class KungFu:
    """KungFu `grad_noise_scale.py`: the squared norm of rank 0's gradient alone against the whole batch's.

    Source: github.com/lsds/KungFu, srcs/python/kungfu/tensorflow/ops/monitor.py and include/kungfu/utils/ema.hpp; the
    averages start at their first value.
    """

    kind = Kind.WITHIN_STEP

    def __init__(self, group_count: int = RANKS, *, decay: float = 0.9) -> None:
        self.name = f"KungFu, {group_count} ranks"
        self.group_count = group_count
        self._decay = decay
        self._terms: tuple[Array, Array] | None = None

    def update(self, step: Step) -> None:
        """One more optimizer step."""
        small, big = step.batch_size / self.group_count, step.batch_size
        small_sq_norm = step.sq_norms[self.group_count][:, 0]
        trace_cov = (small_sq_norm - step.sq_norm) / (1 / small - 1 / big)
        grad_sq_norm = (big * step.sq_norm - small * small_sq_norm) / (big - small)
        if self._terms is not None:
            trace_cov = self._decay * self._terms[0] + (1 - self._decay) * trace_cov
            grad_sq_norm = self._decay * self._terms[1] + (1 - self._decay) * grad_sq_norm
        self._terms = trace_cov, grad_sq_norm

    def noise_scale(self) -> Array:
        """The number monitored."""
        return np.array([np.nan]) if self._terms is None else ratio(*self._terms)


class Shockwave:
    """shockwave's GNS workloads: sums over tensors of norms that are not squared, two consecutive steps.

    Source: github.com/uw-mad-dash/shockwave, gns_workloads/pytorch/image_classification/cifar10/main.py, one worker.
    There the two gradients of the window share their memory wherever gradients are zeroed in place; here they do not.
    """

    name = "shockwave"
    kind = Kind.WRONG_FORMULA
    group_count = None

    def __init__(self) -> None:
        self._previous: Array | None = None
        self._previous_norm: Array | None = None
        self._trace_cov = self._grad_sq_norm = np.zeros(1)

    def update(self, step: Step) -> None:
        """One more optimizer step."""
        norm = sum_of_norms(step.gradient, step.tensors)
        if self._previous is not None and self._previous_norm is not None:
            mean_norm = sum_of_norms((step.gradient + self._previous) / 2, step.tensors)
            self._trace_cov = self._trace_cov + 2 * step.batch_size * (self._previous_norm - mean_norm)
            self._grad_sq_norm = self._grad_sq_norm + 2 * mean_norm - self._previous_norm
        self._previous, self._previous_norm = step.gradient, norm

    def noise_scale(self) -> Array:
        """The number acted upon: sums divided last."""
        return ratio(self._trace_cov, self._grad_sq_norm)


class MeanOfRatios:
    """What snippets in training repositories do: an average of every step's own ratio, |G|² floored at 1e-8."""

    kind = Kind.WRONG_FORMULA

    def __init__(self, group_count: int = RANKS) -> None:
        self.name = f"mean of ratios, {group_count} groups"
        self.group_count = group_count
        self._sum: Array = np.zeros(1)
        self._num_steps = 0

    def update(self, step: Step) -> None:
        """One more optimizer step."""
        count = self.group_count
        excess = (step.sq_norms[count].mean(1) - step.sq_norm) / (count - 1)
        self._sum = self._sum + step.batch_size * excess / np.maximum(step.sq_norm - excess, 1e-8)
        self._num_steps += 1

    def noise_scale(self) -> Array:
        """Mean of the ratios so far."""
        return self._sum / max(self._num_steps, 1)


class AllPairsOfAllExamples:
    """The oracle: every pair of examples of the whole window. Needs all gradients and parameters that stand still."""

    name = "oracle: all pairs of all examples"
    kind = Kind.CROSS_STEP
    group_count = None

    def __init__(self) -> None:
        self._sum: Array = np.zeros((1, 1))
        self._per_example: Array = np.zeros(1)
        self._num_examples = 0
        self._num_steps = 0

    def update(self, step: Step) -> None:
        """One more step of frozen parameters."""
        self._sum = self._sum + step.gradient
        self._per_example = self._per_example + step.per_example_sq_norm
        self._num_examples += step.batch_size
        self._num_steps += 1

    def noise_scale(self) -> Array:
        """Both terms from the mean gradient and the mean squared norm of all examples."""
        mean = self._sum / self._num_steps
        mean_sq_norm = np.einsum("rd,rd->r", mean, mean).astype(np.float64)
        count = self._num_examples
        trace_cov = count / (count - 1) * (self._per_example / self._num_steps - mean_sq_norm)
        return ratio(trace_cov, mean_sq_norm - trace_cov / count)


def sq_norm_of_sum(first: Array, second: Array) -> Array:
    """|a + b|² by replicate."""
    total = first + second
    return np.einsum("rd,rd->r", total, total).astype(np.float64)


def sum_of_norms(gradient: Array, tensors: tuple[slice, ...]) -> Array:
    """Σ over the parameter tensors of their norms, by replicate."""
    return np.asarray(sum(np.linalg.norm(gradient[:, tensor], axis=1) for tensor in tensors), dtype=np.float64)


def make_peers(group_counts: tuple[int, ...]) -> list[Peer]:
    """Every peer that a step with such groups can feed; those on groups at every K."""
    on_groups: tuple[Callable[[int], Peer], ...] = (AdaptDL, KDiffusion, AdaScale)
    peers: list[Peer] = [make(count) for count in group_counts for make in on_groups]
    return [*peers, KungFu(), MeanOfRatios(), GptNeox(), AdaptDLDifferenced(), Shockwave(), AllPairsOfAllExamples()]
