"""Squared norms of many tensors to 1e-6 relative, by whatever is quickest where they are, without waiting for it."""

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from noisescale.kernels.choice import takes_triton
from noisescale.kernels.list_sums import DTYPES, MultiTensor
from noisescale.kernels.memory import contiguous_addresses, sizes_and_types
from noisescale.kernels.multi_tensor import naive
from noisescale.kernels.multi_tensor.naive import (
    BUFFER,
    MAX_LISTS,
    ROW,
    SMALL,
    condense,
    dense_values,
    values_that_count,
)
from noisescale.kernels.operations import Operation
from noisescale.kernels.preference import PREFERENCE, Kernels

# P tensors; F elements, S segments of one flat tensor

__all__ = [
    "BUFFER",
    "ROW",
    "SMALL",
    "condense",
    "dense_values",
    "sq_norms_of_condensed",
    "squared_norms",
    "values_that_count",
]


_READ = frozenset(DTYPES)


def squared_norms(tensors: Sequence[Tensor]) -> Tensor:
    """Σ x² of each tensor, fp64, shape [P], on the device of the first.

    Never synchronises with the host, except that an uncoalesced sparse tensor on CUDA has to be coalesced.

    Args:
        tensors: Any shape, dtype and layout; empty and sparse ones too. At least one.
    """
    device = tensors[0].device
    if takes_triton(PREFERENCE.kernels, device, Operation.SQ_NORMS) and len(set(map(Tensor.get_device, tensors))) == 1:
        addresses = contiguous_addresses(tensors)
        numels, dtypes = sizes_and_types(tensors)
        if addresses is not None and _READ.issuperset(dtypes):
            sums = _multi_tensor(numels, dtypes, device).sq_norms_at(addresses)
            if sums is not None:
                return sums.sq_norm[: len(tensors)]
    return sq_norms_of_condensed([condense(values_that_count(tensor)) for tensor in tensors])


def sq_norms_of_condensed(condensed: Sequence[Tensor]) -> Tensor:
    """Σ x² of each, fp64, [P]; what `condense` gave is as good as the tensor itself."""
    devices = {values.device for values in condensed}
    if len(devices) == 1:
        return _sq_norms_on(devices.pop(), condensed)
    target = condensed[0].device
    sq_norms: list[Tensor] = [torch.empty(())] * len(condensed)
    for device in devices:
        indices = [i for i, values in enumerate(condensed) if values.device == device]
        parts = _sq_norms_on(device, [condensed[i] for i in indices]).to(target, non_blocking=True)
        for i, part in zip(indices, parts.unbind(), strict=True):
            sq_norms[i] = part
    return torch.stack(sq_norms)


def _sq_norms_on(device: torch.device, condensed: Sequence[Tensor]) -> Tensor:
    if takes_triton(PREFERENCE.kernels, device, Operation.SQ_NORMS):
        numels, dtypes = sizes_and_types(condensed)
        if _READ.issuperset(dtypes):
            return _multi_tensor(numels, dtypes, device).sq_norms(condensed).sq_norm[: len(condensed)]
    return naive.sq_norms_on_one_device(condensed)


@lru_cache(maxsize=MAX_LISTS)
def _multi_tensor(numels: tuple[int, ...], dtypes: tuple[torch.dtype, ...], device: torch.device) -> MultiTensor:
    return MultiTensor(numels, dtypes, device)


# Σ x² of the parts of one flat tensor, in one pass: what communication packs many gradients into.


class FlatSegments:
    """Sums over the segments of flat tensors of one length, call after call.

    The tensor is a row of pieces, and a segment may have several, wherever they lie: a reduce-scatter takes for each
    rank in turn its piece of every parameter.

    Args:
        lengths: Elements of each piece, in the order in which they lie.
        segment_of_piece: Index of each piece's segment; -1 for none.
        num_segments: S.
        dtype: Of the flat tensor: one that `MultiTensor` knows.
        device: Where it is.
        kernels: See `MultiTensor`.

    Raises:
        ValueError: For lists of unequal lengths, a segment or a type that there is not.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        segment_of_piece: Sequence[int],
        num_segments: int,
        *,
        dtype: torch.dtype,
        device: torch.device | str,
        kernels: Kernels | None = None,
    ) -> None:
        self._lengths = list(lengths)
        self._segments = slice(len(self._lengths), len(self._lengths) + num_segments)
        dtypes = [dtype] * len(self._lengths)
        self._pieces = MultiTensor(lengths, dtypes, device, segment_of_piece, num_segments, kernels)

    def sq_norms(self, flat: Tensor) -> Tensor:
        """Σ x² of each segment, fp64 [S], without waiting for the device.

        Args:
            flat: [F], contiguous; zeros that fill it up change nothing.

        Raises:
            ValueError: Unless it is as long as all pieces, and of the type that was announced.
        """
        if flat.numel() != sum(self._lengths):
            raise ValueError(f"flat must have {sum(self._lengths)} elements, got {flat.numel()}")
        return self._pieces.sq_norms(flat.split(self._lengths)).sq_norm[self._segments]
