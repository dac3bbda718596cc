"""PyTorch's own layers without a formula here: their call is run again, example by example.

Recurrent layers have no rule in `torch.vmap`, so it is a loop: as many small forwards and backwards as there are
examples, on measured steps alone.
"""

from torch import nn

from noisescale.capture.per_example.layers.layer_rule import LayerRule
from noisescale.capture.per_example.replayed_calls import ExampleDims

RECURRENT = (nn.RNN, nn.LSTM, nn.GRU)

CELLS = (nn.RNNCell, nn.LSTMCell, nn.GRUCell)

OTHERS = (nn.Bilinear, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


def example_dims(module: nn.Module) -> ExampleDims:
    """Where the examples are in a layer's tensors."""
    if isinstance(module, nn.RNNBase):
        return ExampleDims(of_first=0 if module.batch_first else 1, of_others=1)
    return ExampleDims()


def shape(module: nn.Module, name: str) -> tuple[int, ...]:
    """[1, O, I] of a parameter of several dimensions, all but the first as one, and [D] of others."""
    parameter = module.get_parameter(name)
    if parameter.dim() < 2:
        return (parameter.numel(),)
    return 1, len(parameter), parameter[0].numel()


def refusal(module: nn.Module) -> str | None:
    """Random numbers cannot be drawn again."""
    has_dropout = isinstance(module, nn.RNNBase) and module.dropout > 0 and module.num_layers > 1
    return "dropout between the layers" if has_dropout else None


FOLLOWED = LayerRule(parameters=None, contribute=None, shape=shape, num_feature_dimensions=lambda module: 0)
"""Of a parameter that is no layer's: its uses are followed in the autograd graph."""

REPLAYED = LayerRule(
    parameters=None,
    contribute=None,
    shape=shape,
    num_feature_dimensions=lambda module: 0,
    example_dims=example_dims,
    refusal=refusal,
)
