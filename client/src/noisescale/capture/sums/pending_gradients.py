"""The gradients of the running backward, held until they are reduced to squared norms."""

# P parameters, N of them with a gradient, C columns (all parameters, then each group)

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from noisescale.capture.sums.row_sums import ParameterRows, RowsPart, RowSums
from noisescale.kernels.squared_norms import SMALL, condense, values_that_count

LEAST_PENDING, MOST_PENDING = 32 << 20, 1 << 30
"""Bytes of gradients held at most on an accelerator before they are reduced: a quarter of all, between these, until
there turns out to be room for all. A sum takes the host a third of a millisecond: with 32 MiB for all, a step of 1.3e9
parameters took 1.7 times as long, eight micro-batches of 2,048 tokens on an H200."""

LOOKS_FOR_ROOM, LOOKS_AFTER, LOOK_EVERY = 64, 8, 64
"""Backward passes after which it is looked whether all may wait; and, where they do, whether that has taken memory:
after each of the first, and then after one in so many."""

SETTLED_AFTER = 4
"""Times that everything was forgotten, as at the end of each step: an optimizer makes its state in the first, and what
a training uses at most is known no earlier."""

MOST_OF_MEMORY = 0.9
"""Of what a device could give this process: more than that nothing of ours makes it use."""

PLAIN = Tensor, nn.Parameter
"""Types of parameters whose gradients are held without a look at them."""

NO_TASK = -2
"""No backward; torch counts them from 0, and calls none -1."""

OnReduce = Callable[[Sequence[int], Sequence[Tensor]], None]
OnGradient = Callable[[Tensor], None]


