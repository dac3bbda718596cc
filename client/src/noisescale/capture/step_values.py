"""One step's numbers as a single vector on its way from the device to the host, and back out of it."""

# K entries, C columns (all parameters, then each group)

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

import torch
from torch import Tensor

from noisescale.capture.kinds.kind import Kind
from noisescale.capture.small_batches import (
    NUM_SIZE_SUMS,
    SmallBatchSize,
    are_late,
    sum_late_sizes,
    sum_sizes,
    weighted_sums,
)
from noisescale.capture.step_norms import SizeSums, StepNorms, StepSizes, Weighting, resolve_sizes
from noisescale.estimators.noise_scale import Terms

if TYPE_CHECKING:
    from noisescale.capture.data_parallel.rank_part import StepParts

Tag = TypeVar("Tag")


@dataclass(frozen=True, slots=True)
class GradientState:
    """What is known about a step's gradients when it is logged.

    Attributes:
        adds_up: The gradient is the sum of the small batches.
        is_partial: Some parameters had a gradient in some small batches only.
        is_summed_loss: The loss is a sum over the examples.
        is_unscaled: A loss scaler has already divided the step's gradient by its scale.
        weighting: How the loop weighs its small batches.
    """

    adds_up: bool = True
    is_partial: bool = False
    is_summed_loss: bool = False
    is_unscaled: bool = False
    weighting: Weighting = "by_size"


@dataclass(frozen=True, slots=True)
class SentStep(Generic[Tag]):
    """A step whose vector is on its way; says what lies where in it.

    Attributes:
        tag: Comes back with the norms.
        batch_size: As the caller gave it.
        sizes: Sums over the small batches, where the host knows them; None: they travel in the vector.
        num_columns: C; 0 where no norms were measured.
        state: Of the gradients.
        has_scale: The scale of a loss scaler is in the vector.
        kind_lengths: Numbers of each further kind, by name.
        loss: Where the host knows it.
        has_device_loss: The loss is in the vector.
        over_ranks: The sums over the ranks of a data-parallel job; None: the vector holds those of this process.
    """

    tag: Tag
    batch_size: float | None
    sizes: SizeSums | None
    num_columns: int
    state: GradientState
    has_scale: bool = False
    kind_lengths: Mapping[str, int] = field(default_factory=dict)
    loss: float | None = None
    has_device_loss: bool = False
    over_ranks: "StepParts | None" = None

    @property
    def is_there(self) -> bool:
        """Whether nothing but its vector may be on its way."""
        return self.over_ranks is None or self.over_ranks.are_there


def weigh(
    sq_norm_KC: Tensor, sizes: Sequence[SmallBatchSize], batch_size: float | None, weighting: Weighting
) -> tuple[list[Tensor], SizeSums | None]:
    """The weighted sums of a step's small batches, and their sizes where the host knows them.

    Returns:
        Either [W] and sizes, or, where sizes are known to the device alone, Σ |s|², Σ |s|² / n and six size sums.
    """
    if are_late(sizes):
        return [*weighted_sums(sq_norm_KC, sizes), sum_late_sizes(sizes, sq_norm_KC)], None
    sums = sum_sizes(sizes)
    if resolve_sizes(sums, batch_size).are_equal or weighting == "equal":
        counted = [index for index, size in enumerate(sizes) if size.num_examples != 0]
        if len(counted) < len(sizes):
            sq_norm_KC = torch.stack([sq_norm_KC[index] for index in counted]) if counted else sq_norm_KC[:0]
        return [sq_norm_KC.sum(0).mul_(sums.num)], sums
    return [weighted_sums(sq_norm_KC, sizes)[1].mul_(sums.size)], sums


