"""Simulated runs whose noise scale is known, and what the product says of many of them at every step at once.

Everything is in units of the batch: B = 1, so tr Σ is φ / B and |G|² is 1 unless it drifts. Gradients are normal with a
given spectrum, or have Student's t with 5 degrees of freedom as common scale of each example (heavy tails).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from noisescale.window.recent_updates import RecentUpdates
from noisescale_core.estimators.noise_scale import Terms
from noisescale_core.estimators.signal import FEWEST_UPDATES, SIGNAL_Z, octave_of, steps_of
from noisescale_core.estimators.student_t import t_quantile
from noisescale_core.estimators.uncertainty import ALONE_Z, CONFIRMED_Z, MIN_BLOCKS, SKEWNESS_ALLOWANCE, WINDOWS_BEFORE
from noisescale_core.estimators.windows import RESOLVED_Z

TAIL_FREEDOM = 5

SPECTRA = {
    "3 equal": ((1.0, 3, 1.0),),
    "30 equal": ((1.0, 30, 1.0),),
    "1000 equal": ((1.0, 1000, 1.0),),
    "power law": tuple(
        (sum(1 / i for i in range(low, high)) / sum(1 / i for i in range(1, 61)), high - low, (high - low) / 60)
        for low, high in ((1, 2), (2, 3), (3, 5), (5, 9), (9, 17), (17, 33), (33, 61))
    ),
    "steep": ((0.5, 2, 0.5), (0.3, 20, 0.3), (0.2, 500, 0.2)),
}
"""Shares of tr Σ, numbers of equal eigenvalues, shares of |G|²; d_eff is 3, 30, 1000, 13 and 8."""


@dataclass(frozen=True)
class Setting:
    """What kind of training a run is.

    Attributes:
        noise_over_batch: φ / B.
        num_groups: K.
        spectrum: A key of SPECTRA; of the heavy-tailed, a number of equal eigenvalues.
        examples_per_group: Of the heavy-tailed; 0: normal gradients.
        drift: A key of `grad_sq_norm_of`.
    """

    noise_over_batch: float
    num_groups: int
    spectrum: str | int
    examples_per_group: int = 0
    drift: str = "none"

    def __str__(self):
        tail = f", t({TAIL_FREEDOM}) of {self.examples_per_group} examples" if self.examples_per_group else ""
        drift = "" if self.drift == "none" else f", |G|² {self.drift}"
        return f"φ/B {self.noise_over_batch:g}, K {self.num_groups}, spectrum {self.spectrum}{tail}{drift}"


def grad_sq_norm_of(drift, steps):
    """|G|² of every step."""
    t = np.arange(steps)
    return {
        "none": np.ones(steps),
        "zero": np.zeros(steps),
        "falls as a power": ((1 + t / 20) / (steps / 20)) ** -0.3,
        "falls early": 1 + 30 * np.exp(-30 * t / steps),
        "rises": 2 * ((1 + t / 20) / (steps / 20)) ** 0.5,
        "swings": np.exp(0.7 * np.sin(8 * np.pi * t / steps)),
        "jumps": np.where(t < steps / 4, 0.3, 1.5),
    }[drift]


def simulated_terms(rng, setting, *, runs, steps):
    """(tr Σ, |G|²) as the estimators find them at each step, [runs, steps] each."""
    grad_sq_norm = grad_sq_norm_of(setting.drift, steps)
    if setting.examples_per_group:
        return _heavy_tailed(rng, setting, runs, grad_sq_norm)
    big, trace = np.zeros((runs, steps)), np.zeros((runs, steps))
    for share, dimension, grad_share in SPECTRA[setting.spectrum]:
        variance = setting.noise_over_batch * share / dimension
        away = np.broadcast_to(grad_share * grad_sq_norm / variance, (runs, steps))
        big += variance * (
            rng.noncentral_chisquare(dimension, away) if away.any() else rng.chisquare(dimension, (runs, steps))
        )
        freedom = setting.num_groups - 1
        trace += variance / freedom * rng.chisquare(dimension * freedom, (runs, steps))
    return trace, big - trace


def _heavy_tailed(rng, setting, runs, grad_sq_norm):
    """Means of groups of examples, each with its own scale √(3 / χ²₅), around the gradient (√|G|², 0, …)."""
    groups, dimension = setting.num_groups, int(setting.spectrum)
    trace, square = np.empty((runs, len(grad_sq_norm))), np.empty((runs, len(grad_sq_norm)))
    at_once = max(1, int(4e6 / (runs * groups * dimension)))
    for start in range(0, len(grad_sq_norm), at_once):
        steps = slice(start, min(start + at_once, len(grad_sq_norm)))
        size = (runs, steps.stop - start, groups)
        scales = (TAIL_FREEDOM - 2) / rng.chisquare(TAIL_FREEDOM, (*size, setting.examples_per_group))
        variance = scales.mean(-1) * groups * setting.noise_over_batch / dimension
        gradients = rng.standard_normal((*size, dimension), dtype=np.float32) * np.sqrt(variance)[..., None]
        gradients[..., 0] += np.sqrt(grad_sq_norm[steps])[None, :, None]
        small, big = (gradients**2).sum(-1).mean(-1), (gradients.mean(2) ** 2).sum(-1)
        trace[:, steps] = (small - big) / (groups - 1)
        square[:, steps] = big - trace[:, steps]
    return trace, square


@dataclass(frozen=True)
class Look:
    """What the product says of all runs after one step; arrays over the runs.

    Attributes:
        num_updates: Steps so far.
        truth: φ of the window, from the true terms.
        low: Lower end of the bounded sets.
        high: Their upper end; anything where unbounded.
        value: Ratio of sums.
        is_bounded: The set is bounded and both terms are positive.
        has_value: And the run or the window has shown a gradient.
        is_resolved: The state.
        is_resolved_by_itself: Bounded and z ≥ 5: the rule of version 0.1.
        holds_truth: The set holds the truth, bounded or not.
    """

    num_updates: int
    truth: float
    low: np.ndarray
    high: np.ndarray
    value: np.ndarray
    is_bounded: np.ndarray
    has_value: np.ndarray
    is_resolved: np.ndarray
    is_resolved_by_itself: np.ndarray
    holds_truth: np.ndarray


def looks(trace, square, true_trace, true_square, *, every=1, blocks=None) -> Iterator[Look]:
    """What `RecentUpdates.estimate()` says after each of the steps, for all runs at once.

    `blocks` yields after each step where the blocks of the window and of what was before it begin and end.
    """
    sums = [_from_zero(trace), _from_zero(square)]
    truths = [_from_zero(np.broadcast_to(true, (1, trace.shape[1])))[0] for true in (true_trace, true_square)]
    has_signal = _has_signal(square)
    for step, (window, before) in zip(range(trace.shape[1]), blocks or blocks_in_the_job(), strict=False):
        n = step + 1
        if len(window) <= MIN_BLOCKS or n % every:
            continue
        true_terms = [one[n] - one[window[0]] for one in truths]
        truth = true_terms[0] / true_terms[1] if true_terms[1] > 0 else math.inf
        yield _look(n, sums, window, before, has_signal[:, step], truth)


def blocks_in_the_job():
    """Edges of the blocks of the window and of what is before it, after each update of `RecentUpdates`."""
    updates = RecentUpdates()
    while True:
        updates.add(Terms(1.0, 1.0))
        edges, start = _edges(updates)
        first = max(0, start - WINDOWS_BEFORE * (len(edges) - 1 - start))
        yield edges[start:], edges[first : start + 1]


def look_at_window(trace, square, truth, *, most_blocks=32) -> Look:
    """What `estimate` says of a window of all these steps, in up to that many blocks, whatever was before it."""
    steps = trace.shape[1]
    edges = np.arange(0, steps + 1, max(1, steps // most_blocks))
    sums = [_from_zero(trace), _from_zero(square)]
    return _look(steps, sums, edges, edges[:1], np.ones(len(trace), bool), truth)


def _from_zero(values):
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)


def _edges(updates):
    """Where the blocks begin and end, and the number of the window's first."""
    sizes = [block.num_updates for block in updates._blocks]
    oldest = updates._first_block * updates._updates_per_block
    return np.concatenate([[oldest], oldest + np.cumsum(sizes)]), updates._window_start() - updates._first_block


