"""Embedding: each output gradient goes to the row of its token; rows of padding get none."""

# B examples, T positions, D features, V tokens

from torch import Tensor, nn

from noisescale.capture.per_example.contributions import Contribution, TokenRows
from noisescale.capture.per_example.layers.layer_rule import LayerRule


def contribute(
    module: nn.Module, name: str, activation: Tensor | None, grad_output: Tensor, num_examples: int
) -> Contribution:
    """Of `nn.Embedding`; tokens [B, ...] or [B m, ...]."""
    assert isinstance(module, nn.Embedding)
    assert activation is not None
    token_BT = activation.reshape(num_examples, -1)
    grad_output_BTD = grad_output.reshape(num_examples, -1, grad_output.shape[-1])
    if module.padding_idx is not None:
        grad_output_BTD = grad_output_BTD.masked_fill((token_BT == module.padding_idx).unsqueeze(2), 0)
    return TokenRows(num_examples, token_BT, grad_output_BTD, module.num_embeddings)


def shape(module: nn.Module, name: str) -> tuple[int, ...]:
    """[1, V, D]."""
    return (1, *module.get_parameter(name).shape)


def refusal(module: nn.Module) -> str | None:
    """Gradients divided by how often a token is in the batch belong to no one example."""
    return "scale_grad_by_freq=True" if getattr(module, "scale_grad_by_freq", False) else None


EMBEDDING = LayerRule(
    parameters=("weight",),
    contribute=contribute,
    shape=shape,
    num_feature_dimensions=lambda module: 0,
    refusal=refusal,
)
