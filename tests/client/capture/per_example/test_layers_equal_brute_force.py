"""Each layer type: the norm of each example's gradient equals one backward per example."""

import pytest
import torch
from torch import nn

from client.capture.per_example.brute_force_examples import (
    assert_equal,
    brute_force,
    brute_force_of_layer,
    make_norms,
)

B = 6

# how a processor adds up a convolution in 32 bit makes up to 1.1e-5
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5, torch.bfloat16: 1e-5, torch.float16: 1e-5}


class TransposedLinear(nn.Module):
    """Stands in for Hugging Face's layer of this name: weight [I, O]."""

    def __init__(self, num_outputs, num_inputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(num_inputs, num_outputs) / 3)
        self.bias = nn.Parameter(torch.randn(num_outputs))

    def forward(self, x):
        flat = torch.addmm(self.bias, x.reshape(-1, x.shape[-1]), self.weight)
        return flat.view(*x.shape[:-1], -1)


TransposedLinear.__name__ = "Conv1D"


class ShiftedRMSNorm(nn.Module):
    """Stands in for the normalisations of other packages: weight 1 + w, eps under another name."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width) / 5)
        self.variance_epsilon = 1e-6

    def forward(self, x):
        normalised = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.variance_epsilon)
        return (1 + self.weight) * normalised


def tokens(*shape):
    return lambda: torch.randint(0, 11, shape)


def numbers(*shape):
    return lambda: torch.randn(shape)


LAYERS = {
    "linear 2-D": (lambda: nn.Linear(5, 4), numbers(B, 5)),
    "linear 2-D without bias": (lambda: nn.Linear(5, 4, bias=False), numbers(B, 5)),
    "linear 3-D": (lambda: nn.Linear(5, 4), numbers(B, 7, 5)),
    "linear 3-D without bias": (lambda: nn.Linear(5, 4, bias=False), numbers(B, 7, 5)),
    "linear 3-D by Gram": (lambda: nn.Linear(40, 30), numbers(B, 3, 40)),
    "linear 3-D one position": (lambda: nn.Linear(5, 4), numbers(B, 1, 5)),
    "linear 4-D": (lambda: nn.Linear(5, 4), numbers(B, 2, 3, 5)),
    "linear wide": (lambda: nn.Linear(300, 270), numbers(B, 300)),
    "transposed linear": (lambda: TransposedLinear(4, 5), numbers(B, 7, 5)),
    "conv1d": (lambda: nn.Conv1d(3, 4, 3, padding=1), numbers(B, 3, 9)),
    "conv1d strided": (lambda: nn.Conv1d(3, 4, 4, stride=3, bias=False), numbers(B, 3, 14)),
    "conv2d": (lambda: nn.Conv2d(3, 4, 3), numbers(B, 3, 6, 7)),
    "conv2d everything": (
        lambda: nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(2, 1), dilation=(1, 2), groups=2),
        numbers(B, 4, 7, 8),
    ),
    "conv2d depthwise": (lambda: nn.Conv2d(4, 8, 3, groups=4, bias=False), numbers(B, 4, 6, 6)),
    "conv2d same": (lambda: nn.Conv2d(2, 3, 4, padding="same"), numbers(B, 2, 6, 6)),
    "conv2d reflected": (lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"), numbers(B, 2, 5, 5)),
    "conv2d patches": (lambda: nn.Conv2d(2, 30, 4, stride=4), numbers(B, 2, 8, 8)),
    "conv3d": (lambda: nn.Conv3d(2, 3, 2, dilation=2, padding=1), numbers(B, 2, 4, 4, 4)),
    "embedding 1-D": (lambda: nn.Embedding(11, 4), tokens(B)),
    "embedding 2-D": (lambda: nn.Embedding(11, 4), tokens(B, 9)),
    "embedding 3-D": (lambda: nn.Embedding(11, 4), tokens(B, 3, 4)),
    "embedding padded": (lambda: nn.Embedding(11, 4, padding_idx=3), tokens(B, 9)),
    "embedding sparse": (lambda: nn.Embedding(11, 4, sparse=True), tokens(B, 9)),
    "embedding of bounded norm": (lambda: nn.Embedding(11, 4, max_norm=1.0), tokens(B, 9)),
    "layer norm 2-D": (lambda: nn.LayerNorm(5), numbers(B, 5)),
    "layer norm 3-D": (lambda: nn.LayerNorm(5), numbers(B, 7, 5)),
    "layer norm without bias": (lambda: nn.LayerNorm(5, bias=False), numbers(B, 7, 5)),
    "layer norm of two dimensions": (lambda: nn.LayerNorm((7, 5)), numbers(B, 7, 5)),
    "layer norm of two dimensions, 4-D": (lambda: nn.LayerNorm((7, 5)), numbers(B, 3, 7, 5)),
    "rms norm": (lambda: nn.RMSNorm(5), numbers(B, 7, 5)),
    "rms norm with eps": (lambda: nn.RMSNorm(5, eps=0.1), numbers(B, 5)),
    "rms norm of another package": (lambda: ShiftedRMSNorm(5), numbers(B, 7, 5)),
    "group norm": (lambda: nn.GroupNorm(2, 4), numbers(B, 4, 5, 3)),
    "prelu": (lambda: nn.PReLU(), numbers(B, 4, 5, 3)),
    "prelu a channel": (lambda: nn.PReLU(4), numbers(B, 4, 5, 3)),
    "prelu 2-D": (lambda: nn.PReLU(4), numbers(B, 4)),
    "group norm 2-D": (lambda: nn.GroupNorm(2, 4), numbers(B, 4)),
}

SIXTEEN_BIT = [name for name in LAYERS if name not in ("embedding sparse", "embedding of bounded norm")]


def make_layer(name, dtype):
    torch.manual_seed(sorted(LAYERS).index(name))
    make, make_input = LAYERS[name]
    layer, inputs = make(), make_input()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(torch.randn_like(parameter) / 10)
    return layer.to(dtype), inputs.to(dtype) if inputs.is_floating_point() else inputs


def make_loss(outputs, reduction):
    """A loss with other weights for each example and position; with tokens left out if it is a mean over tokens."""
    weights = torch.randn(outputs.shape).to(outputs.dtype)
    if reduction == "mean_over_tokens" and outputs.dim() > 2:
        weights = weights * torch.randint(0, 2, outputs.shape[:2] + (1,) * (outputs.dim() - 2))
    divisor = {"sum": 1, "mean_over_examples": len(outputs), "mean_over_tokens": outputs[..., 0].numel()}[reduction]
    return weights, lambda output, weight: (output.sin() * weight).sum() / divisor


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("reduction", ["mean_over_examples", "mean_over_tokens", "sum"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["fp32", "fp64"])
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_equals_one_backward_per_example(name, dtype, reduction):
    layer, inputs = make_layer(name, dtype)
    weights, loss = make_loss(layer(inputs), reduction)
    norms = make_norms(layer)
    assert norms.message is None

    loss(layer(inputs), weights).backward()
    found = norms.per_example()

    truth = brute_force(layer, inputs, weights, loss, norms.covered)
    assert norms.covered == [name for name, _ in layer.named_parameters()]
    assert_equal(found, truth, TOLERANCE[dtype])


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
@pytest.mark.parametrize("name", SIXTEEN_BIT)
def test_a_16_bit_layer_equals_the_fp64_sums_of_its_16_bit_activations_and_output_gradients(name, dtype):
    layer, inputs = make_layer(name, dtype)
    weights, loss = make_loss(layer(inputs), "mean_over_examples")
    norms = make_norms(layer)
    output = layer(inputs)
    output.retain_grad()

    loss(output, weights).backward()
    found = norms.per_example()

    assert_equal(found, brute_force_of_layer(layer, inputs, output.grad), TOLERANCE[dtype])


@pytest.mark.parametrize("name", ["linear 3-D", "conv2d", "layer norm 3-D", "rms norm", "group norm", "embedding 2-D"])
def test_under_autocast_a_layer_equals_the_fp64_sums_of_what_was_multiplied(name):
    """Autocast rounds the input of a product to bf16, but not that of a normalisation."""
    layer, inputs = make_layer(name, torch.float32)
    weights, loss = make_loss(layer(inputs), "mean_over_examples")
    norms = make_norms(layer)

    with torch.autocast("cpu", torch.bfloat16):
        output = layer(inputs)
        output.retain_grad()
        loss(output.float(), weights).backward()  # inside, though PyTorch advises against it
    found = norms.per_example()

    multiplied = inputs.to(output.dtype) if name in ("linear 3-D", "conv2d") else inputs
    assert_equal(found, brute_force_of_layer(layer, multiplied, output.grad), 1e-5)


@pytest.mark.parametrize(
    "name", ["linear 3-D", "linear 2-D", "conv2d", "embedding 2-D", "layer norm 3-D", "group norm"]
)
def test_adjacent_examples_count_as_one_group(name):
    layer, inputs = make_layer(name, torch.float64)
    weights, loss = make_loss(layer(inputs), "mean_over_examples")
    norms = make_norms(layer, examples_per_group=3)

    loss(layer(inputs), weights).backward()
    found = norms.per_example()

    assert_equal(found, brute_force(layer, inputs, weights, loss, norms.covered, group=3), 1e-10)


def test_a_gradient_that_is_small_against_its_terms_is_right_by_gram_matrices():
    """The terms of 8 positions cancel to one part in a thousand: in fp32 a Gram matrix would lose all digits."""
    torch.manual_seed(0)
    layer = nn.Linear(64, 64, bias=False)
    inputs = torch.randn(4, 4, 64).repeat(1, 2, 1)
    sign = torch.tensor([1.0] * 4 + [-1.0] * 4)[:, None]
    weights = torch.randn(4, 4, 64).repeat(1, 2, 1) * sign + 1e-3 * torch.randn(4, 8, 64)
    norms = make_norms(layer)

    (layer(inputs) * weights).sum().backward()
    found = norms.per_example()

    truth = torch.einsum("bto,bti->boi", weights.double(), inputs.double()).square().sum((1, 2))
    assert_equal(found, truth[:, None], 1e-5)