def _has_signal(square):
    """After each step: whether the run had shown a gradient by then."""
    weighted, num_before, deviates = np.zeros((len(square), 1)), 0, np.zeros(square.shape)
    for octave in range(octave_of(square.shape[1] - 1) + 1):
        low, high = steps_of(octave)
        own = square[:, low : high + 1]
        n = np.arange(1, own.shape[1] + 1)
        one = np.sqrt(n) * (n >= FEWEST_UPDATES) * _normal_deviate(n, np.cumsum(own, axis=1), np.cumsum(own**2, axis=1))
        num_updates = num_before + n * (n >= FEWEST_UPDATES)
        deviates[:, low : high + 1] = (weighted + one) / np.sqrt(np.maximum(num_updates, 1))
        weighted, num_before = weighted + one[:, -1:], num_before + len(n)
    return np.logical_or.accumulate(deviates >= SIGNAL_Z, axis=1)


def _normal_deviate(count, total, total_sq):
    freedom = np.maximum(count - 1, 1)
    share = np.minimum(total / count * (total / total_sq), 1 - 1e-16)
    return np.sign(total) * (8 * freedom + 1) / (8 * freedom + 3) * np.sqrt(-freedom * np.log1p(-share))


def _means(sums, edges):
    """Means of both terms over the blocks between the edges and their covariance; the blocks' sums of |G|²."""
    sizes = np.diff(edges).astype(float)
    blocks = [one[:, edges[1:]] - one[:, edges[:-1]] for one in sums]
    total, m = sizes.sum(), len(sizes)
    a, c = (block.sum(1) / total for block in blocks)
    scale = m / ((m - 1) * total**2)
    x, y = (block - mean[:, None] * sizes for block, mean in zip(blocks, (a, c), strict=True))
    return (a, c, scale * (x * x).sum(1), scale * (x * y).sum(1), scale * (y * y).sum(1)), blocks[1]


