"""In which section of the loop a backward pass runs: what it counts for."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the training loop.

    Attributes:
        is_marked: Inside `micro_batch()`: all backward passes of the section are one small batch.
        is_ignored: Inside `ignore()`: they are part of none.
    """

    is_marked: bool = False
    is_ignored: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether each backward is a small batch of its own."""
        return not (self.is_marked or self.is_ignored)
