"""What the small batches of one optimizer step so far say about its gradient."""

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from noisescale.capture.kinds.kind import Kind
from noisescale.capture.sums.small_batches import SmallBatchSize

if TYPE_CHECKING:
    from noisescale.capture.data_parallel.rank_sums import RankSum

Indices = Set[int]

NO_INDICES: Indices = frozenset()


class Gathered(NamedTuple):
    """The small batches so far: a value, so that a new step begins with none of the step before.

    A tuple, as one is made for each small batch: a frozen dataclass of as many fields takes 2 µs more.

    Attributes:
        kinds: The further kinds of noise scale that this step can give terms of.
        sizes: Of the entries: a small batch each, or several that come summed.
        sq_norm_rows: Σ |s|² of each entry, where it is kept as a row.
        over_ranks: The sums over ranks of the entries that were handed over, in data-parallel jobs.
        adds_up: The gradient is still the sum of the small batches.
        reason: Why a backward could not be taken apart into small batches; None where each could.
        last: Parameters that had a gradient in the last small batch.
        before_last: Those of the small batch before it.
        was_partial: `is_partial` before the last small batch.
    """

    kinds: tuple[Kind, ...] = ()
    sizes: tuple[SmallBatchSize, ...] = ()
    sq_norm_rows: tuple[Tensor, ...] = ()
    over_ranks: tuple["RankSum", ...] = ()
    adds_up: bool = True
    reason: str | None = None
    last: Indices = NO_INDICES
    before_last: Indices = NO_INDICES
    was_partial: bool = False

    @classmethod
    def nothing(cls, kinds: Sequence[Kind]) -> "Gathered":
        """What a step begins with: no small batch, and those of these kinds that are ready, cleared."""
        ready = tuple(kind for kind in kinds if kind.is_ready())
        for kind in ready:
            kind.clear()
        return cls(ready)

    @property
    def is_partial(self) -> bool:
        """Whether some parameters had a gradient in some small batches only."""
        return self.was_partial or (bool(self.before_last) and self.last != self.before_last)

    def with_small_batches(self, indices: Indices, sizes: Sequence[SmallBatchSize], *rows: Tensor) -> "Gathered":
        """More small batches, in each of which these parameters had a gradient."""
        kinds, before, before_rows, over_ranks, adds_up, reason, last, _, _ = self
        all_sizes, all_rows = (*before, *sizes), before_rows + rows
        return Gathered(kinds, all_sizes, all_rows, over_ranks, adds_up, reason, indices, last, self.is_partial)

    def with_entries(self, entries: Sequence[tuple[Tensor, SmallBatchSize]]) -> "Gathered":
        """More entries, of a backward that was taken apart."""
        return self._replace(
            sizes=(*self.sizes, *(size for _, size in entries)),
            sq_norm_rows=(*self.sq_norm_rows, *(row for row, _ in entries)),
        )

    def with_last_joined(self, indices: Indices, *rows: Tensor) -> "Gathered":
        """The last small batch had these parameters, too; the kinds have closed it already, and give no terms."""
        kept, last = self.sq_norm_rows[:-1], self.sq_norm_rows[-1:]
        joined = tuple(before + row for before, row in zip(last, rows, strict=True))
        return self._replace(last=self.last | indices, sq_norm_rows=kept + joined, kinds=())

    def without_kinds(self) -> "Gathered":
        """No further kind gives terms any more."""
        return self._replace(kinds=()) if self.kinds else self

    def doubted(self, reason: str | None = None, *, adds_up: bool = False) -> "Gathered":
        """The gradient is not the sum of the small batches, or their sizes are not known.

        Args:
            reason: Why, where a backward could not be taken apart.
            adds_up: It is the sum all the same.
        """
        adds_up, reason = self.adds_up and adds_up, reason or self.reason
        if adds_up == self.adds_up and reason == self.reason:
            return self
        return self._replace(adds_up=adds_up, reason=reason)

    def handed_over(self) -> "Gathered":
        """Their entries were handed over, to be added over ranks; the step goes on."""
        return self._replace(sizes=(), sq_norm_rows=())

    def with_sum_over_ranks(self, rank_sum: "RankSum") -> "Gathered":
        """What was handed over is part of this sum."""
        return self._replace(over_ranks=(*self.over_ranks, rank_sum))
