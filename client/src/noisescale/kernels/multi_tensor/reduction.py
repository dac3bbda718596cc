"""What sums up lists of tensors, whichever way."""

from typing import Protocol

from torch import Tensor

from noisescale.kernels.operations import Lists, Operation, PlainLists


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

    def sums_at(self, operation: Operation, lists: PlainLists) -> Tensor:
        """`sums` of tensors that need not be looked at one by one.

        Args:
            operation: What to sum up.
            lists: Where they begin.
        """
        ...
