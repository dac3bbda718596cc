"""GroupNorm: like LayerNorm, but per channel, and channels come second."""

# L leading dimension: B examples of m rows, C channels, W positions of a row

from torch import Tensor, nn
from torch.nn import functional

from noisescale.capture.per_example.contributions import Contribution, SummedTerms, wide
from noisescale.capture.per_example.layers.conv import channels_last, channels_then_positions, sum_over_positions
from noisescale.capture.per_example.layers.layer_rule import LayerRule, vector_shape


def contribute(
    module: nn.Module, name: str, activation: Tensor | None, grad_output: Tensor, num_examples: int
) -> Contribution:
    """Of `nn.GroupNorm`; input [L, C, ...]."""
    assert isinstance(module, nn.GroupNorm)
    if name == "bias":
        return sum_over_positions(grad_output, num_examples)
    assert activation is not None
    kept, num_rows = activation, len(grad_output) // num_examples
    num_groups, eps = module.num_groups, module.eps

    def terms(start: int, stop: int) -> Tensor:
        of_slice = slice(start * num_rows, stop * num_rows)
        value = kept[of_slice]
        normalised = functional.group_norm(value.to(wide(value.dtype)), num_groups, eps=eps)
        return channels_last(channels_then_positions(normalised * grad_output[of_slice]), num_rows)

    return SummedTerms(
        num_examples=num_examples,
        num_positions=num_rows * grad_output[0, 0].numel(),
        num_elements=module.num_channels,
        dtype=grad_output.dtype,
        terms=terms,
    )


GROUP_NORM = LayerRule(
    parameters=("weight", "bias"),
    contribute=contribute,
    shape=vector_shape,
    num_feature_dimensions=lambda module: 1,
    is_norm=True,
)
