"""Positions are never taken for examples, also where there are as many of both."""

import pytest
import torch
from torch import nn

from client.capture.per_example.brute_force_examples import assert_equal, brute_force, make_norms
from client.capture.per_example.models_of_examples import mean_of_classes

NUM_EXAMPLES = 7


class Turned(nn.Module):
    """Positions come first inside, and the batch again in the end."""

    def __init__(self, turn):
        super().__init__()
        self.read, self.middle, self.norm, self.out = nn.Linear(4, 6), nn.Linear(6, 6), nn.LayerNorm(6), nn.Linear(6, 3)
        self.shift = nn.Parameter(torch.randn(6))
        self.turn = turn

    def forward(self, x):
        y = self.turn(self.read(x))
        y = y + self.middle(y).tanh()
        return self.out((self.norm(y) * self.shift).mean(0))


TURNS = {
    "transposed": lambda y: y.transpose(0, 1),
    "permuted": lambda y: y.permute(1, 0, 2),
    "stacked": lambda y: torch.stack([row.tanh() for row in y.unbind(1)]),
}


@pytest.mark.parametrize("name", TURNS)
def test_what_comes_behind_a_turn_is_left_out_and_the_rest_is_exact(name):
    torch.manual_seed(0)
    model, inputs = Turned(TURNS[name]).double(), torch.randn(NUM_EXAMPLES, NUM_EXAMPLES, 4, dtype=torch.float64)
    classes, loss = torch.arange(NUM_EXAMPLES) % 3, mean_of_classes(NUM_EXAMPLES)
    norms = make_norms(model)

    for _ in range(3):
        loss(model(inputs), classes).backward()
        found = norms.per_example()

    assert {"middle.weight", "middle.bias", "norm.weight", "norm.bias", "shift"}.isdisjoint(norms.covered)
    assert_equal(found, brute_force(model, inputs, classes, loss, norms.covered), 1e-10)


class TurnedData(nn.Module):
    """The data itself is turned, before anything is trained."""

    def __init__(self):
        super().__init__()
        self.read, self.out = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.out(self.read(x.transpose(0, 1)).tanh().mean(0))


def test_data_that_is_turned_before_the_first_layer_is_seen():
    torch.manual_seed(0)
    model, inputs = TurnedData(), torch.randn(NUM_EXAMPLES, NUM_EXAMPLES, 4)
    norms = make_norms(model)

    for _ in range(2):
        mean_of_classes(NUM_EXAMPLES)(model(inputs), torch.arange(NUM_EXAMPLES) % 3).backward()
        norms.take()

    assert norms.covered == ["out.weight", "out.bias"]


class Heads(nn.Module):
    """Attention by hand, as programs write it: queries, keys and values in front, heads second."""

    def __init__(self):
        super().__init__()
        self.all_three, self.middle, self.out = nn.Linear(4, 24), nn.Linear(8, 8), nn.Linear(8, 3)
        self.positions = nn.Parameter(torch.randn(1, 9, 4))

    def forward(self, x):
        x = x + self.positions[:, : x.shape[1]]
        query, key, value = self.all_three(x).unflatten(2, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        weights = (query @ key.transpose(-2, -1)).softmax(-1)
        return self.out(self.middle((weights @ value).transpose(1, 2).flatten(2)).mean(1))


def test_dimensions_that_come_back_take_nothing_away():
    torch.manual_seed(0)
    model, inputs = Heads().double(), torch.randn(NUM_EXAMPLES, NUM_EXAMPLES, 4, dtype=torch.float64)
    classes, loss = torch.arange(NUM_EXAMPLES) % 3, mean_of_classes(NUM_EXAMPLES)
    norms = make_norms(model)

    loss(model(inputs), classes).backward()
    found = norms.per_example()

    assert norms.message is None
    assert_equal(found, brute_force(model, inputs, classes, loss, norms.covered), 1e-10)
