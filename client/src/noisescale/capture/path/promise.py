"""Measures what an optimizer's update promises, at looks: see `noisescale_core/estimators/promise.py`.

It stands among the kinds of noise scale that see a step's small batches, in the steps that are looked at only: the
squared norm of one of the small batches, drawn at random, in the metric of the update, goes with the step's norms. One
is enough beside that of their mean, and the others cost nothing. What the optimizer is given in the end, after
clipping, is looked at when its step begins, and goes by itself. Where every coordinate is divided by the same, the
norms of kind `simple` are those of the metric, whatever they come from.
"""

import random
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import torch
from torch import Tensor

from noisescale.capture.data_parallel.job import DataParallelJob
from noisescale.capture.kinds.adam import MIN_STEPS
from noisescale.capture.path import metric
from noisescale.capture.path.affine_updates import Affine, AffineUpdates
from noisescale.capture.path.metric import Part
from noisescale.capture.sums.device_values import DeviceValues
from noisescale_core.estimators.dual_norm_noise_scale import Bracket
from noisescale_core.estimators.noise_scale import Terms

if TYPE_CHECKING:
    from noisescale.capture.path.update_path import UpdatePath

NAME = "promise"
"""Among the kinds."""

MAX_WAITING = 64
"""Looks that nobody has asked for yet."""


class PromiseLook(NamedTuple):
    """What an optimizer was given in a step, and what it remembered.

    Attributes:
        number: Of the update, from 0.
        num_steps: The step that was logged before it, by the watch's count.
        rate: Learning rate of the first group.
        weight: By which |g|² of kind `simple` counts in the metric; None where the step has terms of its own.
        sq_norm: |g|² of the gradient g that the optimizer is given.
        own: The same in the metric.
        past: ε aᵀD⁻¹g.
        steps: Fewest that an optimizer's divisor rests on.
    """

    number: int
    num_steps: int
    rate: float
    weight: float | None
    sq_norm: float
    own: float
    past: float
    steps: float


class _Sent(NamedTuple):
    number: int
    num_steps: int
    rate: float
    weight: float | None


def promise_of(
    parameters: Sequence[Tensor],
    held: Sequence[Tensor],
    optimizer: torch.optim.Optimizer | None,
    job: DataParallelJob,
    *,
    sees_small_batches: bool,
    are_equal: bool,
    may_look: Callable[[], bool],
) -> "StepPromise | None":
    """What an optimizer's updates promise; None where they are not known, or not all that is trained is measured.

    Args:
        parameters: That are measured.
        held: All that the optimizer trains.
        optimizer: Whose updates they are.
        job: That the parameters belong to; where ranks hold shards there is none.
        sees_small_batches: As `StepPromise` has it.
        are_equal: The same.
        may_look: The same.
    """
    if optimizer is None or job.has_shards or not job.is_first or not AffineUpdates.is_known(optimizer):
        return None
    if {id(parameter) for parameter in parameters} != {id(parameter) for parameter in held}:
        return None
    return StepPromise(
        parameters, optimizer, sees_small_batches=sees_small_batches, are_equal=are_equal, may_look=may_look
    )


