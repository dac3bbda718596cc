"""One step's numbers as a single vector on its way from the device to the host, and back out of it.

The vector holds, one after the other and each only where there is one: Σ |s|² of each entry and column, |ḡ|² of each
column, the sizes that the device alone knows, the numbers of further kinds, the loss scale, whether the gradient has
other values than the backward left, its distances to the gradients before it, the loss. What they mean together is
worked out on the host: there a sum over small batches costs less than a call to a device.
"""

# K entries, C columns (all parameters, then each group)

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import mul
from typing import TYPE_CHECKING, Generic, TypeVar, cast

import torch
from torch import Tensor

from noisescale.capture.kinds.kind import Kind
from noisescale.capture.small_batches.held_rows import HeldNorms
from noisescale.capture.small_batches.small_batches import SmallBatchSize, sum_sizes, weights_of
from noisescale.capture.values.gradient_state import GradientState
from noisescale.capture.values.step_norms import SizeSums, StepNorms, StepSizes, resolve_sizes
from noisescale_core.estimators.dual_norm_noise_scale import Bracket
from noisescale_core.estimators.neighbouring_steps import StepDistances
from noisescale_core.estimators.noise_scale import Terms
from noisescale_core.estimators.order_of_passes import Contrasts, contrasts
from noisescale_core.estimators.size_weighting import SizeSlope, size_slope

if TYPE_CHECKING:
    from noisescale.capture.data_parallel.rank_part import StepParts

Tag = TypeVar("Tag")

NO_KINDS: Mapping[str, int] = {}

EQUAL_NORMS = 1e-6
"""Share by which squared norms of the same gradient may differ, computed twice on a device that adds in any order.
Different examples differ by about 1e-3 even where noise is a millionth of the gradient."""


@dataclass(frozen=True, slots=True)
class SentStep(Generic[Tag]):
    """A step whose vector is on its way; says what lies where in it.

    Attributes:
        tag: Comes back with the norms.
        batch_size: As the caller gave it.
        sizes: Of the entries.
        num_rows: Rows of norms in the vector, the last of them |ḡ|²; the others belong to the entries.
        num_columns: C.
        state: Of the gradients.
        has_scale: The scale of a loss scaler is in the vector.
        has_other_values: Whether the gradient has other values is in the vector.
        kind_lengths: Numbers of each further kind, by name.
        loss: Where the host knows it.
        has_device_loss: The loss is in the vector.
        num_distances: How many gradients of steps before it this one was compared with; None: it was not looked at.
        distance_columns: Layers in which they were.
        over_ranks: The sums over the ranks of a data-parallel job; None: the vector holds those of this process.
    """

    tag: Tag
    batch_size: float | None
    sizes: Sequence[SmallBatchSize]
    num_rows: int
    num_columns: int
    state: GradientState
    has_scale: bool = False
    kind_lengths: Mapping[str, int] = field(default_factory=dict)
    loss: float | None = None
    has_device_loss: bool = False
    has_other_values: bool = False
    num_distances: int | None = None
    distance_columns: Sequence[int] = ()
    over_ranks: "StepParts | None" = None

    @property
    def is_there(self) -> bool:
        """Whether nothing but its vector may be on its way."""
        return self.over_ranks is None or self.over_ranks.are_there


def pack_step(
    tag: Tag,
    *,
    batch_size: float | None,
    sizes: Sequence[SmallBatchSize],
    norms: Tensor | HeldNorms | None,
    kinds: Sequence[Kind],
    scale: Tensor | None,
    other_values: Tensor | None,
    loss: Tensor | float | None,
    state: GradientState,
    distances: tuple[Sequence[int], Tensor] | None = None,
    over_ranks: "StepParts | None",
) -> tuple[SentStep[Tag], Tensor | HeldNorms]:
    """A step and its vector; held norms are the whole vector where nothing else belongs to it.

    Args:
        tag: Comes back with the norms.
        batch_size: As the caller gave it.
        sizes: Of the entries.
        norms: Σ |s|² of each entry and then |ḡ|², [K + 1, C], or |ḡ|² alone, [1, C].
        kinds: Further kinds that have seen the step.
        scale: Of a loss scaler, [1].
        other_values: 1 where the gradient has other values than the last backward left, [1]; None: not known.
        loss: One number, anywhere.
        state: Of the gradients.
        distances: The columns in which the gradient was compared with those of steps before it, and
            `RecentGradients.look()`.
        over_ranks: The sums over the ranks of a data-parallel job.
    """
    parts: list[Tensor] = []
    num_rows = num_columns = 0
    held: HeldNorms | None = None
    if norms is not None:
        num_rows, num_columns = norms.shape
        if isinstance(norms, HeldNorms):
            held = norms
        else:
            parts.append(norms.reshape(-1))
        if over_ranks is None:
            late = [size.num_examples for size in sizes if isinstance(size.num_examples, Tensor)]
            parts += [number.detach().reshape(1).to(torch.float64) for number in late]
    kind_lengths = NO_KINDS
    if kinds:
        of_kinds = {kind.name: kind.values(scale=1.0) for kind in kinds}
        kind_lengths = {name: values.numel() for name, values in of_kinds.items()}
        parts += of_kinds.values()
    if scale is not None:
        parts.append(scale)
    if other_values is not None:
        parts.append(other_values)
    if distances is not None:
        parts.append(distances[1])
    has_device_loss = False
    if isinstance(loss, Tensor):
        # detach first: a number out of a tensor that requires a gradient warns
        loss = loss.detach()
        has_device_loss = not loss.is_cpu
        if has_device_loss:
            parts.append(loss.double().reshape(1))
    sent = SentStep(
        tag,
        batch_size,
        sizes,
        num_rows,
        num_columns,
        state,
        scale is not None,
        kind_lengths,
        None if loss is None or has_device_loss else float(loss),
        has_device_loss,
        other_values is not None,
        None if distances is None else distances[1].numel(),
        () if distances is None else distances[0],
        over_ranks,
    )
    if held is not None:
        if not parts:
            return sent, held
        parts.insert(0, held.tensor().reshape(-1))
    return sent, parts[0] if len(parts) == 1 else torch.cat(parts) if parts else torch.empty(0)


