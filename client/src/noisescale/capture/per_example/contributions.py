"""The forms in which a layer contributes to a parameter's gradient, example by example.

Where a formula is known, no form holds a per-example gradient: each holds what it is made of, and hands it out for a
slice of the examples, so that whoever adds up decides how much is in memory at once. Several contributions to one
parameter (a layer that runs twice, tied weights) add up before the norm is taken.
"""

# B examples, b examples of a slice, T positions, K channel groups, N = b K rows, O outputs, I inputs, D elements

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

BUDGET_ON_CPU = 32 * 2**20
"""What one slice of examples may take beyond what autograd holds: about a second-level cache, never a model."""

BUDGET_ON_ACCELERATOR = 512 * 2**20
"""A slice is launched by the host, for as long as a device adds up tens of MiB: with the CPU's budget 16 sequences of
1,024 tokens in GPT-2 small took an H200's host ten thousand launches a backward, which doubled its time."""


@dataclass(frozen=True, slots=True)
class OuterProducts:
    """Example i's gradient is Σ_t grad_output_it ⊗ activation_it, a matrix [O, I] for each of K channel groups.

    Attributes:
        num_examples: B.
        num_positions: T, summed over within an example.
        num_channel_groups: K; 1 but for grouped convolutions.
        num_outputs: O of one channel group.
        num_inputs: I of one channel group; for a convolution all weights of one output channel.
        is_view: Whether `rows` hands out views; else what it hands out counts towards the budget.
        rows: Of examples start to stop: grad_output_NTO and activation_NTI, in their own precision.
    """

    num_examples: int
    num_positions: int
    num_channel_groups: int
    num_outputs: int
    num_inputs: int
    is_view: bool
    rows: Callable[[int, int], tuple[Tensor, Tensor]]


@dataclass(frozen=True, slots=True)
class TokenRows:
    """Example i's gradient has Σ of grad_output_it over the t with token_it = v in its row v.

    Attributes:
        num_examples: B.
        token_BT: Rows that the example looked up.
        grad_output_BTD: Zero where the token is padding.
        num_rows: Rows of the table.
    """

    num_examples: int
    token_BT: Tensor  # noqa: N815
    grad_output_BTD: Tensor  # noqa: N815
    num_rows: int


@dataclass(frozen=True, slots=True)
class SummedTerms:
    """Example i's gradient is Σ_t term_it, a vector [D].

    Attributes:
        num_examples: B.
        num_positions: T.
        num_elements: D.
        dtype: Precision of the output gradients that the terms are made of.
        terms: Of examples start to stop: term_bTD.
        sq_norm_B: |Σ_t term_it|², [B] fp64, where a kernel has computed them already.
    """

    num_examples: int
    num_positions: int
    num_elements: int
    dtype: torch.dtype
    terms: Callable[[int, int], Tensor]
    sq_norm_B: Tensor | None = None  # noqa: N815


@dataclass(frozen=True, slots=True)
class WholeGradients:
    """Example i's gradient itself, computed when it is asked for.

    Attributes:
        num_examples: B.
        num_elements: Computed at once for an example.
        dtype: Precision of the output gradients behind them.
        gradients: Of examples start to stop, [b, ...] in the shape of the parameter.
    """

    num_examples: int
    num_elements: int
    dtype: torch.dtype
    gradients: Callable[[int, int], Tensor]


Contribution = OuterProducts | TokenRows | SummedTerms | WholeGradients


def wide(dtype: torch.dtype) -> torch.dtype:
    """The precision to multiply and add in: fp64 for fp64, fp32 for everything narrower."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def budget_on(device: torch.device) -> int:
    """Bytes of one slice."""
    return BUDGET_ON_CPU if device.type == "cpu" else BUDGET_ON_ACCELERATOR


def slices(num_examples: int, bytes_an_example: int, device: torch.device) -> list[tuple[int, int]]:
    """Start and stop of slices of examples that stay within the budget; at least one example each."""
    size = max(1, budget_on(device) // max(1, bytes_an_example))
    return [(start, min(start + size, num_examples)) for start in range(0, num_examples, size)]
