"""End to end: whole models of the kinds that people train equal one backward per example."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from client.capture.per_example.brute_force_examples import assert_equal, brute_force, make_norms
from client.capture.per_example.models_of_examples import (
    TinyGPT,
    make_conv_net,
    mean_of_classes,
    mean_of_tokens,
)

TOLERANCES = [(torch.float32, 1e-5), (torch.float64, 1e-10)]


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES, ids=["fp32", "fp64"])
def test_a_decoder_with_tied_embedding_and_head_equals_brute_force(dtype, tolerance):
    torch.manual_seed(0)
    model = TinyGPT().to(dtype)
    token = torch.randint(0, 13, (5, 6))
    loss = mean_of_tokens(5)
    norms = make_norms(model)

    loss(model(token), token).backward()
    found = norms.per_example()

    assert norms.message is None
    assert norms.covered == [name for name, _ in model.named_parameters()]
    assert_equal(found, brute_force(model, token, token, loss, norms.covered), tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES, ids=["fp32", "fp64"])
def test_a_conv_net_with_in_place_activations_equals_brute_force(dtype, tolerance):
    torch.manual_seed(0)
    model = make_conv_net().to(dtype)
    images, classes = torch.randn(5, 2, 8, 8, dtype=dtype), torch.randint(0, 3, (5,))
    loss = mean_of_classes(5)
    norms = make_norms(model)

    loss(model(images), classes).backward()
    found = norms.per_example()

    assert norms.message is None
    assert_equal(found, brute_force(model, images, classes, loss, norms.covered), tolerance)


def test_an_in_place_activation_after_a_linear_layer_on_sequences_hides_nothing():
    """With a bias the output is a view there, and changing it in place gives it another place in the graph."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(inplace=True), nn.Linear(6, 3))
    inputs, weights = torch.randn(5, 7, 4), torch.randn(5, 7, 3)
    norms = make_norms(model)

    def loss(output, weight):
        return (output * weight).sum()

    loss(model(inputs), weights).backward()
    found = norms.per_example()

    assert_equal(found, brute_force(model, inputs, weights, loss, norms.covered), 1e-5)


def test_adapters_made_of_linear_layers_on_a_frozen_layer_are_measured():
    class Adapted(nn.Module):
        def __init__(self):
            super().__init__()
            self.frozen = nn.Linear(6, 5).requires_grad_(False)
            self.down, self.up = nn.Linear(6, 2, bias=False), nn.Linear(2, 5, bias=False)

        def forward(self, x):
            return self.frozen(x) + self.up(self.down(x))

    torch.manual_seed(0)
    model = nn.Sequential(Adapted(), nn.Tanh(), nn.Linear(5, 3))
    inputs, classes = torch.randn(6, 6), torch.randint(0, 3, (6,))
    loss = mean_of_classes(6)
    norms = make_norms(model)

    loss(model(inputs), classes).backward()
    found = norms.per_example()

    assert norms.covered == ["0.down.weight", "0.up.weight", "2.weight", "2.bias"]
    assert norms.message is None
    assert_equal(found, brute_force(model, inputs, classes, loss, norms.covered), 1e-5)


def test_the_sum_over_examples_and_their_number_are_taken_and_forgotten():
    torch.manual_seed(0)
    model, images, classes = make_conv_net(), torch.randn(5, 2, 8, 8), torch.randint(0, 3, (5,))
    loss = mean_of_classes(5)
    norms = make_norms(model)
    loss(model(images), classes).backward()

    taken = norms.take()
    again = norms.take()

    truth = brute_force(model, images, classes, loss, norms.covered)
    assert taken is not None
    assert_equal(taken[0][None], truth.sum(0, keepdim=True), 1e-5)
    assert taken[1] == 5
    assert again is None
    assert not norms.is_incomplete


class OfRandomShape(nn.Module):
    """Sequences through a random chain of layers, some of them run twice."""

    def __init__(self, kinds, width):
        super().__init__()
        makers = {
            "linear": lambda: nn.Linear(width, width),
            "layer_norm": lambda: nn.LayerNorm(width),
            "rms_norm": lambda: nn.RMSNorm(width),
            "tanh": nn.Tanh,
            "conv": lambda: nn.Conv1d(width, width, 3, padding=1),
            "group_norm": lambda: nn.GroupNorm(1, width),
        }
        self.embedding = nn.Embedding(9, width)
        self.kinds = kinds
        self.layers = nn.ModuleList(makers[kind]() for kind, _ in kinds)
        self.head = nn.Linear(width, 9, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, token):
        x = self.embedding(token)
        for (kind, times), layer in zip(self.kinds, self.layers, strict=True):
            for _ in range(times):
                x = layer(x.transpose(1, 2)).transpose(1, 2) if kind in ("conv", "group_norm") else layer(x)
        return self.head(x)


KINDS = ["linear", "layer_norm", "rms_norm", "tanh", "conv", "group_norm"]


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    kinds=st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 2)), min_size=1, max_size=4),
    width=st.integers(2, 7),
    num_examples=st.integers(2, 4),
    length=st.integers(2, 6),
    seed=st.integers(0, 1000),
)
def test_random_architectures_equal_brute_force(kinds, width, num_examples, length, seed):
    torch.manual_seed(seed)
    model = OfRandomShape(kinds, width).double()
    token = torch.randint(0, 9, (num_examples, length))
    loss = mean_of_tokens(num_examples)
    norms = make_norms(model)

    loss(model(token), token).backward()
    found = norms.per_example()

    assert norms.message is None
    assert_equal(found, brute_force(model, token, token, loss, norms.covered), 1e-10)
