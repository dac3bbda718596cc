"""Normalisations with a backward of our own, by choice: the same training to rounding, and each example's norm."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from client.capture.per_example.brute_force_examples import assert_equal, brute_force, make_norms
from client.capture.per_example.models_of_examples import TinyGPT, mean_of_tokens
from client_runs import brute_force_terms, gradient_of_each, make_batch, make_kept_run, terms_of
from noisescale.capture.per_example import fused_norm_layers
from noisescale.capture.per_example.checksum import NUM_PROVING_BACKWARDS
from noisescale.capture.per_example.layers import layer_norm
from noisescale.options import Arithmetic
from noisescale_core.errors import ConfigError

NUM_EXAMPLES = 6


def make_gpt(seed=0):
    torch.manual_seed(seed)
    return TinyGPT().double()


def make_tokens(seed=1):
    return torch.randint(0, 13, (NUM_EXAMPLES, 6), generator=torch.Generator().manual_seed(seed))


def make_classifier():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 5), nn.LayerNorm(5), nn.Tanh(), nn.Linear(5, 5), nn.RMSNorm(5), nn.Linear(5, 3))


def backward_past_the_checks(model, norms, loss, tokens):
    """The first backward passes are checked, and there norms come from the same terms as the checksum."""
    for _ in range(NUM_PROVING_BACKWARDS):
        loss(model(tokens), tokens).backward()
        norms.take()
    model.zero_grad()
    loss(model(tokens), tokens).backward()


@pytest.fixture
def kernel_calls(monkeypatch):
    """Every call that the kernel, or what stands in for it on the CPU, is asked for."""
    calls = []
    for module in (fused_norm_layers, layer_norm):
        own = module.norm_layer_gradients

        def seen(call, own=own, **settings):
            calls.append((call, settings))
            return own(call, **settings)

        monkeypatch.setattr(module, "norm_layer_gradients", seen)
    return calls


@pytest.mark.parametrize("layers", ["all", "norm_layers"])
@pytest.mark.parametrize("group", [1, 3])
def test_norms_from_the_replaced_backward_equal_one_backward_per_example(layers, group, kernel_calls):
    model, tokens, loss = make_gpt(), make_tokens(), mean_of_tokens(NUM_EXAMPLES)
    norms = make_norms(model, layers=layers, examples_per_group=group, fused_norm_layers=True)

    backward_past_the_checks(model, norms, loss, tokens)
    found = norms.per_example()
    norms.remove()

    assert_equal(found, brute_force(model, tokens, tokens, loss, norms.covered, group), 1e-10)
    assert [call.num_examples for call, _ in kernel_calls[-5:]] == [NUM_EXAMPLES // group] * 5


def test_the_norms_of_an_unchecked_backward_are_not_summed_again(monkeypatch):
    model, tokens, loss = make_gpt(), make_tokens(), mean_of_tokens(NUM_EXAMPLES)
    norms = make_norms(model, layers="norm_layers", fused_norm_layers=True)
    backward_past_the_checks(model, norms, loss, tokens)
    norms.take()
    monkeypatch.setattr(
        "noisescale.capture.per_example.squared_norms_of_sums.row_sq_norms", lambda _: pytest.fail("summed again")
    )

    loss(model(tokens), tokens).backward()
    found = norms.per_example()
    norms.remove()

    assert found.shape == (NUM_EXAMPLES, len(norms.covered))
    assert (found > 0).all()


@pytest.mark.parametrize("shape", [(4,), (4, 7), (4, 2, 3)], ids=["2-D", "3-D", "4-D"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["fp32", "fp64"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.LayerNorm(5),
        lambda: nn.LayerNorm(5, bias=False),
        lambda: nn.RMSNorm(5),
        lambda: nn.RMSNorm(5, eps=0.1),
        lambda: nn.LayerNorm((1, 5)),
    ],
    ids=["LayerNorm", "without bias", "RMSNorm", "RMSNorm with eps", "two dimensions"],
)
def test_outputs_keep_every_bit_and_gradients_agree_to_rounding(make, dtype, shape):
    torch.manual_seed(0)
    layer = make().to(dtype)
    shape = (*shape, *layer.weight.shape)
    inputs, weights = torch.randn(shape, dtype=dtype, requires_grad=True), torch.randn(shape, dtype=dtype)
    own = layer(inputs)
    expected = torch.autograd.grad((own * weights).sum(), [inputs, *layer.parameters()])
    fused = fused_norm_layers.FusedNormLayers([layer], kernels="auto", on_fault=pytest.fail)

    output = layer(inputs)
    found = torch.autograd.grad((output * weights).sum(), [inputs, *layer.parameters()])
    fused.remove()

    assert torch.equal(output, own)
    assert type(output.grad_fn).__name__ == "_NormLayerBackward"
    assert type(layer(inputs).grad_fn) is type(own.grad_fn)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, rtol=1e-5 if dtype == torch.float32 else 1e-12, atol=1e-6)


def train(*, is_fused, num_steps=20):
    model = make_classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    run, _ = make_kept_run()
    run.watch(model, optimizer, small_batches="layer_norm_proxy", arithmetic=Arithmetic(fused_norm_layers=is_fused))
    losses = []
    for step in range(num_steps):
        inputs, classes = make_batch(16, seed=step)
        loss = nn.functional.cross_entropy(model(inputs), classes)
        loss.backward()
        run.log_gradients(loss=loss)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    run.unwatch()
    return losses, model


def test_a_training_has_the_same_losses_to_rounding_and_nothing_stays_on_the_model():
    expected, plain = train(is_fused=False)

    losses, model = train(is_fused=True)

    assert losses == pytest.approx(expected, rel=1e-5)
    assert all("forward" not in module.__dict__ for module in model.modules())
    assert list(model.state_dict()) == list(plain.state_dict())
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, plain.state_dict()[name], rtol=1e-3, atol=1e-5)


def test_a_watched_model_has_its_own_state_and_its_copies_their_own_forward():
    model = make_classifier()
    names = list(model.state_dict())
    norms = make_norms(model, fused_norm_layers=True)
    saved = io.BytesIO()

    copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    torch.save(model, saved)
    saved.seek(0)
    copies.append(torch.load(saved, weights_only=False))

    assert list(model.state_dict()) == names
    for each in copies:
        with torch.no_grad():
            each[1].weight.mul_(2)
        inputs = torch.randn(3, 5)
        expected = nn.functional.layer_norm(inputs, (5,), each[1].weight, each[1].bias)
        assert torch.equal(each[1](inputs), expected)
        assert each[1](inputs).grad_fn.name() == "NativeLayerNormBackward0"
        assert fused_norm_layers.is_replaceable(each[1])
    assert not fused_norm_layers.is_replaceable(model[1])
    norms.remove()
    assert fused_norm_layers.is_replaceable(model[1])


def test_second_derivatives_are_those_of_pytorch():
    layer = nn.LayerNorm(5).double()
    inputs = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)

    def curvature():
        (slope,) = torch.autograd.grad(layer(inputs).sin().sum(), inputs, create_graph=True)
        return torch.autograd.grad(slope.square().sum(), [inputs, *layer.parameters()])

    expected = curvature()
    fused = fused_norm_layers.FusedNormLayers([layer], kernels="auto", on_fault=pytest.fail)
    found = curvature()
    fused.remove()

    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_a_second_derivative_runs_the_hooks_of_a_weight_once():
    layer, inputs = nn.LayerNorm(5), torch.randn(4, 5)
    fused = fused_norm_layers.FusedNormLayers([layer], kernels="auto", on_fault=pytest.fail)
    seen = []
    layer.weight.register_hook(seen.append)

    torch.autograd.grad(layer(inputs).sin().sum(), layer.weight, create_graph=True)
    fused.remove()

    assert len(seen) == 1


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_transforms_of_functions_run_pytorchs_own_layer():
    layer, inputs = nn.RMSNorm(5), torch.randn(4, 5)

    def transformed():
        weights = dict(layer.named_parameters())

        def loss(weights, row):
            return torch.func.functional_call(layer, weights, (row[None],)).sin().sum()

        slopes = torch.func.vmap(torch.func.grad(loss), (None, 0))(weights, inputs)["weight"]
        along = torch.func.jvp(lambda x: loss(weights, x), (inputs[0],), (inputs[1],))[1]
        return slopes, along

    expected = transformed()
    fused = fused_norm_layers.FusedNormLayers([layer], kernels="auto", on_fault=pytest.fail)
    found = transformed()
    fused.remove()

    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("weight_dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
def test_under_autocast_an_input_may_be_changed_in_place_as_without_us(weight_dtype):
    layer = nn.LayerNorm(5).to(weight_dtype)
    start = torch.randn(4, 5)

    def slopes():
        layer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            inputs = start.bfloat16().requires_grad_()
            hidden = inputs * 1
            output = layer(hidden)
        output.float().sin().sum().backward()
        return output.detach(), inputs.grad, layer.weight.grad

    expected = slopes()
    fused = fused_norm_layers.FusedNormLayers([layer], kernels="auto", on_fault=pytest.fail)
    found = slopes()
    fused.remove()

    assert found[0].dtype == expected[0].dtype
    assert torch.equal(found[0], expected[0])
    for one, other in zip(found[1:], expected[1:], strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, rtol=0.05, atol=0.05)


def test_what_autocast_widens_is_widened_before_the_layer_keeps_it(monkeypatch):
    """As on accelerators, where LayerNorm runs in fp32: its 16-bit input may then change while the copy is kept."""
    monkeypatch.setattr(fused_norm_layers, "_dtype_under_autocast", lambda *_: torch.float32)
    layer = nn.LayerNorm(5)
    inputs = torch.randn(4, 5).bfloat16().requires_grad_()
    fused = fused_norm_layers.FusedNormLayers([layer], kernels="auto", on_fault=pytest.fail)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = inputs * 1
        output = layer(hidden)
        hidden += 1
    output.sum().backward()
    fused.remove()

    assert output.dtype == torch.float32
    assert inputs.grad.dtype == torch.bfloat16


def test_a_fault_of_ours_leaves_the_backward_to_pytorch(monkeypatch):
    layer, inputs = nn.LayerNorm(5), torch.randn(4, 5)
    layer(inputs).sin().sum().backward()
    expected, layer.weight.grad = layer.weight.grad, None
    faults = []

    def broken(*_, **__):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(fused_norm_layers, "norm_layer_gradients", broken)
    fused = fused_norm_layers.FusedNormLayers([layer], kernels="auto", on_fault=faults.append)
    layer(inputs).sin().sum().backward()
    fused.remove()

    assert torch.equal(layer.weight.grad, expected)
    assert [str(fault) for fault in faults] == ["out of memory"]


@pytest.mark.parametrize("is_paused", [False, True], ids=["measured", "left out"])
def test_checkpointed_layers_are_recomputed_as_they_were(is_paused):
    """PyTorch compares what the second forward saves with the first, and raises where it differs."""

    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = make_classifier().double()

        def forward(self, x):
            return checkpoint(self.inner, x, use_reentrant=False)

    model = Checkpointed()
    inputs = torch.randn(NUM_EXAMPLES, 4).double()
    classes = torch.randint(0, 3, (NUM_EXAMPLES,))

    def loss(output, target):
        return nn.functional.cross_entropy(output, target, reduction="sum") / NUM_EXAMPLES

    norms = make_norms(model, fused_norm_layers=True)

    for _ in range(NUM_PROVING_BACKWARDS + 1):
        output = loss(model(inputs), classes)
        norms.pause(is_paused)
        output.backward()
        norms.pause(False)
        found = norms.per_example()
    norms.remove()

    if is_paused:
        assert found is None
    else:
        assert_equal(found, brute_force(model, inputs, classes, loss, norms.covered), 1e-10)


@pytest.mark.filterwarnings("ignore:Using backward")
def test_the_answer_of_an_earlier_backward_is_not_taken_for_a_later_one():
    model, tokens, loss = make_gpt(), make_tokens(), mean_of_tokens(NUM_EXAMPLES)
    norms = make_norms(model, layers="norm_layers", fused_norm_layers=True)
    backward_past_the_checks(model, norms, loss, tokens)
    norms.take()
    value = loss(model(tokens), tokens)
    parameters = list(model.parameters())

    value.backward(retain_graph=True)
    norms.take()
    (3 * value).backward(create_graph=True, inputs=parameters)
    found = norms.per_example()
    norms.remove()
    for parameter in parameters:
        parameter.grad = None  # it holds the graph, and the graph holds it

    assert_equal(found, 9 * brute_force(model, tokens, tokens, loss, norms.covered), 1e-10)


def test_the_observed_norms_of_a_call_come_from_one_reading_for_weight_and_bias(monkeypatch, kernel_calls):
    """Without the choice a kernel reads what autograd has computed, and replaces nothing."""
    model, tokens, loss = make_gpt(), make_tokens(), mean_of_tokens(NUM_EXAMPLES)
    monkeypatch.setattr(layer_norm, "takes_triton", lambda kernels, device: kernels == "auto")
    monkeypatch.setattr(layer_norm, "is_for_kernel", lambda *tensors: True)
    norms = make_norms(model, layers="norm_layers")

    backward_past_the_checks(model, norms, loss, tokens)
    found = norms.per_example()
    norms.remove()

    assert len(kernel_calls) == 5  # three LayerNorms and two RMSNorms, in the one backward that is not checked
    assert not any(settings["needs_grad_input"] for _, settings in kernel_calls)
    assert_equal(found, brute_force(model, tokens, tokens, loss, norms.covered), 1e-10)


def test_a_weight_of_two_layers_is_summed_before_it_is_squared():
    torch.manual_seed(0)
    model = nn.Sequential(nn.LayerNorm(5), nn.Linear(5, 5), nn.LayerNorm(5), nn.Tanh()).double()
    model[2].weight, model[2].bias = model[0].weight, model[0].bias
    inputs, weights = torch.randn(NUM_EXAMPLES, 3, 5).double(), torch.randn(NUM_EXAMPLES, 3, 5).double()

    def loss(output, target):
        return (output * target).sum() / NUM_EXAMPLES

    norms = make_norms(model, layers="norm_layers", fused_norm_layers=True)
    for _ in range(NUM_PROVING_BACKWARDS + 1):
        loss(model(inputs), weights).backward()
        found = norms.per_example()
    norms.remove()

    assert_equal(found, brute_force(model, inputs, weights, loss, norms.covered), 1e-10)


@pytest.mark.parametrize("small_batches", ["layer_norm_proxy", "per_example"])
def test_a_run_says_what_it_replaces_and_measures_the_truth(small_batches, caplog):
    model = make_classifier().double()
    inputs, classes = make_batch(16, seed=0)
    run, kept = make_kept_run()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    gradients = gradient_of_each(model, inputs.double(), classes)
    norms = ("1.", "4.")
    chosen = [g for name, g in gradients.items() if small_batches == "per_example" or name.startswith(norms)]

    with caplog.at_level("INFO", logger="noisescale"):
        run.watch(model, optimizer, small_batches=small_batches, arithmetic=Arithmetic(fused_norm_layers=True))
        for _ in range(4):
            nn.functional.cross_entropy(model(inputs.double()), classes).backward()
            run.log_gradients()
            optimizer.step()
            optimizer.zero_grad()
        run.finish()

    assert caplog.text.count("the backward of 2 normalisation layers is ours") == 1
    assert caplog.text.count("there is no Triton on cpu") == 1
    for row in kept.rows():
        assert terms_of(row) == pytest.approx(brute_force_terms(chosen, [1] * 16), rel=1e-9)


def test_a_model_without_such_layers_is_told_so():
    norms = make_norms(nn.Linear(3, 2), fused_norm_layers=True)

    assert "replaces nothing" in norms.message


@pytest.mark.parametrize("small_batches", ["auto", "micro_batches", "ranks"])
def test_without_per_example_norms_the_choice_is_refused(small_batches):
    run, _ = make_kept_run()

    with pytest.raises(ConfigError, match=f"got small_batches='{small_batches}'"):
        run.watch(nn.LayerNorm(5), small_batches=small_batches, arithmetic=Arithmetic(fused_norm_layers=True))
