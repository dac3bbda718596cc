"""What happens around a backward: several forwards, checkpointing, compilation, copies, faults."""

import copy
import io
import pickle
import warnings

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from client.capture.per_example.brute_force_examples import assert_equal, brute_force, make_norms
from client.capture.per_example.models_of_examples import TinyGPT, make_conv_net, mean_of_classes, mean_of_tokens


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.LayerNorm(5), nn.Linear(5, 3)).double()


def make_batch(num_examples=6, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.randn(num_examples, 4, generator=generator).double(),
        torch.randint(0, 3, (num_examples,), generator=generator),
    )


def test_examples_of_several_forwards_before_one_backward_add_up_in_order():
    model, (inputs, classes), loss = make_model(), make_batch(9), mean_of_classes(9)
    norms = make_norms(model)

    total = loss(model(inputs[:6]), classes[:6]) + loss(model(inputs[6:]), classes[6:])
    total.backward()
    found = norms.per_example()

    assert_equal(found, brute_force(model, inputs, classes, loss, norms.covered), 1e-10)


def test_a_parameter_that_only_one_forward_used_is_zero_for_the_other_examples():
    class TwoHeads(nn.Module):
        def __init__(self):
            super().__init__()
            self.trunk, self.heads = nn.Linear(4, 4), nn.ModuleList([nn.Linear(4, 3), nn.Linear(4, 3)])

        def forward(self, x, which):
            return self.heads[which](self.trunk(x).tanh())

    torch.manual_seed(0)
    model, (inputs, classes), loss = TwoHeads().double(), make_batch(5), mean_of_classes(5)
    norms = make_norms(model)

    (loss(model(inputs[:3], 0), classes[:3]) + loss(model(inputs[3:], 1), classes[3:])).backward()
    found = norms.per_example()

    head_of_first = norms.covered.index("heads.0.weight")
    assert (found[:3, head_of_first] > 0).all()
    assert (found[3:, head_of_first] == 0).all()
    assert len(found) == 5


def test_forwards_that_no_backward_follows_count_for_nothing():
    model, (inputs, classes), loss = make_model(), make_batch(), mean_of_classes(6)
    norms = make_norms(model)

    model(inputs[:2])
    with torch.no_grad():
        model(inputs[:3])
    loss(model(inputs), classes).backward()
    model(inputs[:4])
    found = norms.per_example()

    assert_equal(found, brute_force(model, inputs, classes, loss, norms.covered), 1e-10)


def test_a_gradient_with_respect_to_the_input_alone_counts_for_nothing():
    """An adversarial example is made with the same layers, but adds nothing to the parameters' gradients."""
    model, (inputs, classes), loss = make_model(), make_batch(), mean_of_classes(6)
    norms = make_norms(model)

    leaf = inputs.clone().requires_grad_()
    (direction,) = torch.autograd.grad(loss(model(leaf), classes), leaf)
    changed = inputs + 0.1 * direction.sign()
    loss(model(changed), classes).backward()
    found = norms.per_example()

    assert_equal(found, brute_force(model, changed, classes, loss, norms.covered), 1e-10)


def test_each_of_two_backward_passes_through_one_forward_can_be_taken_but_not_both_together():
    model, (inputs, classes), loss = make_model(), make_batch(), mean_of_classes(6)
    norms = make_norms(model)
    truth = brute_force(model, inputs, classes, loss, norms.covered)
    norms.clear()
    value = loss(model(inputs), classes)

    value.backward(retain_graph=True)
    first = norms.per_example()
    value.backward(retain_graph=True)
    value.backward()
    both = norms.take()

    assert_equal(first, truth, 1e-10)
    assert both is None
    assert norms.is_incomplete
    assert "with run.micro_batch()" in norms.reason


def test_what_was_cleared_is_forgotten():
    model, (inputs, classes), loss = make_model(), make_batch(), mean_of_classes(6)
    norms = make_norms(model)

    loss(model(inputs), classes).backward()
    norms.clear()

    assert norms.take() is None
    assert not norms.is_incomplete


