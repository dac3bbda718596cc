"""PReLU: a slope below zero, one for all elements or one a channel, and channels come second."""

# L leading dimension: B examples of m rows, C channels, W positions of a row

import torch
from torch import Tensor, nn

from noisescale.capture.per_example.contributions import Contribution, SummedTerms, wide
from noisescale.capture.per_example.layers.conv import channels_last, channels_then_positions
from noisescale.capture.per_example.layers.layer_rule import LayerRule, vector_shape


def contribute(
    module: nn.Module, name: str, activation: Tensor | None, grad_output: Tensor, num_examples: int
) -> Contribution:
    """Of `nn.PReLU`; input [L, C, ...], or of any shape with one slope: the slope sees what is below zero."""
    assert isinstance(module, nn.PReLU)
    assert activation is not None
    kept, num_rows = activation, len(grad_output) // num_examples
    num_slopes = module.num_parameters

    def terms(start: int, stop: int) -> Tensor:
        of_slice = slice(start * num_rows, stop * num_rows)
        value = kept[of_slice]
        below_zero = torch.clamp(value.to(wide(value.dtype)), max=0) * grad_output[of_slice]
        if num_slopes == 1:
            return below_zero.reshape(stop - start, -1, 1)
        return channels_last(channels_then_positions(below_zero), num_rows)

    return SummedTerms(
        num_examples=num_examples,
        num_positions=num_rows * grad_output[0].numel() // num_slopes,
        num_elements=num_slopes,
        dtype=grad_output.dtype,
        terms=terms,
    )


PRELU = LayerRule(
    parameters=("weight",),
    contribute=contribute,
    shape=vector_shape,
    num_feature_dimensions=lambda module: int(module.num_parameters > 1),  # type: ignore[operator]  # of nn.PReLU alone
)
