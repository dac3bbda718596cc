"""Gradient norms of runs at equal loss, and the noise scale between them."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, stdev

from noisescale_core.estimators.between_runs import MIN_SIZE_RATIO, BetweenRuns, SizedNorm, between_runs
from noisescale_importers.answers.summary import NormBlock, Summary

NUM_LOSSES = 8
MIN_BLOCKS = 4
"""Of a run near a loss: fewer have no spread of their own."""

SMOOTHED = 3
SMOOTHED_SHARE = 0.1
"""Blocks to either side over which a loss is averaged, or so large a share of those before: single steps at a low loss
are lucky ones."""

SKIPPED = 0.1
"""Share of each run's steps at its start, where the gradient falls faster than the loss."""


@dataclass(frozen=True, slots=True)
class AtLoss:
    """The noise scale between runs near one loss.

    Attributes:
        loss: Mean training loss there of the runs with the largest batch.
        batch_sizes: Of the runs.
        estimate: The noise scale.
    """

    loss: float
    batch_sizes: tuple[float, ...]
    estimate: BetweenRuns


def noise_scales(summaries: Sequence[Summary]) -> list[AtLoss]:
    """The noise scale at losses that runs of several batch sizes pass; empty where there are none."""
    series = [(batch, blocks) for one in summaries if not one.norms.are_clipped for batch, blocks in _series(one)]
    if not series:
        return []
    lows = sorted((min(loss for loss, _ in blocks), max(loss for loss, _ in blocks)) for _, blocks in series)
    low, high = min(one[0] for one in lows), max(one[1] for one in lows)
    if not 0 < low < high:
        return []
    edges = [low * (high / low) ** (k / NUM_LOSSES) for k in range(NUM_LOSSES + 1)]
    found: list[tuple[float, list[SizedNorm]]] = []
    for bottom, top in pairwise(edges):
        here = _near(series, bottom, top)
        sizes = [one.batch_size for _, one in here]
        if sizes and max(sizes) >= MIN_SIZE_RATIO * min(sizes):
            largest = [loss for loss, one in here if one.batch_size == max(sizes)]
            found.append((fmean(largest), [one for _, one in here]))
    estimates = between_runs([norms for _, norms in found])
    return [
        AtLoss(loss, tuple(sorted({one.batch_size for one in norms})), estimate)
        for (loss, norms), estimate in zip(found, estimates, strict=True)
    ]


def _near(
    series: Sequence[tuple[float, list[tuple[float, NormBlock]]]], bottom: float, top: float
) -> list[tuple[float, SizedNorm]]:
    """For each run that passes these losses, its loss and norm there."""
    found = []
    for batch, blocks in series:
        inside = [(loss, block) for loss, block in blocks if bottom <= loss < top and block.sum_sq_norm > 0]
        if len(inside) >= MIN_BLOCKS:
            norms = [block.sq_norm for _, block in inside]
            mean = fmean(norms)
            error = stdev(norms) / mean / math.sqrt(len(norms))
            found.append((fmean(loss for loss, _ in inside), SizedNorm(batch, mean, error)))
    return found


def _series(summary: Summary) -> list[tuple[float, list[tuple[float, NormBlock]]]]:
    """The blocks of a run by batch size, each with its smoothed loss: a run with a ramp has several."""
    skipped = int(len(summary.norms.blocks) * SKIPPED)
    blocks = summary.norms.blocks[skipped:]
    of_batch: dict[float, list[NormBlock]] = defaultdict(list)
    for block in blocks:
        of_batch[block.batch].append(block)
    found = []
    for batch, own in of_batch.items():
        smoothed = []
        for k, block in enumerate(own):
            width = max(SMOOTHED, int(SMOOTHED_SHARE * (skipped + k)))
            smoothed.append((fmean(one.loss for one in own[max(0, k - width) : k + width + 1]), block))
        if len(smoothed) >= MIN_BLOCKS:
            found.append((batch, smoothed))
    return found
