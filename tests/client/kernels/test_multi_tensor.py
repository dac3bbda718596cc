"""Sums over lists of tensors: in plain PyTorch, by Triton's interpreter, and compiled where there is a GPU."""

import pytest
import torch

from client.kernels.multi_tensor_cases import CASES, check
from noisescale.kernels import MultiTensor
from quick import quick_or_slow

pytestmark = pytest.mark.processes

torch.set_num_threads(1)


A_MILLIONTH = 1e-6

QUICK = {*("bf16", "mixed types in groups"), *({case.method: name for name, case in reversed(CASES.items())}.values())}
"""One case of all precisions and one an operation."""


def assert_right(result):
    too_far = {name: error for name, error in result["errors"].items() if not error <= A_MILLIONTH}
    assert not too_far
    assert result["errors"]["num_nonfinite"] == 0
    assert result["is complete"]
    assert result["is added up"]
    assert result["is repeatable"]


@pytest.mark.parametrize("name", CASES)
def test_plain_pytorch_gives_the_sums_of_each_tensor_and_group_and_the_total(name):
    result = check(name, "torch", "cpu")

    assert_right(result)
    assert not result["is fused"]


@pytest.mark.parametrize("name", quick_or_slow(CASES, QUICK))
def test_the_kernels_give_the_sums_of_each_tensor_and_group_and_the_total(name, interpreted):
    result = interpreted[name]

    assert_right(result)
    assert result["is fused"]
    assert result["num_copies"] == CASES[name].num_copies


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", CASES)
def test_the_compiled_kernels_give_the_sums_of_each_tensor_and_group_and_the_total(name):
    result = check(name, "triton", "cuda")

    assert_right(result)
    assert result["is fused"]
    assert result["num_copies"] == CASES[name].num_copies


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((), (), "cpu"), "at least one tensor"),
        (((1, 2), (torch.float32,), "cpu"), "equally long, got 2, 1 and 2"),
        (((1,), (torch.float32,), "cpu", (1,), 1), "between -1 and 0, got 1"),
        (((1,), (torch.int32,), "cpu"), "float16 or float64, got torch.int32"),
    ],
)
def test_lists_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        MultiTensor(*arguments)


@pytest.mark.parametrize(
    ("tensors", "others", "message"),
    [
        ([torch.ones(3)], [torch.ones(3)], "must have 2 tensors or None, got 1"),
        ([torch.ones(4), None], [None, None], "tensor 0 must have 3 elements, got 4"),
        ([torch.ones(3).half(), None], [None, None], "must be of torch.float32, got torch.float16"),
        ([torch.ones(3), None], [torch.ones(3, 1), None], "shaped like"),
        ([torch.ones(3), None], [torch.ones(3, dtype=torch.int32), None], "got torch.int32"),
    ],
)
def test_tensors_that_were_not_announced_are_refused(tensors, others, message):
    multi_tensor = MultiTensor((3, 2), (torch.float32,) * 2, "cpu")

    with pytest.raises(ValueError, match=message):
        multi_tensor.dots(tensors, others)


@pytest.mark.parametrize("main", [None, torch.ones(3, 2).t()], ids=["missing", "strided"])
def test_a_sum_that_cannot_be_added_to_is_refused(main):
    multi_tensor = MultiTensor((6,), (torch.float32,), "cpu")

    with pytest.raises(ValueError, match="contiguous tensor"):
        multi_tensor.accumulate([main], [torch.ones(2, 3)])


def test_a_sum_in_16_bit_is_refused():
    multi_tensor = MultiTensor((2,), (torch.bfloat16,), "cpu")

    with pytest.raises(ValueError, match=r"must be of torch\.float32, got torch\.bfloat16"):
        multi_tensor.accumulate([torch.ones(2).bfloat16()], [torch.ones(2).bfloat16()])