def test_paused_backward_passes_are_left_out():
    model, (inputs, classes), loss = make_model(), make_batch(), mean_of_classes(6)
    norms = make_norms(model)

    norms.pause(True)
    loss(model(inputs), classes).backward()
    paused = norms.take()
    norms.pause(False)
    loss(model(inputs), classes).backward()
    found = norms.per_example()

    assert paused is None
    assert not norms.is_incomplete
    assert_equal(found, brute_force(model, inputs, classes, loss, norms.covered), 1e-10)


class Checkpointed(nn.Module):
    """A decoder whose blocks are computed again in the backward."""

    def __init__(self, *, use_reentrant):
        super().__init__()
        self.decoder = TinyGPT().double()
        self.use_reentrant = use_reentrant

    def forward(self, token):
        x = self.decoder.tokens(token)
        for block in self.decoder.blocks:
            x = checkpoint(block, x, use_reentrant=self.use_reentrant)
        return self.decoder.head(self.decoder.last(x))


def test_checkpointing_equals_brute_force():
    torch.manual_seed(0)
    model, token, loss = Checkpointed(use_reentrant=False), torch.randint(0, 13, (4, 6)), mean_of_tokens(4)
    norms = make_norms(model)

    loss(model(token), token).backward()
    found = norms.per_example()

    assert norms.message is None
    assert_equal(found, brute_force(model.decoder, token, token, loss, [n[8:] for n in norms.covered]), 1e-10)


def test_reentrant_checkpointing_is_found_and_gives_no_number():
    torch.manual_seed(0)
    model, token, loss = Checkpointed(use_reentrant=True), torch.randint(0, 13, (4, 6)), mean_of_tokens(4)
    norms = make_norms(model)
    num_covered = len(norms.covered)

    loss(model(token), token).backward()

    assert norms.take() is None
    assert norms.is_incomplete
    assert "use_reentrant=False" in norms.reason
    assert len(norms.covered) == num_covered


def test_an_input_that_is_changed_in_place_after_the_call_gives_no_number():
    """Autograd allows it where the layer computes with a copy of its own, as this padding makes one."""

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(2, 2, 3, padding=1, padding_mode="circular")

        def forward(self, x):
            x = x * 1.0
            return x.add_(self.conv(x))

    model, images = Residual(), torch.randn(3, 2, 5, 5)
    norms = make_norms(model)

    model(images).sin().sum().backward()

    assert norms.take() is None
    assert norms.is_incomplete
    assert norms.reason == "the input of conv was changed in place after the call"


def test_under_autocast_an_input_changed_in_place_was_kept_as_it_was_multiplied():
    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x):
            x = x * 1.0
            return x.add_(self.inner(x))

    torch.manual_seed(0)
    model, inputs, weights = Residual(), torch.randn(5, 4), torch.randn(5, 4)
    norms = make_norms(model)

    with torch.autocast("cpu", torch.bfloat16):
        output = model(inputs)
    (output * weights).sum().backward()
    found = norms.per_example()

    rounded = weights.bfloat16().double()
    truth = rounded.square().sum(1) * inputs.bfloat16().double().square().sum(1)
    assert_equal(found, torch.stack([truth, rounded.square().sum(1)], dim=1), 1e-5)


def test_compiled_models_are_refused_with_a_sentence():
    compiled = torch.compile(make_model(), backend="eager")

    norms = make_norms(compiled)

    assert norms.covered == []
    assert "torch.compile" in norms.message
    assert "micro-batches" in norms.message


def test_a_model_that_is_compiled_later_gives_no_number_and_says_why():
    model, (inputs, classes), loss = make_model(), make_batch(), mean_of_classes(6)
    norms = make_norms(model)
    compiled = torch.compile(model, backend="eager", fullgraph=True)

    taken = []
    for _ in range(2):
        loss(compiled(inputs), classes).backward()
        taken.append(norms.take())

    assert taken == [None, None]
    assert norms.covered == []
    assert "torch.compile" in norms.message


