"""Squared norms that wait to be computed together with those of the next steps.

Code that runs once a step is slow: the training has pushed it out of the processor's caches. Eight steps at once cost
little more than one.
"""

# K rows of all steps that are held, C columns

import time
from collections.abc import Callable

from torch import Tensor

HELD_SECONDS = 0.1
"""How late the norms of a step may be; steps that come less often than this are not held."""


class HeldNorms:
    """Σ g² of neighbouring rows that will be reduced together with those of other steps.

    Stands in for a vector on its way, and for the event that says that it has arrived.

    Args:
        rows: Where the rows lie.
        num_rows: How many.
        num_columns: C.
    """

    __slots__ = ("_first", "_rows", "shape")

    def __init__(self, rows: "HeldRows", num_rows: int, num_columns: int) -> None:
        self._rows = rows
        self._first = rows.num_rows
        self.shape = num_rows, num_columns

    def query(self) -> bool:
        """Whether the rows have been reduced; those that are due are reduced now."""
        return self._rows.is_reduced or (self._rows.is_due() and self._rows.reduce())

    def synchronize(self) -> None:
        """Reduce the rows now."""
        if not self._rows.is_reduced:
            self._rows.reduce()

    def tensor(self) -> Tensor:
        """[K, C] fp64; reduces the rows now."""
        self.synchronize()
        return self._rows.sq_norm_KC[self._first : self._first + self.shape[0]]

    def tolist(self) -> list[float]:
        """Row by row."""
        self.synchronize()
        num_rows, num_columns = self.shape
        return self._rows.values[self._first * num_columns : (self._first + num_rows) * num_columns]


class HeldRows:
    """Rows that are reduced together.

    Args:
        reduce: From the number of rows to Σ g² of each, [K, C] fp64.
        capacity: Rows that there is room for.
        deadline: When they are to be reduced at the latest, by `time.perf_counter()`.

    Attributes:
        num_rows: K of all steps so far.
        sq_norm_KC: Σ g², fp64, once they are reduced.
        values: The same row by row.
    """

    def __init__(self, reduce: Callable[[int], Tensor], capacity: int, deadline: float) -> None:
        self.num_rows = 0
        self.is_reduced = False
        self._reduce = reduce
        self._capacity = capacity
        self._deadline = deadline
        self._num_newest = 0

    def add(self, num_rows: int) -> None:
        """Count the rows of a step."""
        self._num_newest = num_rows
        self.num_rows += num_rows

    def has_room(self, num_rows: int) -> bool:
        """Whether the rows of another step may be held as well."""
        return not self.is_reduced and self.num_rows + num_rows <= self._capacity

    def is_due(self) -> bool:
        """Whether there is no room for another step like the newest, or its time has come."""
        return not self.has_room(self._num_newest) or time.perf_counter() >= self._deadline

    def reduce(self) -> bool:
        """Add the squares up; True."""
        self.sq_norm_KC = self._reduce(self.num_rows)
        self.values: list[float] = self.sq_norm_KC.flatten().tolist()
        self.is_reduced = True
        return True
