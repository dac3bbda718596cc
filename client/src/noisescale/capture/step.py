"""The optimizer step that runs: idle, measured or logged, and what leads from one to the next.

begin ──▶ Idle ───────────────────── log ──▶ Logged ──▶ (the next step begins)
begin ──▶ Measuring ── gather … ──── log ──▶ Logged
              ▲                                │  the gradients were cleared, and no optimizer step was made:
              └──────────── start_anew ────────┘  an AMP scaler skipped it, or the loop itself
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from noisescale.capture.kinds.kind import Kind
from noisescale.capture.sums.device_values import HeldNorms
from noisescale.capture.sums.small_batches import SmallBatchSize

if TYPE_CHECKING:
    from noisescale.capture.data_parallel.rank_sums import RankSum

Indices = Set[int]

NO_INDICES: Indices = frozenset()


# What the small batches of one optimizer step so far say about its gradient.


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


# In which section of the loop a backward pass runs: what it counts for.


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the training loop.

    Attributes:
        is_marked: Inside `micro_batch()`: all backward passes of the section are one small batch.
        is_ignored: Inside `ignore()`: they are part of none.
    """

    is_marked: bool = False
    is_ignored: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether each backward is a small batch of its own."""
        return not (self.is_marked or self.is_ignored)


@dataclass(frozen=True, slots=True)
class Idle:
    """The step is not measured, and not logged yet.

    Attributes:
        gathered: What the next measured step begins with: no small batch.
        may_pass: No step before it is on its way but those held, so it can be logged in passing.
    """

    gathered: Gathered
    may_pass: bool


@dataclass(frozen=True, slots=True)
class Measuring:
    """The step is measured, and not logged yet.

    Attributes:
        gathered: Its small batches so far.
        follows_logged: It follows a logged step that no optimizer step has ended, and is not numbered yet.
    """

    gathered: Gathered
    follows_logged: bool = False


@dataclass(frozen=True, slots=True)
class Logged:
    """The step was logged, and nothing has happened since that makes it another one.

    Attributes:
        gathered: Its small batches.
        norms: Σ |s|² of each and |ḡ|² of the gradient that the optimizer will see, [K + 1, C]; None where these were
            not measured, are multiplied by a loss scaler's scale, or the gradient has more small batches by now.
    """

    gathered: Gathered
    norms: Tensor | HeldNorms | None = None


State = Idle | Measuring | Logged


class Step:
    """Holds the state of the step and the section of the loop; they change here and nowhere else.

    Args:
        gathered: What the first step begins with.

    Attributes:
        section: What a backward pass counts for that ends now; changed by `mark()` and `ignore()` alone. A plain
            attribute, as each gradient asks for it.
    """

    def __init__(self, gathered: Gathered) -> None:
        self._state: State = Measuring(gathered)
        self.section = Section()

    @property
    def state(self) -> State:
        """Idle, measuring or logged."""
        return self._state

    @property
    def gathered(self) -> Gathered:
        """The small batches so far."""
        return self._state.gathered

    @property
    def is_logged(self) -> bool:
        """Whether the step was logged."""
        return isinstance(self._state, Logged)

    @property
    def norms(self) -> Tensor | HeldNorms | None:
        """Those of a step that was logged; see `Logged`."""
        return self._state.norms if isinstance(self._state, Logged) else None

    # ---- the step

    def begin(self, gathered: Gathered) -> None:
        """An optimizer step has ended; the next is measured."""
        self._state = Measuring(gathered)

    def rest(self, *, may_pass: bool) -> None:
        """An optimizer step has ended; the next is not measured.

        Args:
            may_pass: No step before it is on its way but those held.
        """
        self._state = Idle(self._state.gathered, may_pass)

    def start_anew(self, gathered: Gathered) -> None:
        """The gradients were cleared: what comes now belongs to another step, with the same number or the next."""
        state = self._state
        if isinstance(state, Idle):
            self._state = Idle(gathered, state.may_pass)
        else:
            self._state = Measuring(gathered, isinstance(state, Logged) or state.follows_logged)

    def gather(self, gathered: Gathered) -> None:
        """More is known of the small batches."""
        state = self._state
        if isinstance(state, Measuring):
            self._state = Measuring(gathered, state.follows_logged)
        elif isinstance(state, Logged) and gathered is not state.gathered:
            self._state = Logged(gathered)  # the norms are those of the gradient before

    def log(self, norms: Tensor | HeldNorms | None = None) -> None:
        """The step is logged with these norms; see `Logged`."""
        self._state = Logged(self._state.gathered, norms)

    def number(self) -> bool:
        """Whether this step counts as one more, because a logged one before it has had no end; true once."""
        state = self._state
        if not (isinstance(state, Measuring) and state.follows_logged):
            return False
        self._state = Measuring(state.gathered)
        return True

    # ---- the section

    def mark(self, is_marked: bool) -> None:
        """All backward passes from here on are one small batch, or no longer."""
        self.section = replace(self.section, is_marked=is_marked)

    def ignore(self, is_ignored: bool) -> None:
        """Backward passes from here on are left out, or no longer."""
        self.section = replace(self.section, is_ignored=is_ignored)