def test_a_backward_inside_another_that_makes_a_graph_is_right():
    model, (inputs, classes), loss = make_model(), make_batch(), mean_of_classes(6)
    norms = make_norms(model)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns of the reference cycle
        loss(model(inputs), classes).backward(create_graph=True)
    found = norms.per_example()
    for parameter in model.parameters():
        parameter.grad = None

    assert not found.requires_grad
    assert_equal(found, brute_force(model, inputs, classes, loss, norms.covered), 1e-10)


def test_a_double_backward_gives_no_wrong_number():
    """A gradient penalty reaches the weights by the graph of the first backward too, which no layer's call shows."""
    model, (inputs, classes), loss = make_model(), make_batch(), mean_of_classes(6)
    norms = make_norms(model)

    taken = []
    for _ in range(2):  # after the first the weights are looked for in the graph
        leaf = inputs.clone().requires_grad_()
        value = loss(model(leaf), classes)
        (gradient,) = torch.autograd.grad(value, leaf, create_graph=True)
        (value + gradient.square().sum()).backward()
        taken.append(norms.take())

    assert taken == [None, None]
    assert norms.is_incomplete
    assert "do not add up" in norms.message


def test_norms_change_neither_gradients_nor_state_and_leave_no_hook():
    inputs, classes = torch.randn(5, 2, 8, 8), torch.randint(0, 3, (5,))
    models = []
    for is_measured in (False, True):
        torch.manual_seed(0)
        models.append(make_conv_net())
        norms = make_norms(models[-1]) if is_measured else None
        mean_of_classes(5)(models[-1](inputs), classes).backward()
    plain, measured = models
    state = copy.deepcopy(measured.state_dict())

    norms.remove()

    assert all(torch.equal(p.grad, q.grad) for p, q in zip(plain.parameters(), measured.parameters(), strict=True))
    assert list(state) == list(plain.state_dict())
    for module in measured.modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks
        assert not module._forward_hooks_with_kwargs
        assert not module._forward_hooks_always_called
    assert all(not p._backward_hooks for p in measured.parameters())


def test_norms_leave_the_random_numbers_of_the_training_alone():
    model, (inputs, classes), loss = make_model(), make_batch(), mean_of_classes(6)
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    norms = make_norms(model)

    loss(model(inputs), classes).backward()
    norms.take()

    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("how", ["deepcopy", "pickle", "torch.save"])
def test_a_copied_or_saved_model_works_and_is_not_measured(how):
    model, (inputs, classes), loss = make_model(), make_batch(), mean_of_classes(6)
    norms = make_norms(model)
    stored = io.BytesIO()

    if how == "deepcopy":
        other = copy.deepcopy(model)
    elif how == "pickle":
        other = pickle.loads(pickle.dumps(model))
    else:
        torch.save(model, stored)
        other = torch.load(io.BytesIO(stored.getvalue()), weights_only=False)
    loss(other(inputs), classes).backward()

    assert norms.take() is None
    assert b"noisescale" not in pickle.dumps(model)
    assert torch.equal(other(inputs), model(inputs))


def test_nothing_is_held_between_steps():
    model, (inputs, classes), loss = make_model(), make_batch(), mean_of_classes(6)
    norms = make_norms(model)
    freed = []

    class Freed:
        def __del__(self):
            freed.append(True)

    output = model(inputs)
    output.grad_fn.metadata["held"] = Freed()
    loss(output, classes).backward()
    norms.take()
    del output
    model(inputs)

    assert freed == [True]
    assert not norms._open_calls
    assert not norms._sq_norms


def test_a_fault_of_ours_is_reported_and_gives_no_number(monkeypatch):
    model, (inputs, classes), loss = make_model(), make_batch(), mean_of_classes(6)
    norms, faults = make_norms(model), []
    norms._on_fault = faults.append
    monkeypatch.setattr(
        "noisescale.capture.per_example.norms.sq_norms_of_sum", lambda *_: (_ for _ in ()).throw(ValueError("ours"))
    )

    loss(model(inputs), classes).backward()

    assert norms.take() is None
    assert norms.is_incomplete
    assert {str(fault) for fault in faults} == {"ours"}