def _look(n, sums, window, before, has_signal, truth):
    (a, c, v_aa, v_ac, v_cc), blocks = _means(sums, window)
    m, size = len(window) - 1, window[-1] - window[0]
    q_sq = (t_quantile(0.975, m - 1) * (1 + SKEWNESS_ALLOWANCE / size)) ** 2
    z = c / np.sqrt(v_cc)
    quadratic, half_linear, constant = c**2 - q_sq * v_cc, a * c - q_sq * v_ac, a**2 - q_sq * v_aa
    root = np.sqrt(np.maximum(half_linear**2 - quadratic * constant, 0))
    is_bounded = (quadratic > 0) & (a > 0) & (c > 0) & (half_linear**2 >= quadratic * constant)
    is_clear = _normal_deviate(m, blocks.sum(1), (blocks**2).sum(1)) >= ALONE_Z
    is_ready = np.zeros(len(a), bool)
    if len(before) > MIN_BLOCKS and before[-1] - before[0] >= size:
        (before_a, before_c, before_aa, _, before_cc), _ = _means(sums, before)
        scale = math.sqrt((before[-1] - before[0]) / size)
        foreseen = np.minimum(before_c / np.sqrt(before_cc), before_a / np.sqrt(before_aa)) / scale
        is_ready = (foreseen >= RESOLVED_Z) | is_clear
    off = (c**2, v_cc) if math.isinf(truth) else ((a - truth * c) ** 2, v_aa - 2 * truth * v_ac + truth**2 * v_cc)
    has_value = is_bounded & (has_signal | is_clear)
    return Look(
        num_updates=n,
        truth=truth,
        low=(half_linear - root) / quadratic,
        high=(half_linear + root) / quadratic,
        value=a / c,
        is_bounded=is_bounded,
        has_value=has_value,
        is_resolved=has_value & is_ready & (z >= CONFIRMED_Z),
        is_resolved_by_itself=is_bounded & (z >= RESOLVED_Z),
        holds_truth=off[0] <= q_sq * off[1],
    )


@dataclass(frozen=True)
class FirstMoments:
    """The first look at which each run was resolved.

    Attributes:
        share_resolved: Of the runs, within the steps.
        coverage: Of those, intervals that held the truth.
        under_half: Of those, values under half the truth.
        median_step: Of all runs; infinite if half of them were not resolved.
    """

    share_resolved: float
    coverage: float
    under_half: float
    median_step: float


def first_moments(rng, setting, *, runs, steps, every=1, rules=("is_resolved",), blocks=None) -> list[FirstMoments]:
    """Look at simulated runs after every step until each is resolved, by each of the rules; `blocks` as in `looks`."""
    trace, square = simulated_terms(rng, setting, runs=runs, steps=steps)
    first = np.full((len(rules), runs), math.inf)
    held, under = np.zeros((2, len(rules), runs), bool)
    true_square = grad_sq_norm_of(setting.drift, steps)
    true_trace = np.full(steps, setting.noise_over_batch)
    for look in looks(trace, square, true_trace, true_square, every=every, blocks=blocks):
        for rule, name in enumerate(rules):
            new = np.isinf(first[rule]) & getattr(look, name)
            first[rule][new] = look.num_updates
            held[rule][new] = ((look.low <= look.truth) & (look.truth <= look.high))[new]
            under[rule][new] = (look.value < look.truth / 2)[new]
        if np.isfinite(first).all():
            break
    done = np.isfinite(first)
    return [
        FirstMoments(done[rule].mean(), *_means_of(held[rule], under[rule], done[rule]), float(np.median(first[rule])))
        for rule in range(len(rules))
    ]


def _means_of(held, under, done):
    return (held[done].mean(), under[done].mean()) if done.any() else (math.nan, math.nan)
