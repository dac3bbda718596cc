"""Squared norm of the sum of all contributions that each example makes to one parameter."""

# B examples

from collections.abc import Sequence

import torch
from torch import Tensor

from noisescale.capture.per_example.checksum import Checksum
from noisescale.capture.per_example.contributions import (
    Contribution,
    OuterProducts,
    SummedTerms,
    TokenRows,
    WholeGradients,
)
from noisescale.capture.per_example.outer_products import joined_products, outer_sq_norms
from noisescale.capture.per_example.summed_terms import summed_sq_norms
from noisescale.capture.per_example.token_rows import cross_terms, joined, token_sq_norms
from noisescale.capture.per_example.without_formula.whole_gradients import whole_sq_norms


def sq_norms_of_sum(contributions: Sequence[Contribution], checksum: Checksum | None, device: torch.device) -> Tensor:
    """[B] fp64: |Σ contributions of example i|², for contributions of the same examples to one parameter.

    Args:
        contributions: Vectors only, whole gradients only, or matrices and lookups only; at least one.
        checksum: Is told every contribution; None: nobody is.
        device: Of the parameter.
    """
    vectors = [contribution for contribution in contributions if isinstance(contribution, SummedTerms)]
    if vectors:
        return summed_sq_norms(vectors, checksum, device)
    wholes = [contribution for contribution in contributions if isinstance(contribution, WholeGradients)]
    if wholes:
        return whole_sq_norms(wholes, checksum, device)
    products = [contribution for contribution in contributions if isinstance(contribution, OuterProducts)]
    lookups = [contribution for contribution in contributions if isinstance(contribution, TokenRows)]
    if not lookups:
        return outer_sq_norms(products, checksum, device)
    lookup = joined(lookups)
    sq_norm_B = token_sq_norms(lookup, checksum)
    if products:
        head = joined_products(products)
        sq_norm_B = sq_norm_B + outer_sq_norms([head], checksum, device) + cross_terms(lookup, head)
    return sq_norm_B