def most_pending(num_bytes: int) -> int:
    """Bytes of gradients that may wait.

    Args:
        num_bytes: Of all gradients.
    """
    return min(max(LEAST_PENDING, num_bytes // 4), MOST_PENDING)


class DeviceMemory(NamedTuple):
    """Bytes of a device that this process uses now, that it has used at most, and that it could use."""

    now: int
    most: int
    limit: int


def memory_of(device: torch.device) -> DeviceMemory | None:
    """The memory of a device; None where it is not counted, as by allocators of others."""
    if device.type != "cuda":
        return None
    try:
        free, _ = torch.cuda.mem_get_info(device)
        limit = torch.cuda.memory_reserved(device) + free
        return DeviceMemory(torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device), limit)
    except RuntimeError:
        return None


class PendingGradients:
    """Gradients of one small batch.

    A gradient is held as `detach()`: that leaves autograd free to hand its memory on to `p.grad`, as it does without
    us. So it must be reduced before the next backward adds to that memory. On the CPU a large gradient is reduced at
    once to the norms of its rows: held, its memory could not be used again within the backward, and fresh memory costs
    more than the norm. On an accelerator all may wait for the end of the backward, as one sum costs the host less than
    four: activations are most often gone by then. It is tried where all together would find room beside the most that
    was ever in use, and given up for good where more is in use then than before.

    Args:
        parameters: In the order of their indices.
        on_reduce: Told about each group of gradients while it is reduced.
        rows: Sum squared norms up; None: of each parameter.

    Attributes:
        held: Those that wait, by the index of their parameter.
        most_bytes: That may wait.
        on_reduce: As given; it may change from step to step.
        plain_task: The backward that runs, where each gradient of it may simply be held; `NO_TASK` else.
    """

    def __init__(
        self, parameters: Sequence[Tensor], on_reduce: OnReduce | None = None, rows: RowSums | None = None
    ) -> None:
        self._rows = rows or ParameterRows(len(parameters))
        self._bytes = [p.numel() * p.element_size() for p in parameters]
        self.most_bytes = most_pending(sum(self._bytes))
        self._device = parameters[0].device
        self._looks_for_room = LOOKS_FOR_ROOM
        self._most_before: int | None = None
        self._num_whole = self._num_cleared = 0
        self._reduces_at_once = [p.is_cpu and p.numel() > SMALL for p in parameters]
        self._are_plain = [type(p) in PLAIN for p in parameters]
        self.on_reduce = on_reduce
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._num_cleared += 1
        self.held: list[Tensor | None] = [None] * len(self._bytes)
        self._held_bytes = 0
        self._condensed: set[int] = set()
        self._reduced: list[RowsPart] = []
        self._reduced_indices: set[int] = set()
        self.is_complete = True
        self.plain_task = NO_TASK

    @property
    def is_empty(self) -> bool:
        """Whether the backward has handed nothing over yet."""
        return not self._held_bytes and not self._condensed and not self._reduced

    def holds(self, index: int) -> bool:
        """Whether a gradient of this parameter waits to be reduced."""
        return self.held[index] is not None

    def has_seen(self, index: int) -> bool:
        """Whether the small batch has had a gradient of this parameter before."""
        return self.held[index] is not None or index in self._reduced_indices

    def hook(self, index: int, otherwise: Callable[[Tensor], None], current_task: Callable[[], int]) -> OnGradient:
        """What takes the gradients of a parameter: those of `plain_task` in one call, as there are many of them.

        Args:
            index: Of the parameter.
            otherwise: Takes all others; never raises.
            current_task: Which backward runs.
        """
        if self._reduces_at_once[index] or not self._are_plain[index]:
            return otherwise
        num_bytes = self._bytes[index]

        def hold(gradient: Tensor) -> None:
            if (
                type(gradient) is not Tensor  # None, where a function of the user's gives none
                or self.plain_task != current_task()
                or self.held[index] is not None
                or index in self._reduced_indices
                or self._held_bytes > self.most_bytes
            ):
                otherwise(gradient)
                return
            self.held[index] = gradient.detach()
            self._held_bytes += num_bytes

        return hold

    def add_reduced(self, part: RowsPart, gradients: Sequence[Tensor]) -> None:
        """Take gradients whose squared norms somebody else has summed up."""
        if not self._reduced_indices.isdisjoint(part.indices):
            self.is_complete = False  # as in `add`
        self._reduced.append(part)
        self._reduced_indices.update(part.indices)
        if self.on_reduce is not None:
            self.on_reduce(part.indices, gradients)

    def add(self, index: int, gradient: Tensor, *, may_reduce: bool) -> None:
        """Hold a gradient; one that is there already is added to, out of place: it may be the memory of `p.grad`.

        Args:
            index: Of the parameter.
            gradient: As autograd computed it, before it is added to `p.grad`.
            may_reduce: Reduce early when much is held. Not where the small batch has several backward passes.
        """
        if index in self._condensed or index in self._reduced_indices:
            # Reentrant checkpointing hands a shared parameter's gradient over in parts: squares of parts do not add.
            self.is_complete = False
        held = self.held[index]
        if held is not None:
            self.held[index] = held + gradient.detach() if index not in self._condensed else held
            return
        if may_reduce and self._reduces_at_once[index]:
            self.held[index] = condense(values_that_count(gradient))
            self._condensed.add(index)
            if self.on_reduce is not None:
                self.on_reduce([index], [gradient])
            return
        self.held[index] = gradient.detach()
        self._held_bytes += self._bytes[index]
        if may_reduce and self._held_bytes > self.most_bytes:
            self._reduce_held()

    def keep(self, gradients: Sequence[Tensor | None]) -> None:
        """Copy what lies in the memory of `p.grad`, before somebody writes there."""
        for index, (held, gradient) in enumerate(zip(self.held, gradients, strict=True)):
            if held is None or gradient is None or not held.layout == gradient.layout == torch.strided:
                continue
            if held.data_ptr() == gradient.data_ptr():
                self.held[index] = held.clone()

    def take(self) -> tuple[set[int], Tensor] | None:
        """The parameters that had a gradient and the row of their squared norms; then forget."""
        early = sum(self._bytes[index] for index in self._reduced_indices)
        now = self._memory_if_due(is_early=bool(self._reduced))
        self._reduce_held()
        if now is not None:
            self._decide(now, early)
        reduced, indices = self._reduced, self._reduced_indices
        self._reduced, self._reduced_indices = [], set()
        return (indices, self._rows.row(reduced)) if reduced else None

    def _memory_if_due(self, *, is_early: bool) -> DeviceMemory | None:
        """The memory in use at the end of a backward, where it is to be looked at; None else.

        Args:
            is_early: Gradients were reduced before the end.
        """
        if self._most_before is not None:
            self._num_whole += 1
            is_due = self._num_whole <= LOOKS_AFTER or self._num_whole % LOOK_EVERY == 0
        else:
            is_due = is_early and self._looks_for_room > 0 and self._num_cleared >= SETTLED_AFTER
            self._looks_for_room -= is_due
        return memory_of(self._device) if is_due else None

    def _decide(self, memory: DeviceMemory, early: int) -> None:
        """Let all wait from now on, or no longer.

        Args:
            memory: At the end of a backward, before the last sum.
            early: Bytes of gradients that were reduced before.
        """
        whole = sum(self._bytes)
        if self._most_before is not None:
            if memory.most > self._most_before:  # checkpointing computes activations anew beside them, or others grow
                self.most_bytes, self._most_before, self._looks_for_room = most_pending(whole), None, 0
        elif memory.now + early <= memory.most and memory.most + whole <= MOST_OF_MEMORY * memory.limit:
            self.most_bytes, self._most_before = whole, memory.most

    def _reduce_held(self) -> None:
        indices = [index for index, held in enumerate(self.held) if held is not None]
        if not indices:
            return
        held = [gradient for gradient in self.held if gradient is not None]
        condensed, self._condensed = self._condensed, set()
        self.held = [None] * len(self._bytes)
        self._held_bytes = 0
        parts = held
        if not self._rows.reads_as_they_lie:
            parts = [
                part if index in condensed else condense(values_that_count(part))
                for index, part in zip(indices, held, strict=True)
            ]
        self._reduced.append(self._rows.part(indices, parts))
        self._reduced_indices.update(indices)
        if self.on_reduce is not None:
            whole = [(index, part) for index, part in zip(indices, held, strict=True) if index not in condensed]
            self.on_reduce([index for index, _ in whole], [part for _, part in whole])
