"""Sends this rank's part of a step's sums at the end of each synchronised backward."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from noisescale.capture.data_parallel.job import DataParallelJob
from noisescale.capture.data_parallel.rank_part import StepParts, lost_part, rank_part
from noisescale.capture.small_batches.accumulation import Accumulation
from noisescale.capture.sums.row_sums import column_sums
from noisescale.capture.sums.small_batches import SmallBatchSize

if TYPE_CHECKING:
    from noisescale.capture.data_parallel.rank_sums import RankSums


class RankExchange:
    """Between the accumulation of one rank and the sums over all.

    Every rank runs the same backward passes, so every rank sends the same number of parts, whatever becomes of them.

    Args:
        job: With more than one rank.
        sums: The job's.
        accumulation: Of this rank.
        step: Number of the current optimizer step, the same on every rank.
    """

    def __init__(
        self, job: DataParallelJob, sums: "RankSums", accumulation: Accumulation, step: Callable[[], int]
    ) -> None:
        self._job = job
        self._sums = sums
        self._accumulation = accumulation
        self._step = step
        self._own_sq_norm_P: Tensor | None = None
        self._averaging: Tensor | None = None
        self._was_blind = False
        self._is_due = False

    def before_averaging(self) -> None:
        """At the end of a backward, before others write averaged gradients over this rank's own."""
        if not self._job.has_shards:
            self._own_sq_norm_P = self._job.own_sq_norms()
        if self._accumulation.step.section.is_marked:
            self._accumulation.keep_pending()

    def end_of_backward(self) -> None:
        """At the very end of a backward."""
        if self._job.has_shards:
            self._own_sq_norm_P = self._job.own_sq_norms()
        self._was_blind = self._job.is_blind
        is_synchronised = self._job.is_synchronising()
        self._averaging = self._job.averaging_values()
        section = self._accumulation.step.section
        if section.is_ignored or not is_synchronised:
            return
        self._is_due = True
        if not section.is_marked:
            self.send_if_due()

    def send_if_due(self) -> None:
        """Send the part of a synchronised backward whose small batch is closed now."""
        if not self._is_due:
            return
        self._is_due = False
        accumulation = self._accumulation
        part = lost_part(accumulation.num_columns, has_shards=self._job.has_shards, like=accumulation.member_PC)
        try:
            part = self._part()
        finally:
            rank_sum = self._sums.send(self._step(), part)
            accumulation.step.gather(accumulation.gathered.with_sum_over_ranks(rank_sum))

    def _part(self) -> Tensor:
        accumulation = self._accumulation
        own_P, self._own_sq_norm_P = self._own_sq_norm_P, None
        adds_up = accumulation.gathered.adds_up and not accumulation.gradient.has_ignored and not self._was_blind
        norms_KC, sizes = accumulation.take_small_batches()
        if self._job.is_by_rank:
            adds_up &= own_P is not None and not accumulation.gathered.over_ranks
            norms_KC = torch.zeros_like(norms_KC[:1]) if own_P is None else own_P[None] @ accumulation.member_PC
            sizes = [add_up(sizes)]
        big_sq_norm_C = None
        if self._job.has_shards:
            big_sq_norm_C = column_sums(self._job.local_gradients(), self._job.shares(), accumulation.member_PC)
        return rank_part(
            norms_KC,
            sizes,
            adds_up=adds_up,
            is_partial=accumulation.gathered.is_partial,
            own_sq_norm=None if own_P is None or accumulation.gradient.has_ignored else own_P.sum(),
            averaging=self._averaging,
            big_sq_norm_C=big_sq_norm_C,
        )

    def parts_of_step(self) -> StepParts:
        """What holds the sums of the current step, of which every small batch has to be in one."""
        accumulation, job = self._accumulation, self._job
        gathered = accumulation.gathered
        if gathered.sizes:  # the last backward passes were not synchronised
            accumulation.step.gather(gathered.doubted())
        return StepParts(
            gathered.over_ranks,
            num_columns=accumulation.num_columns,
            num_ranks=job.num_ranks,
            averages_over=job.averages_over,
            has_shards=job.has_shards,
            is_compressed=job.is_compressed,
        )

    def drain(self) -> None:
        """Wait for what is under way, for a few seconds at most."""
        self._sums.drain()

    def advance(self) -> None:
        """Move on what is under way; never waits."""
        self._sums.advance()


def add_up(sizes: Sequence[SmallBatchSize]) -> SmallBatchSize:
    """All of them as one small batch."""
    total: float | Tensor | None = 0.0
    for size in sizes:
        total = None if size.num_examples is None or total is None else total + size.num_examples
    return SmallBatchSize(total, is_marked=bool(sizes) and all(size.is_marked for size in sizes))