def read_step(sent: SentStep[Tag], values: Sequence[float], kinds: Mapping[str, Kind]) -> tuple[Tag, StepNorms]:
    """The norms of a step from the numbers that have arrived.

    Undoes what scales both norms: a loss summed over N examples N², a loss scaler S².

    Args:
        sent: What lies where.
        values: The numbers.
        kinds: Turn their own numbers into terms.
    """
    reader = _Reader(values)
    found = _of_this_process(sent, reader) if sent.over_ranks is None else _of_all_ranks(sent.over_ranks, sent)
    sizes = resolve_sizes(found.sizes, sent.batch_size)
    is_equal = sizes.are_equal or sent.state.weighting == "equal"
    big = found.big or reader.take(sent.num_columns)
    kind_values = {name: reader.take(length) for name, length in sent.kind_lengths.items()}
    scale = reader.take(1)[0] if sent.has_scale else 1.0
    loss = reader.take(1)[0] if sent.has_device_loss else sent.loss
    weighted, rank = found.weighted(is_equal), found.rank(is_equal)
    if sizes.num_small_batches < 2 or sizes.batch_size is None or not found.adds_up:
        weighted, big, kind_values, rank = (), (), {}, None
    per_example = sizes.batch_size / found.averages_over if sent.state.is_summed_loss and sizes.batch_size else 1.0
    factor = (per_example * scale) ** 2
    big_factor = per_example**2 if sent.state.is_unscaled and not found.big else factor
    return sent.tag, StepNorms(
        sizes,
        [w / factor for w in weighted] if factor != 1.0 else weighted,
        [b / big_factor for b in big] if big_factor != 1.0 else big,
        loss,
        weighting=sent.state.weighting,
        adds_up=found.adds_up,
        is_partial=found.is_partial,
        kind_terms=_terms_of_kinds(kinds, kind_values, sizes, per_example * scale),
        num_ranks=1 if sent.over_ranks is None else sent.over_ranks.num_ranks,
        rank_sq_norm=None if rank is None else rank / factor,
        is_compressed=sent.over_ranks is not None and sent.over_ranks.is_compressed,
        is_averaged=found.is_averaged,
        are_sums_lost=found.are_lost,
    )


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums over the small batches of a step, as contributions to its gradient.

    Attributes:
        sizes: Of the small batches.
        adds_up: As in `GradientState`.
        is_partial: As in `GradientState`.
        weighed: K Σ |s|² or N Σ |s|² / n, where it was weighed before it was sent; else the two without the factor:
        equal: Σ |s|².
        sized: Σ |s|² / n.
        big: |ḡ|², where it is not in the step's own vector.
        num_ranks: R.
        averages_over: What gradients were divided by when they were averaged over ranks.
        is_averaged: As in `StepNorms`.
        are_lost: The sums over ranks never came.
        rank_equal: Σ |c|² over the ranks, c what each adds to the gradient.
        rank_sized: Σ |c|² / n, n its examples.
    """

    sizes: SizeSums
    adds_up: bool
    is_partial: bool
    weighed: Sequence[float] | None = None
    equal: Sequence[float] = ()
    sized: Sequence[float] = ()
    big: Sequence[float] = ()
    num_ranks: int = 1
    averages_over: float = 1.0
    is_averaged: bool = True
    are_lost: bool = False
    rank_equal: float | None = None
    rank_sized: float | None = None

    def weighted(self, is_equal: bool) -> Sequence[float]:
        """W of each column."""
        if self.weighed is not None:
            return self.weighed
        return [self.sizes.num * q for q in self.equal] if is_equal else [self.sizes.size * q for q in self.sized]

    def rank(self, is_equal: bool) -> float | None:
        """The same with each rank as one small batch."""
        if self.rank_equal is None or self.rank_sized is None:
            return None
        return self.num_ranks * self.rank_equal if is_equal else self.sizes.size * self.rank_sized


def _of_this_process(sent: SentStep[Tag], reader: "_Reader") -> _Sums:
    c, state = sent.num_columns, sent.state
    if sent.sizes is not None:
        return _Sums(sent.sizes, state.adds_up, state.is_partial, weighed=reader.take(c))
    equal, sized = reader.take(c), reader.take(c)
    sizes = SizeSums(*reader.take(NUM_SIZE_SUMS))
    return _Sums(sizes, state.adds_up, state.is_partial, equal=equal, sized=sized)


def _of_all_ranks(parts: "StepParts", sent: SentStep[Tag]) -> _Sums:
    step = parts.read()
    if step is None:
        assert sent.sizes is not None
        are_lost = bool(parts.parts)  # else nothing was averaged in this step
        sizes = SizeSums(num=parts.num_ranks) if are_lost else sent.sizes
        return _Sums(sizes, adds_up=False, is_partial=False, weighed=(), are_lost=are_lost)
    return _Sums(
        step.sizes,
        adds_up=sent.state.adds_up and step.adds_up and step.is_averaged,
        is_averaged=step.is_averaged,
        is_partial=step.is_partial,
        equal=step.equal_sq_norms,
        sized=step.sized_sq_norms,
        big=step.big_sq_norms or (),
        num_ranks=parts.num_ranks,
        averages_over=parts.averages_over,
        rank_equal=step.rank_sq_norm,
        rank_sized=step.sized_rank_sq_norm,
    )


def _terms_of_kinds(
    kinds: Mapping[str, Kind], kind_values: Mapping[str, Sequence[float]], sizes: StepSizes, scale: float
) -> dict[str, Terms]:
    found = {}
    for name, values in kind_values.items():
        assert sizes.batch_size is not None
        terms = kinds[name].terms(
            values, num_small_batches=sizes.num_small_batches, batch_size=sizes.batch_size, scale=scale
        )
        if terms is not None:
            found[name] = terms
    return found


class _Reader:
    """Takes numbers from the front of a vector."""

    def __init__(self, values: Sequence[float]) -> None:
        self._values = values
        self._position = 0

    def take(self, length: int) -> Sequence[float]:
        taken = self._values[self._position : self._position + length]
        self._position += length
        return taken
