"""The gradients of a normalisation layer and each example's norms in plain PyTorch, all in fp64.

What `kernel.py` computes, written to be read; also what runs where there is no Triton.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

# N rows, B examples of T = N / B adjacent rows, D normalised elements

WIDE = torch.float64
"""Precision of the squared norms."""


# What goes into the backward of a normalisation layer, and what comes out with each example's norms.


@dataclass(frozen=True, slots=True)
class NormLayerCall:
    """One call of LayerNorm, y = weight · (x − mean) / √(variance + eps) + bias, or of RMSNorm, without mean and bias.

    Attributes:
        activation: Its input, [..., D] with the rows of an example adjacent and the examples in order; D is the product
            of the weight's dimensions.
        grad_output: Gradient with respect to its output, in the input's shape; its precision may be another.
        weight: The layer's weight.
        num_examples: B; the number of rows is a multiple of it.
        eps: As in the layer.
        is_centred: LayerNorm, which takes the mean off; else RMSNorm.
        statistics: mean and 1 / √(variance + eps) of each row, [N] fp32 each, where they are known; of RMSNorm only the
            second is read. None: they are computed from the activation.
    """

    activation: Tensor
    grad_output: Tensor
    weight: Tensor
    num_examples: int
    eps: float
    is_centred: bool
    statistics: tuple[Tensor, Tensor] | None = None

    @property
    def num_elements(self) -> int:
        """D."""
        return self.weight.numel()

    @property
    def num_rows(self) -> int:
        """N."""
        return self.activation.numel() // max(1, self.num_elements)

    @property
    def num_positions(self) -> int:
        """Rows of an example."""
        return self.num_rows // max(1, self.num_examples)


@dataclass(frozen=True, slots=True)
class NormLayerGradients:
    """The gradients of a call, and the squared norms of what each example contributes to those of the parameters.

    Attributes:
        grad_input: In the input's shape and precision; None where it was not asked for.
        grad_weight: In the weight's shape and precision.
        grad_bias: Like it; None of RMSNorm.
        weight_sq_norm_B: |Σ_t grad_output_it · normalised input_it|², [B] fp64.
        bias_sq_norm_B: |Σ_t grad_output_it|², [B] fp64; None of RMSNorm.
    """

    grad_input: Tensor | None
    grad_weight: Tensor
    grad_bias: Tensor | None
    weight_sq_norm_B: Tensor  # noqa: N815
    bias_sq_norm_B: Tensor | None  # noqa: N815


def naive_gradients(call: NormLayerCall, *, needs_grad_input: bool = True) -> NormLayerGradients:
    """The gradients of a call, and each example's squared norms.

    With n = (x − mean) / √(variance + eps) and h = weight · grad_output, grad_input = (h − n ⟨n h⟩ − ⟨h⟩) / √(variance
    + eps), where ⟨⟩ is the mean over a row; RMSNorm takes no mean off and has no ⟨h⟩.

    Args:
        call: What was called.
        needs_grad_input: Whether grad_input is wanted.

    Source: Ba et al. 2016, arXiv:1607.06450, section 3, and Zhang and Sennrich 2019, arXiv:1910.07467, equation 4,
    differentiated; per-example norms: Gray et al. 2024, arXiv:2411.00999, section 4.
    """
    num_elements = call.num_elements
    grad_output_ND = call.grad_output.reshape(-1, num_elements).to(WIDE)
    normalised_ND, scale_N1 = _normalised(call)
    weight_D = call.weight.reshape(-1).to(WIDE)
    grad_input = None
    if needs_grad_input:
        inner_ND = grad_output_ND * weight_D
        rest_ND = inner_ND - normalised_ND * (normalised_ND * inner_ND).mean(1, keepdim=True)
        if call.is_centred:
            rest_ND -= inner_ND.mean(1, keepdim=True)
        grad_input = (rest_ND * scale_N1).to(call.activation.dtype).view(call.activation.shape)
    grad_weight_BD = _sums_of_examples(grad_output_ND * normalised_ND, call)
    grad_bias_BD = _sums_of_examples(grad_output_ND, call) if call.is_centred else None
    return NormLayerGradients(
        grad_input=grad_input,
        grad_weight=_total(grad_weight_BD, call),
        grad_bias=None if grad_bias_BD is None else _total(grad_bias_BD, call),
        weight_sq_norm_B=grad_weight_BD.square().sum(1),
        bias_sq_norm_B=None if grad_bias_BD is None else grad_bias_BD.square().sum(1),
    )


def _normalised(call: NormLayerCall) -> tuple[Tensor, Tensor]:
    """Normalised input [N, D] and 1 / √(variance + eps) [N, 1]."""
    value_ND = call.activation.reshape(-1, call.num_elements).to(WIDE)
    if call.statistics is not None:
        mean_N, scale_N = call.statistics
        centred_ND = value_ND - mean_N.to(WIDE)[:, None] if call.is_centred else value_ND
        scale_N1 = scale_N.to(WIDE)[:, None]
    else:
        centred_ND = value_ND - value_ND.mean(1, keepdim=True) if call.is_centred else value_ND
        scale_N1 = (centred_ND.square().mean(1, keepdim=True) + call.eps).rsqrt()
    return centred_ND * scale_N1, scale_N1


def _sums_of_examples(term_ND: Tensor, call: NormLayerCall) -> Tensor:
    return term_ND.view(call.num_examples, call.num_positions, call.num_elements).sum(1)


def _total(sum_BD: Tensor, call: NormLayerCall) -> Tensor:
    return sum_BD.sum(0).to(call.weight.dtype).view(call.weight.shape)
