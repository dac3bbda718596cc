"""Sums in the metric of an optimizer's step: the kernel and PyTorch's operators against fp64, and who asks for them."""

import pytest
import torch

from client.kernels.metric_cases import CASES, ELSEWHERE, OPTIMIZERS, check_any
from noisescale.kernels import MultiTensor
from quick import quick_or_slow

MOST_ERROR = 1e-6

ROUNDING = 1e-4
"""PyTorch's operators add products that nearly cancel in fp32."""

on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.mark.processes
@pytest.mark.parametrize("name", quick_or_slow(CASES, {"bf16 and fp32", "numbers on the device", "planted"}))
def test_the_kernel_gives_what_the_formula_does(name, interpreted):
    assert interpreted[name]["error"] <= MOST_ERROR
    assert interpreted[name]["error of operators"] <= MOST_ERROR
    assert interpreted[name]["is repeatable"]


@pytest.mark.processes
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_update_promises_the_same_whoever_sums_it_up(name, interpreted):
    assert interpreted[name]["off"] <= ROUNDING
    assert interpreted[name]["asked"] == {"torch": False, "triton": True}


@pytest.mark.processes
@pytest.mark.parametrize("name", [ELSEWHERE])
def test_a_kernel_never_reads_an_address_of_another_device(name, interpreted):
    assert interpreted[name] == {"is left": True}


@pytest.mark.gpu
@on_a_gpu
@pytest.mark.parametrize("name", [*CASES, *OPTIMIZERS])
def test_so_it_is_compiled(name):
    found = check_any(name, "cuda")

    assert found.get("off", 0) <= ROUNDING
    assert found.get("error", 0) <= MOST_ERROR
    assert found.get("is repeatable", True)


def test_lists_that_no_kernel_reads_are_left_to_others():
    g, v = torch.ones(3, 4), torch.ones(3, 4)
    lists = MultiTensor([12], [torch.float32], "cpu")

    assert lists.in_metric([g], [v], [v], 1e-8, 1.0) is None
