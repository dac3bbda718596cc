"""PyTorch's own attention modules, whose projections no layer is called for."""

import pytest
import torch
from torch import nn

from client.capture.per_example.brute_force_examples import assert_equal, brute_force, make_norms
from client.capture.per_example.models_of_examples import mean_of_classes


class Encoder(nn.Module):
    """Two encoder layers between two linear ones."""

    def __init__(self, **settings):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **{"dropout": 0.0, **settings})
        self.read = nn.Linear(4, 8)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(8, 3)

    def forward(self, x):
        return self.out(self.layers(self.read(x)).mean(1))


class EncoderAndDecoder(nn.Module):
    """Queries of one length, keys and values of another."""

    def __init__(self):
        super().__init__()
        self.read = nn.Linear(4, 8)
        self.both = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)
        self.out = nn.Linear(8, 3)

    def forward(self, x):
        read = self.read(x)
        return self.out(self.both(read, read[:, :3]).mean(1))


class OneAttention(nn.Module):
    """Query, key and value from different positions, and of different widths where the module has them."""

    def __init__(self, **settings):
        super().__init__()
        self.attention, self.out = nn.MultiheadAttention(8, 2, batch_first=True, **settings), nn.Linear(8, 3)

    def forward(self, x):
        wide = x.repeat(1, 1, 2)
        key, value = wide[:, :3, : self.attention.kdim], wide[:, 1:4, : self.attention.vdim]
        return self.out(self.attention(query=wide, key=key, value=value)[0].mean(1))


MODELS = {
    "encoder": Encoder,
    "encoder with norms first": lambda: Encoder(norm_first=True),
    "encoder without biases": lambda: Encoder(bias=False),
    "encoder and decoder": EncoderAndDecoder,
    "three operands": OneAttention,
    "three operands without biases": lambda: OneAttention(bias=False),
    "three widths": lambda: OneAttention(kdim=4, vdim=6),
}


def taken_from(model, inputs, norms, num_backwards=1):
    classes = torch.arange(len(inputs)) % 3
    for _ in range(num_backwards):
        mean_of_classes(len(inputs))(model(inputs), classes).backward()
        taken = norms.per_example()
    return taken


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("num_positions", [6, 5], ids=["T apart from B", "T equal to B"])
def test_each_examples_gradient_is_that_of_its_own_backward(name, num_positions):
    torch.manual_seed(0)
    model, inputs = MODELS[name]().double(), torch.randn(5, num_positions, 4, dtype=torch.float64)
    norms = make_norms(model)

    found = taken_from(model, inputs, norms)

    assert norms.message is None
    truth = brute_force(model, inputs, torch.arange(5) % 3, mean_of_classes(5), norms.covered)
    assert_equal(found, truth, 1e-10)


def test_dropout_inside_takes_nothing_away():
    """There is no second backward to compare with; that the sums add up is checked in each of the first ones."""
    torch.manual_seed(0)
    model = Encoder(dropout=0.3)
    norms = make_norms(model)

    taken_from(model, torch.randn(5, 6, 4), norms, num_backwards=2)

    assert norms.message is None
    assert len(norms.covered) == len(list(model.parameters()))


def test_autocast_rounds_as_it_does():
    torch.manual_seed(0)
    model, inputs = Encoder(), torch.randn(5, 6, 4)
    norms = make_norms(model)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = mean_of_classes(5)(model(inputs).float(), torch.arange(5) % 3)
    loss.backward()

    found = norms.per_example()
    truth = brute_force(model, inputs, torch.arange(5) % 3, mean_of_classes(5), norms.covered)
    assert norms.message is None
    assert float(found.sum()) == pytest.approx(float(truth.sum()), rel=0.05)


def test_below_checkpointing_attention_is_left_out_and_the_rest_measured():
    class Checkpointed(Encoder):
        def forward(self, x):
            read = torch.utils.checkpoint.checkpoint(self.layers, self.read(x), use_reentrant=False)
            return self.out(read.mean(1))

    torch.manual_seed(0)
    model, inputs = Checkpointed().double(), torch.randn(5, 6, 4, dtype=torch.float64)
    norms = make_norms(model)

    found = taken_from(model, inputs, norms, num_backwards=2)

    assert "and 5 more (checkpointing, or other hooks on saved tensors, around attention" in norms.message
    assert norms.covered == [name for name, _ in model.named_parameters() if "self_attn" not in name]
    truth = brute_force(model, inputs, torch.arange(5) % 3, mean_of_classes(5), norms.covered)
    assert_equal(found, truth, 1e-10)


def test_positions_first_is_refused():
    model = nn.Sequential(nn.Linear(4, 4), nn.TransformerEncoderLayer(4, 2, 8))

    norms = make_norms(model)

    assert norms.covered == []
    assert "batch_first=True" in norms.message
