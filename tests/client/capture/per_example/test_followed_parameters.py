"""Parameters that are no layer's are found in the autograd graph, where they meet the examples."""

import copy
import gc
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from client.capture.per_example.brute_force_examples import assert_equal, brute_force, make_norms
from client.capture.per_example.models_of_examples import Block, TinyGPT, mean_of_classes, mean_of_tokens

NUM_EXAMPLES = 7


class Patches(nn.Module):
    """A class token, a table of positions, a learned scale, shift and temperature, as in vision transformers."""

    def __init__(self):
        super().__init__()
        self.read, self.block, self.head = nn.Linear(4, 8), Block(8), nn.Linear(8, 3)
        self.token, self.positions = nn.Parameter(torch.randn(1, 1, 8)), nn.Parameter(torch.randn(1, 9, 8))
        self.scale, self.shift = nn.Parameter(torch.rand(8)), nn.Parameter(torch.rand(8))
        self.temperature = nn.Parameter(torch.rand(()) + 1)

    def forward(self, x):
        x = torch.cat([self.token.expand(len(x), -1, -1), self.read(x)], 1)
        x = x + self.positions[:, : x.shape[1]]
        x = x + self.scale * (self.block(x) - self.shift)
        return self.head(x[:, 0]) / self.temperature


class Products(nn.Module):
    """Linear maps by hand, in both arrangements, and queries that each example multiplies."""

    def __init__(self):
        super().__init__()
        self.one, self.one_bias = nn.Parameter(torch.randn(4, 8)), nn.Parameter(torch.randn(8))
        self.two, self.two_bias = nn.Parameter(torch.randn(3, 8)), nn.Parameter(torch.randn(3))
        self.queries = nn.Parameter(torch.randn(5, 8))

    def forward(self, x):
        hidden = (x @ self.one + self.one_bias).tanh()
        weight = (hidden[:, :5] * self.queries).sum((1, 2))
        return functional.linear(hidden, self.two, self.two_bias).mean(1) + weight[:, None]


