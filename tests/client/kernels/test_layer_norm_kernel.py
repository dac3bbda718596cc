"""The slab kernel: its values by Triton's interpreter, and compiled where there is a GPU."""

import os

import pytest
import torch

from client.kernels.layer_norm_cases import CASES, WATCHED, are_same_bits, check_capture, check_kernel, make_call
from noisescale.kernels.layer_norm_sq_norms import choice, launch
from noisescale.kernels.layer_norm_sq_norms.naive import NormLayerCall
from quick import quick_or_slow

pytestmark = pytest.mark.processes

ROUNDED = {torch.float32: 3e-7, torch.float16: 1e-3, torch.bfloat16: 8e-3}
"""One last digit of the precision that gradients are stored in: the interpreter cuts 16-bit numbers off."""

SQ_NORMS = 1e-6

QUICK = ("rows are examples", "slabs end within an example, RMSNorm, bf16")
"""One case of both layers, and of slabs that hold a whole example or a part of one."""

VARIANTS = ("whole", "observed", "with statistics", "observed with statistics")

on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def assert_right(name, off):
    call = make_call(CASES[name])
    limits = {
        "grad_input": ROUNDED[call.activation.dtype],
        "grad_weight": ROUNDED[call.weight.dtype],
        "grad_bias": ROUNDED[call.weight.dtype],
        "weight_sq_norm_B": SQ_NORMS,
        "bias_sq_norm_B": SQ_NORMS,
    }
    for variant in VARIANTS:
        assert ("grad_input" in off[variant]) == ("observed" not in variant)
        assert ("bias_sq_norm_B" in off[variant]) == CASES[name].is_centred
        too_far = {key: value for key, value in off[variant].items() if not value <= limits[key]}
        assert not too_far, variant
    assert off["is repeatable"]


@pytest.mark.parametrize("name", quick_or_slow(CASES, QUICK))
def test_the_kernel_gives_the_gradients_and_the_norm_of_each_example(name, interpreted):
    assert_right(name, interpreted[name])


@pytest.mark.gpu
@on_a_gpu
@pytest.mark.parametrize("name", CASES)
def test_the_compiled_kernel_gives_the_gradients_and_the_norm_of_each_example(name):
    assert_right(name, check_kernel(name, "cuda"))


@pytest.mark.parametrize("name", WATCHED)
def test_a_watched_model_takes_its_norms_from_the_kernel(name, interpreted):
    assert interpreted[name] <= 2e-5


@pytest.mark.gpu
@on_a_gpu
@pytest.mark.parametrize("is_fused", [True, False], ids=["replaced backward", "observed"])
def test_a_watched_model_takes_its_norms_from_the_compiled_kernel(is_fused):
    assert check_capture("cuda", fused_norm_layers=is_fused) <= 2e-5


@pytest.mark.gpu
@on_a_gpu
def test_more_than_two_to_the_31_elements_are_addressed():
    rows, width = 2**18 + 3, 8192
    activation = torch.randn(rows, width, device="cuda", dtype=torch.bfloat16)
    call = NormLayerCall(activation, activation, torch.ones(width, device="cuda"), rows, 1e-5, True)
    last = NormLayerCall(activation[-3:].clone(), activation[-3:].clone(), call.weight, 3, 1e-5, True)

    found, of_last = (choice.norm_layer_gradients(each, kernels="triton") for each in (call, last))

    torch.testing.assert_close(found.weight_sq_norm_B[-3:], of_last.weight_sq_norm_B, rtol=1e-12, atol=0)
    torch.testing.assert_close(found.grad_input[-3:], of_last.grad_input, rtol=0, atol=0)


@pytest.mark.gpu
@on_a_gpu
def test_a_captured_backward_computes_anew_at_each_replay():
    call = make_call(CASES["slabs end within an example"], "cuda")
    choice.norm_layer_gradients(call, kernels="triton")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = choice.norm_layer_gradients(call, kernels="triton")

    call.grad_output.mul_(2)
    graph.replay()

    assert are_same_bits(found, choice.norm_layer_gradients(call, kernels="triton"))


def test_slabs_hold_every_row_once_and_never_cross_an_examples_border():
    for num_examples, num_positions in [
        (1, 1),
        (5000, 1),
        (7, 8),
        (1000, 31),
        (3, 9),
        (2, 16),
        (2, 17),
        (16, 1024),
        (5, 100001),
    ]:
        slabs = launch.cut_slabs(num_examples, num_positions, num_elements=64)

        rows = []
        for program in range(slabs.num_programs):
            example, slab = program // slabs.num_slabs * slabs.slab_examples, program % slabs.num_slabs
            first = slab * slabs.slab_positions
            own = range(first, min(first + slabs.slab_positions, slabs.num_positions))
            assert len(own) > 0
            for each in range(example, min(example + slabs.slab_examples, slabs.num_examples)):
                rows += [each * slabs.num_positions + position for position in own]
        assert rows == list(range(num_examples * num_positions))
        assert slabs.num_programs <= max(num_examples * num_positions / 8, 3 * num_examples)


def test_where_triton_does_not_work_one_warning_says_so_and_pytorch_computes(caplog, monkeypatch):
    monkeypatch.setattr(choice, "_works_on", {})
    choice._warn_once.cache_clear()
    call = make_call(CASES["several examples a slab"])
    assert not os.environ.get("TRITON_INTERPRET")

    first = choice.norm_layer_gradients(call, kernels="triton")
    again = choice.norm_layer_gradients(call, kernels="triton")

    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "does not work on cpu" in caplog.text
    assert "NOISESCALE_KERNELS=torch" in caplog.text
    assert are_same_bits(first, again)
    assert are_same_bits(first, choice.norm_layer_gradients(call, kernels="torch"))


def test_a_kernel_with_wrong_sums_fails_its_test(caplog, monkeypatch):
    monkeypatch.setattr(choice, "_works_on", {})
    choice._warn_once.cache_clear()

    def wrong(call, *, needs_grad_input=True):
        return choice.naive_gradients(
            NormLayerCall(call.activation, call.grad_output * 1.0001, call.weight, call.num_examples, call.eps, True)
        )

    monkeypatch.setattr(choice.layer_norm_sq_norms, "fused_gradients", wrong, raising=False)

    assert not choice.takes_triton("triton", torch.device("cpu"))
    assert "is off by" in caplog.text


@pytest.mark.parametrize("kernels", ["auto", "torch"])
def test_on_the_cpu_triton_is_not_even_tried_unasked(kernels, monkeypatch):
    monkeypatch.setattr(choice, "_works_on", {})

    assert not choice.takes_triton(kernels, torch.device("cpu"))
    assert choice._works_on == {}
