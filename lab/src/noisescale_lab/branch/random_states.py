"""States of the global random generators: Python's, NumPy's and PyTorch's, as far as they are loaded."""

import random
import sys
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RandomStates:
    """The generators at one moment.

    Attributes:
        python: Of `random`.
        numpy: Of `numpy.random`; None where NumPy is not loaded.
        torch: Of PyTorch on the CPU; None where PyTorch is not loaded.
        cuda: Of every CUDA device; empty where CUDA was not used.
    """

    python: Any
    numpy: Any
    torch: Any
    cuda: tuple[Any, ...]

    @classmethod
    def now(cls) -> "RandomStates":
        """The states at this moment."""
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        # asked first: CUDA must not be set up by us
        has_cuda = torch is not None and torch.cuda.is_initialized()
        return cls(
            python=random.getstate(),
            numpy=None if numpy is None else numpy.random.get_state(),
            torch=None if torch is None else torch.get_rng_state(),
            cuda=tuple(torch.cuda.get_rng_state_all()) if torch is not None and has_cuda else (),
        )

    def restore(self) -> None:
        """Put the generators back."""
        random.setstate(self.python)
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        if numpy is not None and self.numpy is not None:
            numpy.random.set_state(self.numpy)
        if torch is not None and self.torch is not None:
            torch.set_rng_state(self.torch)
            if self.cuda:
                torch.cuda.set_rng_state_all(list(self.cuda))


def begin_with(seed: int) -> None:
    """Seed the global generators of Python, NumPy and PyTorch, as far as they are loaded."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    random.seed(seed)
    if numpy is not None:
        numpy.random.seed(seed % 2**32)
    if torch is not None:
        torch.manual_seed(seed)
