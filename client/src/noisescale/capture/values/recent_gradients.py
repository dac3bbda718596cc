"""Keeps the last steps' gradients of a few small layers, to see how far those of neighbouring steps are apart."""

# L lags, E elements that are compared

from collections import deque
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from noisescale.capture.sources.gradient_source import GradientSource
from noisescale.capture.sums.small_batches import SmallBatchSize, total_size
from noisescale_core.estimators.neighbouring_steps import LAGS

MAX_ELEMENTS = 2**14
"""Elements that are kept of a gradient: four times 64 KiB, and some 60 µs a step on a CPU."""

MAX_STEPS = 256
"""Steps that are compared; then nothing is kept any more."""


class RecentGradients:
    """The gradients of the last steps, of whole layers from the smallest on.

    Args:
        parameters: Those that are measured.
        group_of_parameter: Index of each one's layer; -1 for none.
        source: Takes the steps apart.
    """

    def __init__(self, parameters: Sequence[Tensor], group_of_parameter: Sequence[int], source: GradientSource) -> None:
        self._parameters = parameters
        self._source = source
        self._members: dict[int, list[int]] = {}
        for index, group in enumerate(group_of_parameter):
            if group >= 0:
                self._members.setdefault(group, []).append(index)
        self._num_looks = self._num_dropped = 0
        self._choose()

    def _choose(self) -> None:
        """Take whole layers of real numbers on one device, the smallest first."""
        left_out = set(self._source.dropped)
        self._num_dropped = len(left_out)
        device = self._parameters[0].device
        left_out |= {i for i, p in enumerate(self._parameters) if p.is_complex() or p.device != device}
        sizes = {
            group: sum(self._parameters[index].numel() for index in members)
            for group, members in self._members.items()
            if not left_out & set(members)
        }
        self._columns: list[int] = []
        self._chosen: list[Tensor] = []
        room = MAX_ELEMENTS
        for group in sorted(sizes, key=sizes.__getitem__):
            room -= sizes[group]
            if room < 0:
                break
            self._columns.append(1 + group)
            self._chosen += [self._parameters[index] for index in self._members[group]]
        self._forget()

    def _forget(self) -> None:
        self._kept: deque[Tensor] = deque(maxlen=len(LAGS))
        self._size: float | None = None

    def look(self, sizes: Sequence[SmallBatchSize]) -> tuple[Sequence[int], Tensor] | None:
        """½ |ḡ_t - ḡ_(t-k)|² of this step and each one kept, the newest first.

        None where it is not looked at. A step of another size, and those after it, are compared with none before.

        Args:
            sizes: Of the step's small batches.

        Returns:
            The columns of the step's norms that belong to the layers that are compared, and the distances, [L] fp64.
        """
        if len(self._source.dropped) != self._num_dropped:
            self._choose()
        gradients = list(self._gradients())
        size = total_size(list(_on_the_host(sizes)))
        if not self._columns or self._num_looks >= MAX_STEPS or len(gradients) < len(self._chosen) or size is None:
            self._forget()
            return None
        if size != self._size:
            self._forget()
            self._size = size
        self._num_looks += 1
        gradient_E = torch.cat(gradients)
        distance_L = gradient_E.new_zeros(0, dtype=torch.float64)
        if self._kept:
            apart_LE = torch.stack(list(self._kept)).sub_(gradient_E)
            distance_L = apart_LE.square_().sum(1, dtype=torch.float64).mul_(0.5)
        self._kept.appendleft(gradient_E)
        return self._columns, distance_L

    def _gradients(self) -> Iterator[Tensor]:
        for parameter in self._chosen:
            if parameter.grad is not None and parameter.grad.layout == torch.strided:
                yield parameter.grad.detach().reshape(-1).float()


def _on_the_host(sizes: Sequence[SmallBatchSize]) -> Iterator[float | None]:
    for size in sizes:
        yield None if isinstance(size.num_examples, Tensor) else size.num_examples
