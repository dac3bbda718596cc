"""What goes into the backward of a normalisation layer, and what comes out with each example's norms."""

# N rows, B examples of N / B adjacent rows, D normalised elements

from dataclasses import dataclass

import torch
from torch import Tensor

WIDE = torch.float64
"""Precision of the squared norms."""


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