def read_step(sent: SentStep[Tag], values: Sequence[float], kinds: Mapping[str, Kind]) -> tuple[Tag, StepNorms]:
    """The norms of a step from the numbers that have arrived.

    Undoes what scales both norms: a loss summed over N examples N², a loss scaler S².

    Args:
        sent: What lies where.
        values: The numbers.
        kinds: Turn their own numbers into terms.
    """
    reader = _Reader(values)
    state, ranks = sent.state, sent.over_ranks
    found = _of_this_process(sent, reader) if ranks is None else _of_all_ranks(ranks, sent, reader)
    sizes = found.sizes
    kind_values = {name: reader.take(length) for name, length in sent.kind_lengths.items()}
    kind_terms: Mapping[str, Terms] = {}
    scale = reader.take(1)[0] if sent.has_scale else 1.0
    has_other_values = sent.has_other_values and reader.take(1)[0] > 0
    adds_up = found.adds_up and not has_other_values
    half_sq_distances = None if sent.num_distances is None else reader.take(sent.num_distances)
    loss = reader.take(1)[0] if sent.has_device_loss else sent.loss
    weighted, contributions, big, rank = found.weighted, found.contributions, found.big, found.rank
    if sizes.num_small_batches < 2 or sizes.batch_size is None or not adds_up:
        weighted, contributions, big, kind_values, rank = (), (), (), {}, None
    per_example = sizes.batch_size / found.averages_over if state.is_summed_loss and sizes.batch_size else 1.0
    if per_example != 1.0 or scale != 1.0:
        factor = (per_example * scale) ** 2
        big_factor = per_example**2 if state.is_unscaled and not found.is_big_early else factor
        weighted, contributions = [w / factor for w in weighted], [c / factor for c in contributions]
        big = [b / big_factor for b in big]
        rank = None if rank is None else rank / factor
    distances: StepDistances | None = None
    if half_sq_distances is not None and weighted and (sizes.are_equal or state.weighting == "by_size"):
        excess = sum(weighted[column] - big[column] for column in sent.distance_columns)
        distances = StepDistances(
            [distance / per_example**2 for distance in half_sq_distances], excess / (sizes.num_small_batches - 1)
        )
    if kind_values:
        kind_terms = _terms_of_kinds(kinds, kind_values, sizes, per_example * scale)
    return sent.tag, StepNorms(
        sizes,
        weighted,
        big,
        loss,
        contributions,
        weighting=state.weighting,
        adds_up=adds_up,
        is_partial=found.is_partial,
        kind_terms=kind_terms,
        kind_brackets=_brackets(kinds, kind_values.keys() - kind_terms.keys()),
        num_ranks=1 if ranks is None else ranks.num_ranks,
        rank_sq_norm=rank,
        is_compressed=ranks is not None and ranks.is_compressed,
        is_averaged=found.is_averaged,
        are_sums_lost=found.are_lost,
        is_coupled=state.is_coupled,
        is_proxy=state.is_proxy,
        has_equal_norms=found.has_equal_norms,
        size_slope=found.size_slope if weighted else None,
        contrasts=found.contrasts if weighted else None,
        distances=distances,
        reason=state.reason,
    )


def weigh(values: Sequence[float], num_columns: int, weights: Sequence[float]) -> list[float]:
    """Σ weight · value over the rows of each column; a row of weight 0 counts for nothing, whatever is in it.

    Args:
        values: Row by row.
        num_columns: In each row.
        weights: Of the rows.
    """
    if not all(weights):
        kept = [row for row, weight in enumerate(weights) if weight]
        values = [value for row in kept for value in values[row * num_columns : (row + 1) * num_columns]]
        weights = [weights[row] for row in kept]
    return [sum(map(mul, weights, values[column::num_columns])) for column in range(num_columns)]


