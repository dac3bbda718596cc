"""One step's numbers as a single vector on its way from the device to the host, and back out of it."""

# K entries, C columns (all parameters, then each group)

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

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
    c = sent.num_columns
    sums = sent.sizes
    weighted: Sequence[float] = ()
    if sums is None:
        equal, sized = reader.take(c), reader.take(c)
        sums = SizeSums(*reader.take(NUM_SIZE_SUMS))
    elif c:
        weighted = reader.take(c)
    sizes = resolve_sizes(sums, sent.batch_size)
    if sent.sizes is None:
        use_equal = sizes.are_equal or sent.state.weighting == "equal"
        weighted = [sums.num * q for q in equal] if use_equal else [sums.size * q for q in sized]
    big = reader.take(c)
    kind_values = {name: reader.take(length) for name, length in sent.kind_lengths.items()}
    scale = reader.take(1)[0] if sent.has_scale else 1.0
    loss = reader.take(1)[0] if sent.has_device_loss else sent.loss
    if sizes.num_small_batches < 2 or sizes.batch_size is None or not sent.state.adds_up:
        weighted, big, kind_values = (), (), {}
    per_example = sizes.batch_size if sent.state.is_summed_loss and sizes.batch_size else 1.0
    factor = (per_example * scale) ** 2
    big_factor = per_example**2 if sent.state.is_unscaled else factor
    return sent.tag, StepNorms(
        sizes,
        [w / factor for w in weighted] if factor != 1.0 else weighted,
        [b / big_factor for b in big] if big_factor != 1.0 else big,
        loss,
        weighting=sent.state.weighting,
        adds_up=sent.state.adds_up,
        is_partial=sent.state.is_partial,
        kind_terms=_terms_of_kinds(kinds, kind_values, sizes, per_example * scale),
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
