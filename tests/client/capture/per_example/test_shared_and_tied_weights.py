"""Several uses of one weight: contributions add up before the norm is taken."""

import pytest
import torch
from torch import nn

from client.capture.per_example.brute_force_examples import assert_equal, brute_force, make_norms
from client.capture.per_example.models_of_examples import mean_of_classes, mean_of_tokens


def check(model, inputs, targets, loss, tolerance=1e-10):
    norms = make_norms(model)

    loss(model(inputs), targets).backward()
    found = norms.per_example()

    assert norms.message is None
    assert_equal(found, brute_force(model, inputs, targets, loss, norms.covered), tolerance)


@pytest.mark.parametrize("layer", [lambda: nn.Linear(4, 4), lambda: nn.LayerNorm(4), lambda: nn.RMSNorm(4)])
@pytest.mark.parametrize("shape", [(6, 4), (6, 5, 4)], ids=["2-D", "3-D"])
def test_a_layer_called_three_times_adds_up(layer, shape):
    torch.manual_seed(0)
    shared = layer()
    model = nn.Sequential(shared, nn.Tanh(), shared, nn.Sigmoid(), shared, nn.Linear(4, 3)).double()

    check(model, torch.randn(shape).double(), torch.randn(*shape[:-1], 3).double(), lambda y, w: (y * w).sum() / 6)


def test_a_convolution_called_at_two_sizes_adds_up():
    torch.manual_seed(0)
    conv = nn.Conv2d(2, 2, 3)
    model = nn.Sequential(conv, nn.Tanh(), conv, nn.Flatten(), nn.Linear(8, 3)).double()

    check(model, torch.randn(4, 2, 6, 6).double(), torch.randint(0, 3, (4,)), mean_of_classes(4))


def test_two_linear_layers_with_one_weight_add_up():
    torch.manual_seed(0)
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    second.weight = first.weight

    check(
        nn.Sequential(first, nn.Tanh(), second).double(),
        torch.randn(6, 4).double(),
        torch.randint(0, 4, (6,)),
        mean_of_classes(6),
    )


class TiedTwice(nn.Module):
    """A table looked up in two ways and tied with a head that runs twice."""

    def __init__(self, width, *, head_on_all_positions):
        super().__init__()
        self.embedding = nn.Embedding(13, width)
        self.other = nn.Embedding(13, width, padding_idx=2)
        self.other.weight = self.embedding.weight
        self.hidden = nn.Linear(width, width)
        self.head = nn.Linear(width, 13)
        self.head.weight = self.embedding.weight
        self.head_on_all_positions = head_on_all_positions

    def forward(self, token):
        x = self.embedding(token) + self.other(token.flip(1))
        if not self.head_on_all_positions:
            x = x.mean(1, keepdim=True)
        logits = self.head(self.hidden(x).tanh()) + self.head(x)
        return logits.expand(-1, token.shape[1], -1)


@pytest.mark.parametrize("width", [3, 40], ids=["direct", "gram"])
@pytest.mark.parametrize("on_all", [True, False], ids=["all positions", "one position"])
def test_embeddings_tied_with_a_head_have_the_cross_term(width, on_all):
    torch.manual_seed(0)
    model = TiedTwice(width, head_on_all_positions=on_all).double()
    token = torch.randint(0, 13, (5, 4))

    check(model, token, token, mean_of_tokens(5))


def test_the_cross_term_is_a_fifth_of_the_norm_and_more():
    """Else the test above would not see that it is missing."""
    torch.manual_seed(0)
    model = TiedTwice(3, head_on_all_positions=True).double()
    token = torch.randint(0, 13, (5, 4))
    loss = mean_of_tokens(5)
    tied = brute_force(model, token, token, loss, ["embedding.weight"])
    model.head.weight = nn.Parameter(model.head.weight.detach().clone())

    apart = brute_force(model, token, token, loss, ["embedding.weight", "head.weight"]).sum(1, keepdim=True)

    assert ((tied - apart).abs() / tied).max() > 0.2


def test_flattened_positions_that_are_provably_in_order_are_measured():
    class Flattened(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(13, 6)
            self.norm = nn.LayerNorm(6)
            self.first, self.second = nn.Linear(6, 5), nn.Linear(5, 13)

        def forward(self, token):
            rows = self.embedding(token.view(-1))
            rows = nn.functional.dropout(nn.functional.gelu(self.first(self.norm(rows))), 0.0)
            return self.second(rows).view(*token.shape, 13)

    torch.manual_seed(0)
    token = torch.randint(0, 13, (5, 4))

    check(Flattened().double(), token, token, mean_of_tokens(5))


@pytest.mark.thorough
def test_frames_of_a_film_folded_into_the_batch_are_measured():
    class Film(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm, self.head = nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.Linear(4, 3)

        def forward(self, film):
            frames = self.norm(self.conv(film.flatten(0, 1))).mean((2, 3))
            return self.head(frames.view(len(film), -1, 4)).mean(1)

    torch.manual_seed(0)

    check(Film().double(), torch.randn(3, 2, 2, 6, 6).double(), torch.randint(0, 3, (3,)), mean_of_classes(3))
