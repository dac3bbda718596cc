"""Which parameters are checked against autograd in which backward, and what becomes of those that fail."""

# b groups of examples, P covered parameters

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from noisescale.capture.per_example.checksum import Checksum, Signs

NUM_PROVING_BACKWARDS = 2
"""Backward passes at the start whose checks are read at once, which waits for the device. Later ones are not waited
for: what does not add up then comes out as NaN."""

SMALL = 2**15
"""Elements from which a parameter is checked at every backward."""

CHECK_EVERY = 16
"""Smaller ones are at every 16th; one that fails there comes out as NaN until it passes again."""


class SumChecks:
    """The checks that the contributions to each parameter add up to its gradient.

    Args:
        parameters: By name.
        shapes: Of each, as its layer's rule sees it.

    Attributes:
        num_backwards: Those that were checked and settled.
    """

    def __init__(self, parameters: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.num_backwards = 0
        self._parameters = dict(parameters)
        self._shapes = shapes
        self._signs: dict[str, Signs] = {}
        self._mismatches: dict[str, Tensor] = {}
        self.clear()

    def clear(self) -> None:
        """Forget the checks of the running backward."""
        self._new_mismatches: dict[str, Tensor] = {}

    def begin(self, name: str) -> Checksum | None:
        """The sums of a parameter that is checked in this backward; of a small one most often None."""
        # the check of a small one takes as long as all else; on a GPU that of a large one, where a kernel does the rest
        parameter = self._parameters[name]
        is_checked = (
            self.num_backwards < NUM_PROVING_BACKWARDS
            or self.num_backwards % CHECK_EVERY == 0
            or (parameter.numel() >= SMALL and parameter.is_cpu)
        )
        if not is_checked:
            return None
        if name not in self._signs:
            self._signs[name] = Signs(self._shapes[name], self._parameters[name])
        return Checksum(self._signs[name])

    def end(self, name: str, checksum: Checksum, gradient: Tensor, sq_norm_b: Tensor) -> None:
        """Compare; nobody waits for the answer."""
        mismatch = checksum.mismatches(gradient, sq_norm_b)
        before = self._new_mismatches.get(name)
        self._new_mismatches[name] = mismatch if before is None else mismatch | before

    def settle(self) -> list[str]:
        """Close a backward: the parameters that failed in it, as long as the checks are read at once."""
        failed: list[str] = []
        if self.num_backwards < NUM_PROVING_BACKWARDS and self._new_mismatches:
            wrong = torch.stack([mismatch.cpu() for mismatch in self._new_mismatches.values()]).tolist()
            failed = [name for name, is_wrong in zip(self._new_mismatches, wrong, strict=True) if is_wrong]
        self.num_backwards += 1
        self._mismatches |= self._new_mismatches
        return failed

    def prove_anew(self) -> None:
        """Read the checks of the next backward passes at once again."""
        self.num_backwards = 0

    def forget(self, name: str) -> None:
        """A parameter is not measured any more."""
        self._mismatches.pop(name, None)

    def with_nan(self, sq_norm_bP: Tensor, names: Iterable[str]) -> Tensor:
        """The same squared norms, written over with NaN where the newest check of a parameter has failed."""
        if not self._mismatches:
            return sq_norm_bP
        device = sq_norm_bP.device
        matches = torch.zeros((), dtype=torch.bool, device=device)
        flags = [self._mismatches.get(name, matches).to(device, non_blocking=True) for name in names]
        return sq_norm_bP.masked_fill_(torch.stack(flags), torch.nan)