@dataclass(frozen=True, slots=True)
class _Found:
    """What a step's small batches add up to, as contributions to its gradient.

    Attributes:
        sizes: Of the small batches.
        adds_up: As in `GradientState`.
        is_partial: As in `GradientState`.
        weighted: W of each column.
        contributions: Σ |p_k g_k|² of each column, where sizes differ.
        big: |ḡ|² of each column.
        rank: W of all parameters with each rank as one small batch; None of one process.
        is_big_early: |ḡ|² was measured at the end of a backward, so before the gradients were unscaled.
        averages_over: What gradients were divided by when they were averaged over ranks.
        is_averaged: As in `StepNorms`.
        are_lost: The sums over ranks never came.
        has_equal_norms: As in `StepNorms`.
        size_slope: As in `StepNorms`.
        contrasts: As in `StepNorms`.
    """

    sizes: StepSizes
    adds_up: bool
    is_partial: bool
    weighted: Sequence[float] = ()
    contributions: Sequence[float] = ()
    big: Sequence[float] = ()
    rank: float | None = None
    is_big_early: bool = False
    averages_over: float = 1.0
    is_averaged: bool = True
    are_lost: bool = False
    has_equal_norms: bool = False
    size_slope: SizeSlope | None = None
    contrasts: Contrasts | None = None


def _of_this_process(sent: SentStep[Tag], reader: "_Reader") -> _Found:
    rows = reader.take(max(0, sent.num_rows - 1) * sent.num_columns)
    big = reader.take(sent.num_columns)
    entries = [
        replace(size, num_examples=reader.take(1)[0]) if isinstance(size.num_examples, Tensor) else size
        for size in sent.sizes
    ]
    sums = sum_sizes(entries)
    sizes = resolve_sizes(sums, sent.batch_size)
    weights = weights_of(entries, sums, is_equal=sizes.are_equal or sent.state.weighting == "equal")
    weighted = weigh(rows, sent.num_columns, weights)
    contributions: Sequence[float] = ()
    slope = None
    of_each = rows[:: sent.num_columns or 1]
    if not sizes.are_equal:
        slope = _slope(of_each, entries)
        contributions = weigh(rows, sent.num_columns, [float(weight > 0) for weight in weights])
    return _Found(
        sizes,
        sent.state.adds_up,
        sent.state.is_partial,
        weighted,
        contributions,
        big,
        has_equal_norms=sizes.are_equal and are_equal_norms(of_each, entries),
        size_slope=slope,
        contrasts=contrasts(of_each) if sizes.are_equal and all(entry.num_small == 1 for entry in entries) else None,
    )


def _slope(sq_norms: Sequence[float], entries: Sequence[SmallBatchSize]) -> SizeSlope | None:
    if any(entry.num_small > 1 for entry in entries):
        return None
    return size_slope(sq_norms, [cast(float, entry.num_examples) for entry in entries])


def are_equal_norms(sq_norms: Sequence[float], entries: Sequence[SmallBatchSize]) -> bool:
    """Whether single small batches have the same squared norm, as only the same gradient does.

    16-bit gradients are added up with so much rounding that their sum does not show it.
    """
    if len(sq_norms) < 2 or entries[0].num_small > 1:
        return False
    largest = max(sq_norms)
    return largest - min(sq_norms) <= EQUAL_NORMS * largest


def _of_all_ranks(parts: "StepParts", sent: SentStep[Tag], reader: "_Reader") -> _Found:
    step = parts.read()
    big = reader.take(sent.num_columns)
    if step is None:
        are_lost = bool(parts.parts)  # else nothing was averaged in this step
        sums = SizeSums(num=parts.num_ranks if are_lost else len(sent.sizes))
        return _Found(resolve_sizes(sums, sent.batch_size), adds_up=False, is_partial=False, are_lost=are_lost)
    sums = step.sizes
    sizes = resolve_sizes(sums, sent.batch_size)
    is_equal = sizes.are_equal or sent.state.weighting == "equal"
    rank = None
    if step.rank_sq_norm is not None and step.sized_rank_sq_norm is not None:
        rank = parts.num_ranks * step.rank_sq_norm if is_equal else sums.size * step.sized_rank_sq_norm
    of_each, factor = (step.equal_sq_norms, sums.num) if is_equal else (step.sized_sq_norms, sums.size)
    return _Found(
        sizes,
        adds_up=sent.state.adds_up and step.adds_up and step.is_averaged,
        is_partial=step.is_partial,
        weighted=[factor * value for value in of_each],
        contributions=() if sizes.are_equal else step.equal_sq_norms,
        big=step.big_sq_norms or big,
        rank=rank,
        is_big_early=step.big_sq_norms is not None,
        averages_over=parts.averages_over,
        is_averaged=step.is_averaged,
        size_slope=None if sizes.are_equal else step.size_slope,
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


def _brackets(kinds: Mapping[str, Kind], names: Iterable[str]) -> dict[str, Bracket]:
    found = {name: kinds[name].bracket() for name in names}
    return {name: bracket for name, bracket in found.items() if bracket is not None}


class _Reader:
    """Takes numbers from the front of a vector."""

    def __init__(self, values: Sequence[float]) -> None:
        self._values = values
        self._position = 0

    def take(self, length: int) -> Sequence[float]:
        taken = self._values[self._position : self._position + length]
        self._position += length
        return taken
