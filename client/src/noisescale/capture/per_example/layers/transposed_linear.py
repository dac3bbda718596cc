"""Linear layers that keep their weight as [I, O]: `Conv1D` of Hugging Face's GPT-2.

It belongs to another package, so it is known by its name and its weight; that what it computes is a linear layer is
checked with numbers at run time, as for every layer.
"""

# B examples, T positions, I in_features, O out_features

from dataclasses import replace

from torch import Tensor, nn

from noisescale.capture.per_example.contributions import Contribution
from noisescale.capture.per_example.layers.layer_rule import sum_of_gradients
from noisescale.capture.per_example.layers.linear import LINEAR, products_of_rows


def is_transposed_linear(module: nn.Module) -> bool:
    """Whether this is a layer like Hugging Face's `Conv1D`."""
    weight = getattr(module, "weight", None)
    return type(module).__name__ == "Conv1D" and isinstance(weight, Tensor) and weight.dim() == 2


def contribute(
    module: nn.Module, name: str, activation: Tensor | None, grad_output: Tensor, num_examples: int
) -> Contribution:
    """Of a linear layer with weight [I, O]: the two factors change places."""
    if name == "bias":
        return sum_of_gradients(grad_output, num_examples)
    assert activation is not None
    return products_of_rows(activation, grad_output, num_examples)


TRANSPOSED_LINEAR = replace(LINEAR, contribute=contribute)