class ByFunction(nn.Module):
    """The weights of layers, without a call of the layers."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        return self.two(functional.linear(x, self.one.weight, self.one.bias)).mean(1)


class Twice(nn.Linear):
    """Computes something else than its base class."""

    def forward(self, x):
        return 2 * super().forward(x)


class Biased(nn.Module):
    """Attention with a table of distances, looked up once and turned before it is spread over the examples."""

    def __init__(self):
        super().__init__()
        self.distances, self.read, self.head = nn.Embedding(19, 2), nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        places = torch.arange(x.shape[1])
        bias = self.distances(places[:, None] - places[None] + 9).permute(2, 0, 1).unsqueeze(0)
        heads = self.read(x).unflatten(2, (2, 4)).transpose(1, 2)
        scores = (heads @ heads.transpose(2, 3) + bias).softmax(-1)
        return self.head((scores @ heads).transpose(1, 2).flatten(2).mean(1))


SEQUENCES = {
    "patches": Patches,
    "products": Products,
    "weights by function": ByFunction,
    "a layer that computes something else": lambda: nn.Sequential(nn.Flatten(), Twice(20, 8), nn.Tanh(), Twice(8, 3)),
    "a table of distances": Biased,
}


class HeadByFunction(nn.Module):
    """The embedding's weight is the head's too, without a layer that says so."""

    def __init__(self):
        super().__init__()
        self.embedding, self.hidden = nn.Embedding(13, 6, padding_idx=0), nn.Linear(6, 6)

    def forward(self, token):
        return self.hidden(self.embedding(token)).tanh() @ self.embedding.weight.t()


TOKENS = {
    "a table of positions": lambda: TinyGPT(positions="embedding"),
    "positions as a parameter": lambda: TinyGPT(positions="parameter"),
    "a head by function": HeadByFunction,
}


def backwards(model, inputs, targets, loss, norms, number=2):
    for _ in range(number):
        loss(model(inputs), targets).backward()
        taken = norms.per_example()
    return taken


@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize("num_positions", [5, NUM_EXAMPLES], ids=["T apart from B", "T equal to B"])
def test_each_examples_gradient_is_that_of_its_own_backward(name, num_positions):
    if name.startswith("a layer that"):
        num_positions = 5
    torch.manual_seed(0)
    model, inputs = SEQUENCES[name]().double(), torch.randn(NUM_EXAMPLES, num_positions, 4, dtype=torch.float64)
    classes, loss = torch.arange(NUM_EXAMPLES) % 3, mean_of_classes(NUM_EXAMPLES)
    norms = make_norms(model)

    found = backwards(model, inputs, classes, loss, norms)

    assert norms.message is None
    assert len(norms.covered) == len(list(model.parameters()))
    assert_equal(found, brute_force(model, inputs, classes, loss, norms.covered), 1e-10)


@pytest.mark.parametrize("name", TOKENS)
@pytest.mark.parametrize("num_examples", [5, 6], ids=["B apart from T", "B equal to T"])
def test_tables_are_followed_whatever_looks_them_up(name, num_examples):
    torch.manual_seed(0)
    model, token, loss = TOKENS[name]().double(), torch.randint(0, 13, (num_examples, 6)), mean_of_tokens(num_examples)
    norms = make_norms(model)

    first = backwards(model, token, token, loss, norms, number=1)
    assert (first is None) == (norms.reason is not None) == (name != "positions as a parameter")
    assert first is not None or "looked for in the autograd graph from the next step on" in norms.reason
    found = backwards(model, token, token, loss, norms, number=1)

    assert norms.message is None
    assert len(norms.covered) == len(list(model.parameters()))
    assert_equal(found, brute_force(model, token, token, loss, norms.covered), 1e-10)


def test_groups_of_adjacent_examples_are_units():
    torch.manual_seed(0)
    model, inputs, classes = Patches().double(), torch.randn(6, 5, 4, dtype=torch.float64), torch.arange(6) % 3
    norms = make_norms(model, examples_per_group=3)

    found = backwards(model, inputs, classes, mean_of_classes(6), norms)

    assert_equal(found, brute_force(model, inputs, classes, mean_of_classes(6), norms.covered, group=3), 1e-10)


def test_a_batch_of_one_gives_no_number_and_loses_nothing():
    torch.manual_seed(0)
    model, inputs, classes = Patches().double(), torch.randn(6, 5, 4, dtype=torch.float64), torch.arange(6) % 3
    norms = make_norms(model)

    one = backwards(model, inputs[:1], classes[:1], mean_of_classes(1), norms, number=1)
    reason = norms.reason
    found = backwards(model, inputs, classes, mean_of_classes(6), norms)

    assert one is None
    assert "a batch of one example" in reason
    assert_equal(found, brute_force(model, inputs, classes, mean_of_classes(6), norms.covered), 1e-10)


def test_below_checkpointing_what_is_multiplied_is_left_out_and_the_training_goes_on():
    """What checkpointing keeps may be read once: by the training."""

    class Checkpointed(Patches):
        def forward(self, x):
            x = checkpoint(lambda x: self.read(x) * self.scale + self.shift, x, use_reentrant=False)
            return self.head((x + self.positions[:, : x.shape[1]] + self.token).mean(1)) / self.temperature

    torch.manual_seed(0)
    model, inputs = Checkpointed().double(), torch.randn(6, 5, 4, dtype=torch.float64)
    classes, loss = torch.arange(6) % 3, mean_of_classes(6)
    norms = make_norms(model)

    found = backwards(model, inputs, classes, loss, norms)

    assert "scale (checkpointing, or other hooks on saved tensors, hide what it meets)" in norms.message
    used = [name for name in norms.covered if not name.startswith("block")]
    assert {"shift", "positions", "token", "temperature", "read.weight"} <= set(used)
    truth = brute_force(model, inputs, classes, loss, norms.covered)
    assert_equal(found, truth, 1e-10)


class Weighted(nn.Module):
    """A weight made of two parameters, with as many outputs as there are examples."""

    def __init__(self, *, is_function):
        super().__init__()
        self.direction, self.gain = nn.Parameter(torch.randn(6, 4)), nn.Parameter(torch.rand(4))
        self.head, self.is_function = nn.Linear(6, 3), is_function

    def forward(self, x):
        weight = self.direction * self.gain
        hidden = functional.linear(x, weight) if self.is_function else (x[:, None] * weight[None]).sum(2)
        return self.head(hidden), weight.square().mean()


@pytest.mark.parametrize("is_function", [True, False])
def test_as_many_outputs_as_examples_are_not_taken_for_examples(is_function):
    torch.manual_seed(0)
    model, inputs, classes = Weighted(is_function=is_function), torch.randn(6, 4), torch.arange(6) % 3
    norms = make_norms(model)

    for _ in range(2):
        logits, penalty = model(inputs)
        (mean_of_classes(6)(logits, classes) + penalty).backward()
        norms.take()

    assert norms.covered == ["head.weight", "head.bias"]


def test_a_penalty_on_a_followed_parameter_is_found_by_the_sums():
    torch.manual_seed(0)
    model, inputs, classes = Patches(), torch.randn(6, 5, 4), torch.arange(6) % 3
    norms = make_norms(model)

    taken = []
    for _ in range(2):
        (mean_of_classes(6)(model(inputs), classes) + model.positions.square().sum()).backward()
        taken.append(norms.take())

    assert taken[0] is None
    assert taken[1] is not None
    assert "positions (its layers' contributions do not add up" in norms.message


def trained(model, inputs, classes, *, is_watched):
    seen = []
    model.positions.register_hook(lambda gradient: seen.append(gradient.clone()))
    optimizer = torch.optim.AdamW(model.parameters())
    norms = make_norms(model) if is_watched else None
    torch.manual_seed(2)
    for _ in range(4):
        optimizer.zero_grad()
        noisy = functional.dropout(inputs, 0.1)
        mean_of_classes(len(inputs))(model(noisy), classes).backward()
        optimizer.step()
        assert norms is None or norms.take() is not None
    return [*seen, *(parameter.detach().clone() for parameter in model.parameters()), torch.get_rng_state()]


def test_weights_random_numbers_and_hooks_are_as_without():
    torch.manual_seed(0)
    model, inputs, classes = Patches(), torch.randn(6, 5, 4), torch.arange(6) % 3
    watched = copy.deepcopy(model)

    plain = trained(model, inputs, classes, is_watched=False)
    measured = trained(watched, inputs, classes, is_watched=True)

    assert len(plain) == len(measured)
    assert all(torch.equal(one, other) for one, other in zip(plain, measured, strict=True))


def test_a_forward_without_a_backward_leaves_nothing_behind():
    torch.manual_seed(0)
    model, inputs = Patches(), torch.randn(6, 5, 4)
    norms = make_norms(model)
    kept = []
    handle = model.block.register_forward_hook(lambda module, args, output: kept.append(weakref.ref(output)))
    gc.disable()
    try:
        model(inputs)
        mean_of_classes(6)(model(inputs), torch.arange(6) % 3).backward()
        norms.clear()
        assert [reference() for reference in kept] == [None, None]
    finally:
        gc.enable()
        handle.remove()
