"""Linear: weight Σ_t grad_output_t ⊗ activation_t, bias Σ_t grad_output_t."""

# B examples, T positions, I in_features, O out_features

from torch import Tensor, nn

from noisescale.capture.per_example.contributions import Contribution, OuterProducts
from noisescale.capture.per_example.layers.layer_rule import LayerRule, sum_of_gradients


def contribute(
    module: nn.Module, name: str, activation: Tensor | None, grad_output: Tensor, num_examples: int
) -> Contribution:
    """Of `nn.Linear`; input [B, ..., I] or [B m, ..., I]."""
    if name == "bias":
        return sum_of_gradients(grad_output, num_examples)
    assert activation is not None
    return products_of_rows(grad_output, activation, num_examples)


def products_of_rows(grad_output: Tensor, activation: Tensor, num_examples: int) -> OuterProducts:
    """Σ over the rows of an example of grad_output ⊗ activation, features last in both."""
    grad_output_BTO = grad_output.reshape(num_examples, -1, grad_output.shape[-1])
    activation_BTI = activation.reshape(num_examples, -1, activation.shape[-1])
    return OuterProducts(
        num_examples=num_examples,
        num_positions=activation_BTI.shape[1],
        num_channel_groups=1,
        num_outputs=grad_output_BTO.shape[2],
        num_inputs=activation_BTI.shape[2],
        is_view=True,
        rows=lambda start, stop: (grad_output_BTO[start:stop], activation_BTI[start:stop]),
    )


def shape(module: nn.Module, name: str) -> tuple[int, ...]:
    """[1, O, I] of the weight, [O] of the bias."""
    parameter = module.get_parameter(name)
    return (1, *parameter.shape) if name == "weight" else tuple(parameter.shape)


LINEAR = LayerRule(
    parameters=("weight", "bias"),
    contribute=contribute,
    shape=shape,
    num_feature_dimensions=lambda module: 1,
    is_rounded_like_output=True,
)