class StepPromise:
    """What the updates of one optimizer promise; a `Kind` to those who gather small batches.

    Args:
        parameters: All that it updates and that are measured, in the order of their indices.
        optimizer: One that `AffineUpdates.is_known`.
        sees_small_batches: It stands among the kinds; else terms of kind `simple` have to do.
        are_equal: The loop gives each small batch the same weight, whatever its size.
        may_look: Whether a step may be looked at now, as steps may be timed.

    Attributes:
        path: Whose looks say when; None before there is one.
        sees_small_batches: As given.
    """

    name: ClassVar[str] = NAME
    is_biased: ClassVar[bool] = False

    def __init__(
        self,
        parameters: Sequence[Tensor],
        optimizer: torch.optim.Optimizer,
        *,
        sees_small_batches: bool,
        are_equal: bool,
        may_look: Callable[[], bool],
    ) -> None:
        self.path: UpdatePath | None = None
        self._parameters = list(parameters)
        self._updates = AffineUpdates(optimizer)
        group_of = {id(p): number for number, group in enumerate(self._updates.groups) for p in group["params"]}
        self._group_of = [group_of[id(p)] for p in self._parameters]
        self.sees_small_batches, self._may_look = sees_small_batches, may_look
        self._values: DeviceValues[_Sent] = DeviceValues()
        self._logged: int | None = None
        self._is_owed = self._is_working = self._is_broken = False
        self._are_equal = are_equal
        self._num_small_batches = 1
        self.clear()

    # ---- of the kinds

    def clear(self) -> None:
        """Forget the step: a new one begins."""
        self._settings: tuple[object, ...] = ()
        self._affine: dict[int, Affine | None] = {}
        self._is_complete, self._is_measured = True, False
        self._place, self._size, self._total = 0, 0.0, 0.0
        self._small: Tensor | None = None
        number = 0 if self.path is None else self.path.num_updates
        # a generator of our own for each update: the training's is not touched
        self._chosen = random.Random(number).randrange(self._num_small_batches)  # noqa: S311  # no secret

    def is_ready(self) -> bool:
        """Whether the step is to be looked at, and its small batches tell more than those of kind `simple`."""
        return self._is_due() and self._num_small_batches > 1 and self._plain_weight() is None

    def _is_due(self) -> bool:
        path = self.path
        if not self.sees_small_batches or path is None or self._is_working or self._is_broken or not self._may_look():
            return False
        return self._is_owed or path.looks_at_next

    def add(self, indices: Sequence[int], gradients: Sequence[Tensor]) -> None:
        """Take parts of one small batch, if it is the one that was drawn; see `Kind`."""
        if self._place != self._chosen:
            return
        start = self._begin_work()
        parts = self._parts(indices, gradients)
        if parts:
            sq_norm = metric.sq_norm(parts)
            self._small = sq_norm if self._small is None else self._small + sq_norm
        self._end_work(start)

    def end_small_batch(self, size: float) -> None:
        """Close the small batch of n_k examples."""
        if not size > 0:
            if self._place == self._chosen:
                self._small = None
            return
        weight = 1.0 if self._are_equal else size
        if self._place == self._chosen:
            self._size = weight
        self._total += weight
        self._place += 1

    def values(self, *, scale: float) -> Tensor:
        """[|s|² in the metric of the update, p] of the small batch that was drawn."""
        small = self._small
        self._is_measured = small is not None and self._is_complete and 0 < self._size < self._total
        if small is None or not self._is_measured:
            return torch.zeros(2, dtype=torch.float64, device=self._parameters[0].device)
        return torch.stack([small / scale**2, torch.full_like(small, self._size / self._total)])

    def terms(
        self, values: Sequence[float], *, num_small_batches: int, batch_size: float, scale: float = 1.0
    ) -> Terms | None:
        """None: |ḡ|² in the metric goes with what the optimizer is given, and `in_metric` reads the rest."""

    def bracket(self) -> Bracket | None:
        """No noise scale is told."""

    # ---- of the path

    def see_logged(self, num_steps: int | None, num_small_batches: int) -> None:
        """A step was logged.

        Args:
            num_steps: By the watch's count; None where nothing of it was measured, or not its whole gradient.
            num_small_batches: Of it, in this process.
        """
        self._logged, self._num_small_batches = num_steps, max(1, num_small_batches)

    def before_update(self, number: int, *, is_look: bool) -> None:
        """Look at what the optimizer is given, where its small batches are known and the path is looked at.

        Where they are not, as only some steps are measured, the next one that is measured is looked at.

        Args:
            number: Of the update.
            is_look: The path is looked at.
        """
        logged, self._logged = self._logged, None
        if self._is_working or self.path is None or not (is_look or self._is_owed) or self.path.is_captured():
            return
        has_several = not self.sees_small_batches or self._num_small_batches > 1
        if logged is None or not has_several:
            self._is_owed |= has_several
            return
        sent = self._sent(number, logged)
        if sent is None:
            # what the metric of a step is may be known at the next
            self._is_owed = True
            return
        self._is_owed = False
        start = self._begin_work()
        self._look(sent)
        self._end_work(start)

    def _sent(self, number: int, logged: int) -> _Sent | None:
        rates = self._updates.rates()
        if rates is None or self._updates.scales_gradients_itself or len(self._values) >= MAX_WAITING:
            return None
        weight = None
        if not self._is_measured:
            weight = self._plain_weight()
            if weight is None:
                return None
        elif self._settings != self._updates.settings():
            return None
        return _Sent(number, logged, rates[0], weight)

    def _look(self, sent: _Sent) -> None:
        if not self._is_measured:
            self.clear()
        indices = [index for index, p in enumerate(self._parameters) if p.grad is not None]
        parts = self._parts(indices, [g for p in self._parameters if (g := p.grad) is not None])
        if parts:
            found = metric.look_at(parts)
            steps = [one.steps.reshape(()) for one in self._affine.values() if one and one.steps is not None]
            fewest = torch.stack(steps).double().amin() if steps else torch.full_like(found[0], MIN_STEPS)
            self._values.send(sent, torch.cat([found, fewest[None]]))
        self.clear()

    def _plain_weight(self) -> float | None:
        """The weight of all gradients, where each coordinate is divided by the same; else None."""
        if self._updates.has_root:
            return None
        rates = self._updates.rates()
        if rates is None or len(set(rates)) > 1:
            return None
        weights = set()
        for index, parameter in enumerate(self._parameters):
            affine = self._updates.of(parameter, self._updates.groups[self._group_of[index]])
            if affine is None:
                return None
            weights.add(affine.weight)
        weight = weights.pop()
        return None if weights or isinstance(weight, Tensor) else weight

    def _parts(self, indices: Sequence[int], gradients: Sequence[Tensor]) -> list[Part]:
        """Of these gradients; none where the optimizer's state says too little of a parameter."""
        self._settings = self._settings or self._updates.settings()
        rates = self._updates.rates()
        if rates is None:
            self._is_complete = False
        found: list[Part] = []
        unknown = [index for index in indices if index not in self._affine]
        groups = [self._updates.groups[self._group_of[index]] for index in unknown]
        updates = self._updates.of_all([self._parameters[index] for index in unknown], groups)
        self._affine.update(zip(unknown, updates, strict=True))
        for index, gradient in zip(indices, gradients, strict=True):
            group = self._group_of[index]
            affine = self._affine[index]
            self._is_complete = self._is_complete and affine is not None
            if affine is not None and rates is not None and gradient.numel():
                found.append(Part(gradient, affine, rates[group] / rates[0]))
        return found if self._is_complete else []

    # ---- results

    def arrived(self) -> list[PromiseLook]:
        """Looks whose numbers are on the host, oldest first; never waits."""
        return [_look(sent, values) for sent, values in self._values.arrived()]

    def drain(self) -> list[PromiseLook]:
        """All of them; waits for the device."""
        return [_look(sent, values) for sent, values in self._values.drain()]

    def _begin_work(self) -> float:
        self._is_broken |= self._is_working  # after a fault it stays so, and nothing more is looked at
        self._is_working = True
        return time.perf_counter()

    def _end_work(self, start: float) -> None:
        self._is_working = self._is_broken
        if self.path is not None:
            self.path.add_look_seconds(time.perf_counter() - start)


def _look(sent: _Sent, values: Sequence[float]) -> PromiseLook:
    sq_norm, own, past, steps = values
    return PromiseLook(*sent, sq_norm, own, sent.rate * past, steps)
