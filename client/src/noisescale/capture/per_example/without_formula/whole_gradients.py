"""Squared norms of gradients that are computed example by example, as no formula is known."""

# B examples, b examples of a slice

from collections.abc import Sequence

import torch
from torch import Tensor

from noisescale.capture.per_example.checksum import Checksum
from noisescale.capture.per_example.contributions import WholeGradients, slices, wide
from noisescale.capture.per_example.row_sq_norms import row_sq_norms

DOUBLE_BYTES = 8


def whole_sq_norms(contributions: Sequence[WholeGradients], checksum: Checksum | None, device: torch.device) -> Tensor:
    """[B] fp64: squared norm of each example's summed gradient."""
    first = contributions[0]
    parts = []
    for start, stop in slices(first.num_examples, 2 * DOUBLE_BYTES * first.num_elements, device):
        sum_b = torch.zeros(())
        for contribution in contributions:
            gradient_b = contribution.gradients(start, stop)
            gradient_b = gradient_b.to(wide(gradient_b.dtype))
            if checksum is not None:
                checksum.add_gradients(gradient_b, contribution.dtype)
            sum_b = gradient_b if contribution is first else sum_b + gradient_b
        parts.append(row_sq_norms(sum_b.reshape(stop - start, -1)))
    return torch.cat(parts)
