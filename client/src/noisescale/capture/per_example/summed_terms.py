"""Squared norms of gradients that are vectors: biases, and the weights of normalisations."""

# B examples, b examples of a slice, T positions, D elements

from collections.abc import Sequence

import torch
from torch import Tensor

from noisescale.capture.per_example.checksum import Checksum
from noisescale.capture.per_example.contributions import SummedTerms, slices, wide
from noisescale.capture.per_example.row_sq_norms import row_sq_norms

DOUBLE_BYTES = 8


def summed_sq_norms(contributions: Sequence[SummedTerms], checksum: Checksum | None, device: torch.device) -> Tensor:
    """[B] fp64: squared norm of each example's summed terms."""
    first = contributions[0]
    if first.sq_norm_B is not None and len(contributions) == 1 and checksum is None:
        return first.sq_norm_B
    elements_an_example = first.num_elements * sum(contribution.num_positions for contribution in contributions)
    parts = []
    for start, stop in slices(first.num_examples, 3 * DOUBLE_BYTES * elements_an_example, device):
        sum_bD = torch.zeros(())
        for contribution in contributions:
            term_bTD = contribution.terms(start, stop)
            dtype = wide(term_bTD.dtype)
            if checksum is not None or term_bTD.is_cpu:
                term_bTD = term_bTD.to(dtype)
            if checksum is not None:
                checksum.add_terms(term_bTD, contribution.dtype)
            # a device widens while it adds up; a CPU is quicker with a copy
            part_bD = term_bTD.sum(1, dtype=dtype) if contribution.num_positions > 1 else term_bTD[:, 0].to(dtype)
            sum_bD = part_bD if contribution is first else sum_bD + part_bD
        parts.append(row_sq_norms(sum_bD))
    return torch.cat(parts) if len(parts) > 1 else parts[0]
