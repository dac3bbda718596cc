"""PyTorch's layers without a formula: their calls are run again, example by example, and nothing else is touched."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from client.capture.per_example.brute_force_examples import assert_equal, brute_force, make_norms
from client.capture.per_example.models_of_examples import mean_of_classes

NUM_EXAMPLES = 7


class Recurrent(nn.Module):
    """A linear layer on all outputs and on the states, which reach the loss by ways of their own."""

    def __init__(self, layer, *, uses_states=True, is_turned=False):
        super().__init__()
        self.read, self.layer = nn.Linear(4, 6), layer
        self.out = nn.LazyLinear(3)
        self.uses_states, self.is_turned = uses_states, is_turned

    def forward(self, x):
        x = self.read(x)
        output, states = self.layer(x.transpose(0, 1) if self.is_turned else x)
        logits = self.out(output.sum(0 if self.is_turned else 1))
        if self.uses_states:
            states = states if isinstance(states, tuple) else (states,)
            logits = logits + sum(state.square().sum((0, 2))[:, None] for state in states)
        return logits


class OneAfterAnother(nn.Module):
    """A cell at each position."""

    def __init__(self, cell):
        super().__init__()
        self.cell, self.out = cell, nn.Linear(5, 3)

    def forward(self, x):
        states = None
        for t in range(x.shape[1]):
            states = self.cell(x[:, t], states)
        return self.out(states[0] if isinstance(states, tuple) else states)


class Packed(nn.Module):
    """Sequences of different lengths; zeros are padding."""

    def __init__(self):
        super().__init__()
        self.layer, self.out = nn.GRU(4, 5, batch_first=True, bidirectional=True), nn.Linear(10, 3)

    def forward(self, x):
        lengths = (x[:, :, 0] != 0).sum(1)
        output, state = self.layer(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
        output, _ = pad_packed_sequence(output, batch_first=True)
        return self.out(output.sum(1) + state.transpose(0, 1).flatten(1))


class FromAState(nn.Module):
    """The first state is computed from the examples, and the outputs are changed in place."""

    def __init__(self):
        super().__init__()
        self.state, self.layer, self.out = nn.Linear(4, 10), nn.LSTM(4, 5, 2, batch_first=True), nn.Linear(5, 3)

    def forward(self, x):
        state = self.state(x.mean(1)).view(len(x), 2, 5).transpose(0, 1).contiguous()
        output, (_, cell) = self.layer(x, hx=(state, state.tanh()))
        return self.out(output.relu_().mean(1) + cell[-1])


class Others(nn.Module):
    """A transposed convolution, a learned slope, a bilinear form."""

    def __init__(self):
        super().__init__()
        self.grow, self.slope = nn.ConvTranspose1d(4, 6, 3, stride=2, groups=2), nn.PReLU(6)
        self.form = nn.Bilinear(6, 4, 3)

    def forward(self, x):
        return self.form(self.slope(self.grow(x.transpose(1, 2))).mean(2), x.mean(1))


MODELS = {
    "LSTM": lambda: Recurrent(nn.LSTM(6, 5, batch_first=True)),
    "LSTM without its states": lambda: Recurrent(nn.LSTM(6, 5, batch_first=True), uses_states=False),
    "LSTM with projections": lambda: Recurrent(nn.LSTM(6, 5, 2, proj_size=4, batch_first=True)),
    "GRU of two layers both ways": lambda: Recurrent(nn.GRU(6, 5, 2, batch_first=True, bidirectional=True)),
    "RNN without biases": lambda: Recurrent(nn.RNN(6, 5, batch_first=True, bias=False)),
    "packed sequences": Packed,
    "a first state": FromAState,
    "LSTM cell": lambda: OneAfterAnother(nn.LSTMCell(4, 5)),
    "GRU cell": lambda: OneAfterAnother(nn.GRUCell(4, 5)),
    "others": Others,
}


def inputs_of(num_positions):
    torch.manual_seed(1)
    inputs = torch.randn(NUM_EXAMPLES, num_positions, 4, dtype=torch.float64)
    for i, row in enumerate(inputs):
        row[1 + i % num_positions :] = 0
    return inputs


def backwards(model, inputs, norms, number=1):
    for _ in range(number):
        mean_of_classes(len(inputs))(model(inputs), torch.arange(len(inputs)) % 3).backward()
        taken = norms.per_example()
    return taken


def built(make, inputs):
    torch.manual_seed(0)
    model = make().double()
    model(inputs)  # a lazy layer learns its width
    return model


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("num_positions", [5, NUM_EXAMPLES], ids=["T apart from B", "T equal to B"])
def test_each_examples_gradient_is_that_of_its_own_backward(name, num_positions):
    inputs = inputs_of(num_positions)
    model = built(MODELS[name], inputs)
    norms = make_norms(model)

    found = backwards(model, inputs, norms)

    assert norms.message is None
    assert len(norms.covered) == len(list(model.parameters()))
    truth = brute_force(model, inputs, torch.arange(NUM_EXAMPLES) % 3, mean_of_classes(NUM_EXAMPLES), norms.covered)
    assert_equal(found, truth, 1e-10)


def test_groups_of_adjacent_examples_are_units():
    inputs = inputs_of(5)[:6]
    model = built(Packed, inputs)
    norms = make_norms(model, examples_per_group=3)

    found = backwards(model, inputs, norms)

    truth = brute_force(model, inputs, torch.arange(6) % 3, mean_of_classes(6), norms.covered, group=3)
    assert_equal(found, truth, 1e-10)


def test_a_batch_in_the_second_dimension_is_found_behind_a_model_that_turns_it():
    inputs = inputs_of(5)
    model = built(lambda: Recurrent(nn.LSTM(6, 5), is_turned=True), inputs)
    norms = make_norms(model)

    found = backwards(model, inputs, norms)

    assert norms.message is None
    truth = brute_force(model, inputs, torch.arange(NUM_EXAMPLES) % 3, mean_of_classes(NUM_EXAMPLES), norms.covered)
    assert_equal(found, truth, 1e-10)


@pytest.mark.parametrize("num_positions", [5, NUM_EXAMPLES], ids=["T apart from B", "T equal to B"])
def test_a_model_that_may_have_positions_first_itself_has_no_number(num_positions):
    """Its other layers would take positions for examples."""
    inputs = inputs_of(num_positions).transpose(0, 1)
    model = built(lambda: nn.Sequential(nn.Linear(4, 4), nn.LSTM(4, 5)), inputs)
    norms = make_norms(model)

    model(inputs)[0].square().sum().backward()

    assert norms.take() is None
    assert "1 has positions first, and perhaps the model: build it with batch_first=True" in norms.reason


def test_dropout_between_recurrent_layers_is_left_out_and_the_rest_measured():
    inputs = inputs_of(5)
    model = built(lambda: Recurrent(nn.LSTM(6, 5, 2, batch_first=True, dropout=0.5)), inputs)
    norms = make_norms(model)

    taken = backwards(model, inputs, norms)

    assert taken is not None
    assert norms.covered == ["read.weight", "read.bias", "out.weight", "out.bias"]
    assert "and 5 more (dropout between the layers of LSTM)" in norms.message


def test_autocast_is_what_it_was():
    inputs = inputs_of(5).float()
    model = built(lambda: Recurrent(nn.LSTM(6, 5, batch_first=True)), inputs_of(5)).float()
    norms = make_norms(model)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(inputs)
    mean_of_classes(NUM_EXAMPLES)(logits.float(), torch.arange(NUM_EXAMPLES) % 3).backward()
    found = norms.per_example()

    truth = brute_force(model, inputs, torch.arange(NUM_EXAMPLES) % 3, mean_of_classes(NUM_EXAMPLES), norms.covered)
    assert norms.message is None
    assert float(found.sum()) == pytest.approx(float(truth.sum()), rel=0.05)


def test_a_backward_to_the_inputs_before_takes_nothing_away():
    """As for saliency, or for an attack on the inputs."""
    inputs = inputs_of(5).requires_grad_()
    model = built(MODELS["LSTM"], inputs)
    norms = make_norms(model)

    loss = mean_of_classes(NUM_EXAMPLES)(model(inputs), torch.arange(NUM_EXAMPLES) % 3)
    torch.autograd.grad(3 * loss, inputs, retain_graph=True)
    loss.backward()
    found = norms.per_example()

    truth = brute_force(model, inputs, torch.arange(NUM_EXAMPLES) % 3, mean_of_classes(NUM_EXAMPLES), norms.covered)
    assert_equal(found, truth, 1e-10)


def test_two_losses_of_one_forward_are_added_before_the_norm():
    inputs = inputs_of(5)
    model = built(MODELS["LSTM"], inputs)
    norms = make_norms(model)
    norms.hold(True)

    logits = model(inputs)
    mean_of_classes(NUM_EXAMPLES)(logits, torch.arange(NUM_EXAMPLES) % 3).backward(retain_graph=True)
    (logits.square().sum() / NUM_EXAMPLES).backward()
    found = norms.per_example()

    def both(logits, classes):
        return mean_of_classes(NUM_EXAMPLES)(logits, classes) + logits.square().sum() / NUM_EXAMPLES

    truth = brute_force(model, inputs, torch.arange(NUM_EXAMPLES) % 3, both, norms.covered)
    assert_equal(found, truth, 1e-10)


def trained(model, inputs, *, is_watched):
    seen = []
    handles = [
        model.layer.register_forward_hook(lambda *_: seen.append("forward")),
        model.layer.weight_ih_l0.register_hook(lambda gradient: seen.append("gradient")),
    ]
    optimizer = torch.optim.AdamW(model.parameters())
    norms = make_norms(model) if is_watched else None
    torch.manual_seed(2)
    for _ in range(4):
        optimizer.zero_grad()
        noisy = inputs + torch.randn_like(inputs)
        mean_of_classes(len(inputs))(model(noisy), torch.arange(len(inputs)) % 3).backward()
        optimizer.step()
        assert norms is None or norms.take() is not None
    for handle in handles:
        handle.remove()
    return [parameter.detach().clone() for parameter in model.parameters()], seen, torch.get_rng_state()


def test_weights_random_numbers_and_hooks_are_as_without():
    model = built(lambda: Recurrent(nn.LSTM(6, 5, 2, batch_first=True)), inputs_of(5))
    watched = copy.deepcopy(model)

    weights, seen, random_state = trained(model, inputs_of(5), is_watched=False)
    weights_watched, seen_watched, random_state_watched = trained(watched, inputs_of(5), is_watched=True)

    assert all(torch.equal(one, other) for one, other in zip(weights, weights_watched, strict=True))
    assert seen_watched == seen
    assert torch.equal(random_state, random_state_watched)
    assert watched.layer._flat_weights[0] is watched.layer.weight_ih_l0


def test_a_layer_of_the_programs_own_is_never_run_again():
    runs = []

    class Counted(nn.LSTM):
        def forward(self, *args):
            runs.append(1)
            return super().forward(*args)

    model = built(lambda: Recurrent(Counted(6, 5, batch_first=True)), inputs_of(5))
    norms = make_norms(model)
    runs.clear()

    backwards(model, inputs_of(5), norms)

    assert len(runs) == 1
    assert "layer.weight_ih_l0" not in norms.covered
    assert "which has no formula here" in norms.message
