"""What sums up lists of tensors, whichever way."""

from typing import Protocol

from torch import Tensor

from noisescale.kernels.operations import Lists, Operation


class Reduction(Protocol):
    """Sums over lists of tensors of one layout, on one device."""

    @property
    def num_copies(self) -> int:
        """Tensors copied so far, because the kernel cannot read them where they are."""
        ...

    def sums(self, operation: Operation, lists: Lists) -> Tensor:
        """Sums and counts [N, S], fp64, without waiting for the device.

        Args:
            operation: What to sum up; N sums.
            lists: The tensors, each as large as the layout says, or smaller.
        """
        ...


class PlainReduction(Reduction, Protocol):
    """One that reads tensors where they lie, if all are as announced."""

    def sq_norms_at(self, addresses: tuple[int, ...], inverse_scale: Tensor | None) -> Tensor:
        """`sums` of squares of tensors that are all there, contiguous, of the sizes and types of the layout.

        Args:
            addresses: Of each.
            inverse_scale: See `Lists`.
        """
        ...
