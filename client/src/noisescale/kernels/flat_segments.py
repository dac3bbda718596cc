"""Σ x² of the parts of one flat tensor, in one pass: what communication packs many gradients into."""

# F elements, S segments

from collections.abc import Sequence

import torch
from torch import Tensor

from noisescale.kernels.list_sums import MultiTensor
from noisescale.kernels.preference import Kernels


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
