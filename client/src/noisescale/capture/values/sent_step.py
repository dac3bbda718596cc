"""One step's numbers as a single vector on its way from the device to the host.

The vector holds, one after the other and each only where there is one: Σ |s|² of each entry and column, |ḡ|² of each
column, the sizes that the device alone knows, the numbers of further kinds, the loss scale, whether the gradient has
other values than the backward left, its distances to the gradients before it, the loss. `step_queue.py` reads them in
this order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch
from torch import Tensor

from noisescale.capture.kinds.kind import Kind
from noisescale.capture.step import Gathered
from noisescale.capture.sums.device_values import HeldNorms
from noisescale.capture.sums.small_batches import SmallBatchSize
from noisescale.capture.sums.step_norms import Weighting
from noisescale.capture.watch_options import WatchOptions

if TYPE_CHECKING:
    from noisescale.capture.data_parallel.rank_part import StepParts

# K entries, C columns (all parameters, then each group)

Tag = TypeVar("Tag")

NO_KINDS: Mapping[str, int] = {}


# The factor that a loss scaler puts on all gradients of a step.


class LossScale:
    """Reads a `GradScaler` without waiting for the device.

    Args:
        scaler: None: gradients are not scaled.
        optimizer: The scaler keeps for each optimizer whether it was unscaled.
    """

    def __init__(self, scaler: torch.amp.GradScaler | None, optimizer: torch.optim.Optimizer | None) -> None:
        self._scaler = scaler
        self._optimizer = optimizer

    def now(self) -> Tensor | None:
        """The scale as a vector of one fp64 number, where there is one."""
        if self._scaler is None or not self._scaler.is_enabled():
            return None
        # The public get_scale() waits for the device.
        scale: Tensor | None = self._scaler._scale
        return None if scale is None else scale.detach().double().reshape(1)

    def is_undone(self) -> bool:
        """Whether the step's gradients carry no scale: there is none, or `unscale_()` has been called."""
        if self._scaler is None or not self._scaler.is_enabled():
            return True
        # Only looked at: asking the scaler itself would open an entry for the optimizer.
        state: Any = self._scaler._per_optimizer_states.get(id(self._optimizer))
        return state is not None and state["stage"].name != "READY"


# What is known about a step's gradients when it is logged.


@dataclass(frozen=True, slots=True)
class GradientState:
    """Facts about the gradients of a step.

    Attributes:
        adds_up: The gradient is the sum of the small batches.
        is_partial: Some parameters had a gradient in some small batches only.
        is_summed_loss: The loss is a sum over the examples.
        is_unscaled: A loss scaler has already divided the step's gradient by its scale.
        weighting: How the loop weighs its small batches.
        is_coupled: A BatchNorm was in training mode.
        is_proxy: Only the normalisations were measured.
        reason: Why a backward could not be taken apart.
    """

    adds_up: bool = True
    is_partial: bool = False
    is_summed_loss: bool = False
    is_unscaled: bool = False
    weighting: Weighting = "by_size"
    is_coupled: bool = False
    is_proxy: bool = False
    reason: str | None = None


class GradientStates:
    """The state of each step; one object as long as nothing changes, as most steps are like the one before."""

    def __init__(self, options: WatchOptions) -> None:
        self._options = options
        self._varying: tuple[object, ...] = ()
        self._last = GradientState()

    def of_step(self, gathered: Gathered, *, is_unscaled: bool, are_coupled: bool, estimator: str) -> GradientState:
        """The state of the step that is logged."""
        reason, is_partial = gathered.reason, gathered.is_partial
        varying = gathered.adds_up, is_partial, is_unscaled, are_coupled, reason, estimator
        if varying != self._varying:
            self._varying = varying
            self._last = GradientState(
                adds_up=gathered.adds_up,
                is_partial=is_partial,
                is_summed_loss=self._options.loss_reduction == "sum",
                is_unscaled=is_unscaled,
                weighting=self._options.weighting,
                is_coupled=are_coupled,
                is_proxy=estimator == "layer_norm_proxy",
                reason=reason,
            )
        return self._last


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
