"""LayerNorm's and RMSNorm's gradients in plain PyTorch: one backward per example says the same."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from client.kernels.layer_norm_cases import CASES, brute_force, errors, make_call, with_statistics
from noisescale.kernels.layer_norm_sq_norms.choice import norm_layer_gradients
from noisescale.kernels.layer_norm_sq_norms.naive import NormLayerCall, naive_gradients

ROUNDED = {torch.float32: 1e-7, torch.bfloat16: 4e-3, torch.float16: 5e-4, torch.float64: 1e-12}


@pytest.mark.parametrize("name", CASES)
def test_plain_pytorch_gives_the_gradients_and_the_norm_of_each_example(name):
    call = make_call(CASES[name])

    off = errors(naive_gradients(call), brute_force(call))

    assert off["grad_input"] <= ROUNDED[call.activation.dtype]
    assert max(off["grad_weight"], off.get("grad_bias", 0)) <= ROUNDED[call.weight.dtype]
    assert max(off["weight_sq_norm_B"], off.get("bias_sq_norm_B", 0)) <= 1e-10


@pytest.mark.parametrize("name", ["slabs end within an example", "slabs end within an example, RMSNorm, bf16"])
def test_statistics_that_are_known_are_taken(name):
    call = with_statistics(make_call(CASES[name]))
    wrong = NormLayerCall(
        call.activation, call.grad_output, call.weight, call.num_examples, call.eps, call.is_centred,
        statistics=(call.statistics[0], 2 * call.statistics[1]),
    )  # fmt: skip

    found, doubled = naive_gradients(call), naive_gradients(wrong)

    assert errors(found, brute_force(call))["weight_sq_norm_B"] <= 3e-7  # they are fp32
    torch.testing.assert_close(doubled.weight_sq_norm_B, 4 * found.weight_sq_norm_B, rtol=1e-12, atol=0)


@pytest.mark.parametrize("is_centred", [True, False], ids=["LayerNorm", "RMSNorm"])
def test_gradients_are_the_slopes_of_the_layer(is_centred):
    """Finite differences, which know nothing of anybody's backward."""

    class Layer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, activation, weight, bias):
            ctx.save_for_backward(activation, weight)
            if is_centred:
                return functional.layer_norm(activation, weight.shape, weight, bias)
            return functional.rms_norm(activation, weight.shape, weight, 1e-5) + 0 * bias

        @staticmethod
        def backward(ctx, grad_output):
            activation, weight = ctx.saved_tensors
            call = NormLayerCall(activation, grad_output, weight, 2, 1e-5, is_centred)
            found = norm_layer_gradients(call, kernels="auto")
            return found.grad_input, found.grad_weight, found.grad_bias

    torch.manual_seed(0)
    activation, weight, bias = (torch.randn(s).double().requires_grad_() for s in ((2, 3, 5), (5,), (5,)))
    inputs = (activation, weight, bias if is_centred else bias.detach())

    assert torch.autograd.gradcheck(Layer.apply, inputs, nondet_tol=0.0)


def test_a_weight_of_two_dimensions_counts_as_one_row():
    layer = nn.LayerNorm((3, 5)).double()
    activation, grad_output = torch.randn(4, 2, 3, 5).double(), torch.randn(4, 2, 3, 5).double()
    layer(activation).backward(grad_output)

    found = naive_gradients(NormLayerCall(activation, grad_output, layer.weight.detach(), 4, 1e-5, True))

    torch.testing.assert_close(found.grad_weight, layer.weight.grad)
    torch.testing.assert_close(found.grad_bias, layer.bias.grad)
    assert found.weight_sq_norm_B.shape == (4,)


def test_no_examples_have_no_norms():
    call = NormLayerCall(torch.zeros(0, 3, 5), torch.zeros(0, 3, 5), torch.ones(5), 0, 1e-5, True)

    found = norm_layer_gradients(call, kernels="auto")

    assert found.weight_sq_norm_B.shape == (0,)
    assert found.grad_input.shape == (0, 3, 5)
    assert found.grad_weight.tolist() == [0] * 5
