"""Squared norm of the sum of all contributions that each example makes to one parameter."""

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
    slices,
    wide,
)
from noisescale.capture.per_example.outer_products import joined_products, outer_sq_norms, row_sq_norms

# B examples, b examples of a slice, T positions (of the table), S positions of the head, D elements or features,
# V tokens, N = b T

DOUBLE_BYTES = 8


# Squared norms of gradients that are computed example by example, as no formula is known.


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


# Squared norms of what looked-up rows contribute to a table, alone or tied to a linear layer.
#
# The rows that one example looked up several times are added before the norm is taken; a tied head adds the cross term
# 2 Σ_{t,s} head_grad_s[token_t] (grad_output_t · activation_s).


def joined(lookups: Sequence[TokenRows]) -> TokenRows:
    """Lookups of the same examples in the same table as one."""
    if len(lookups) == 1:
        return lookups[0]
    return TokenRows(
        lookups[0].num_examples,
        torch.cat([lookup.token_BT for lookup in lookups], dim=1),
        torch.cat([lookup.grad_output_BTD for lookup in lookups], dim=1),
        lookups[0].num_rows,
    )


def token_sq_norms(lookup: TokenRows, checksum: Checksum | None) -> Tensor:
    """[B] fp64: squared norm of each example's gradient of the table."""
    num_positions, num_features = lookup.grad_output_BTD.shape[1:]
    parts = []
    for start, stop in slices(
        lookup.num_examples, 2 * DOUBLE_BYTES * num_positions * num_features, lookup.token_BT.device
    ):
        token_bT, grad_output_bTD = lookup.token_BT[start:stop], lookup.grad_output_BTD[start:stop]
        if checksum is not None:
            checksum.add_token_rows(token_bT, grad_output_bTD)
        parts.append(_sq_norms(token_bT, grad_output_bTD, lookup.num_rows))
    return torch.cat(parts)


def cross_terms(lookup: TokenRows, head: OuterProducts) -> Tensor:
    """[B] fp64: 2 ⟨gradient through the lookup, gradient through the head⟩ of each example.

    In fp64, as the products may cancel.
    """
    num_positions = lookup.token_BT.shape[1]
    bytes_an_example = DOUBLE_BYTES * head.num_positions * (2 * num_positions + head.num_inputs)
    parts = []
    for start, stop in slices(lookup.num_examples, bytes_an_example, lookup.token_BT.device):
        head_grad_bSV, activation_bSD = head.rows(start, stop)
        token_bST = lookup.token_BT[start:stop, None].expand(-1, head.num_positions, -1)
        grad_of_token_bST = head_grad_bSV.gather(2, token_bST).double()
        grad_output_bDT = lookup.grad_output_BTD[start:stop].double().transpose(1, 2)
        product_bST = torch.bmm(activation_bSD.double(), grad_output_bDT)
        parts.append(product_bST.mul_(grad_of_token_bST).sum((1, 2)).mul_(2))
    return torch.cat(parts)


def _sq_norms(token_bT: Tensor, grad_output_bTD: Tensor, num_rows: int) -> Tensor:
    """Adds the rows of each pair (example, token), sorted and not `unique`: that one would wait for the device."""
    num_examples, num_positions = token_bT.shape
    example_N = torch.arange(num_examples, device=token_bT.device).repeat_interleave(num_positions)
    pair_N, order_N = (example_N * num_rows + token_bT.flatten()).sort()
    is_new_N = torch.ones_like(pair_N)
    is_new_N[1:] = pair_N[1:] != pair_N[:-1]
    place_N = is_new_N.cumsum(0) - 1
    grad_output_ND = grad_output_bTD.flatten(0, 1)
    grad_output_ND = grad_output_ND.to(wide(grad_output_ND.dtype))[order_N]
    sum_ND = torch.zeros_like(grad_output_ND).index_add_(0, place_N, grad_output_ND)
    # A pair's place is in the same example as the pair itself, but not at the same position: sum by example.
    sq_norm_b = torch.zeros(num_examples, dtype=torch.float64, device=token_bT.device)
    example_of_place_N = torch.zeros_like(place_N).index_copy_(0, place_N, example_N)
    return sq_norm_b.index_add_(0, example_of_place_N, row_sq_norms(sum_ND))


# Squared norms of gradients that are vectors: biases, and the weights of normalisations.


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
