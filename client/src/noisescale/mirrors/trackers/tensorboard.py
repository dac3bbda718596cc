"""The noise scale in TensorBoard's event files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter


class TensorboardMirror:
    """Writes scalars.

    Args:
        target: A `SummaryWriter`, which stays the user's to flush and close; a folder for a file of our own; None: the
            folder that `SummaryWriter` takes by default, `runs/<date>_<host>`.
    """

    def __init__(self, target: Any = None) -> None:
        self._is_own = target is None or isinstance(target, Path)
        self._writer = SummaryWriter(target) if self._is_own else target

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Write the values at this step."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        if self._is_own:
            self._writer.flush()  # nobody closes it
