"""Sums of outer products in all the ways in which the kernel cuts them, and what is right for each."""

from dataclasses import dataclass

import torch
from torch import Tensor

from noisescale.kernels.outer_sq_norms import fused_outer_sq_norms

BF16, F16 = torch.bfloat16, torch.float16


@dataclass(frozen=True)
class Case:
    """One call; its name says what is special about it."""

    num_examples: int
    num_positions: int
    num_outputs: int
    num_inputs: int
    dtype: torch.dtype = BF16
    layout: str = "contiguous"
    cancels: bool = False


CASES = {
    "one number": Case(1, 1, 1, 1),
    "a small tile": Case(2, 64, 64, 64),
    "edges in every direction": Case(3, 70, 33, 81),
    "edges, fp16": Case(3, 70, 33, 81, F16),
    "a large tile": Case(1, 64, 128, 256),
    "several large tiles": Case(2, 128, 256, 512),
    "edges of large tiles": Case(2, 65, 130, 300),
    "few positions": Case(2, 3, 128, 256),
    "no number of a vector": Case(2, 40, 101, 99),
    "every other example": Case(4, 70, 48, 80, layout="every other"),
    "positions first": Case(3, 20, 40, 72, layout="positions first"),
    "outputs far apart": Case(2, 20, 40, 72, layout="outputs far apart"),
    "terms that cancel": Case(2, 128, 64, 64, cancels=True),
}


def make_rows(case: Case, device: str) -> tuple[Tensor, Tensor]:
    """[N, T, O] and [N, T, I], the same numbers on every device."""
    generator = torch.Generator().manual_seed(2)
    rows = []
    for width in (case.num_outputs, case.num_inputs):
        values = torch.randn(case.num_examples, case.num_positions, width, generator=generator)
        if case.cancels:
            sign = 1 - 2 * (torch.arange(case.num_positions) % 2)[None, :, None]
            values = values[:, :1] * (sign if width == case.num_outputs and not rows else 1) + values / 256
        rows.append(laid_out(values.to(case.dtype), case.layout).to(device))
    return rows[0], rows[1]


def laid_out(values: Tensor, layout: str) -> Tensor:
    """The same numbers, elsewhere in memory."""
    if layout == "every other":
        return torch.stack([values, values], dim=1)[:, 0]
    if layout == "positions first":
        return values.transpose(0, 1).contiguous().transpose(0, 1)
    if layout == "outputs far apart":
        return values.transpose(1, 2).contiguous().transpose(1, 2)
    return values


def check(name: str, device: str) -> dict[str, float | bool]:
    """How far off a case is, as a share of the largest sum, and whether it repeats in every bit."""
    g, a = make_rows(CASES[name], device)
    found, again = fused_outer_sq_norms(g, a), fused_outer_sq_norms(g, a)
    expected = torch.bmm(g.double().cpu().transpose(1, 2), a.double().cpu()).square().sum((1, 2))
    error = ((found.cpu() - expected).abs() / expected).max()
    return {"error": float(error), "is repeatable": bool(torch.equal(found, again))}
