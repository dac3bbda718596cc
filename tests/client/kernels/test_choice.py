"""Who sums up: Triton where it is wanted and right, else PyTorch, with one warning."""

import ctypes
import os
import subprocess
import sys

import pytest
import torch

from noisescale.kernels import PREFERENCE, MultiTensor, choice, squared_norms
from noisescale.kernels.multi_tensor.naive import NaiveReduction
from noisescale.kernels.operations import Lists, Operation

CPU = torch.device("cpu")

X = [torch.arange(5.0), torch.ones(3)]

THE_SUMS = pytest.approx([30, 3, 33], rel=1e-12)

LAUNCHING = ("noisescale.kernels.multi_tensor.launch", "noisescale.kernels.multi_tensor.kernel")


@pytest.fixture(autouse=True)
def untested(monkeypatch):
    """As in a fresh process."""
    monkeypatch.setattr(choice, "_TESTED", {})
    choice._warn_once.cache_clear()
    squared_norms._multi_tensor.cache_clear()


@pytest.fixture
def warnings(caplog):
    """What has been said so far."""
    return lambda: [record.getMessage() for record in caplog.records if record.name == "noisescale"]


def sums(kernels, x=None):
    return MultiTensor((5, 3), (torch.float32,) * 2, CPU, kernels=kernels).sq_norms(x or X).sq_norm.tolist()


class TooLarge(NaiveReduction):
    """A kernel that is a little off."""

    def sums(self, operation, lists):
        return super().sums(operation, lists) * (1 + 1e-5)


class Right(NaiveReduction):
    """A kernel that is right, and reads numbers where they lie."""

    def sums_at(self, operation, lists):
        dtypes = {index: launch.dtype for launch in self._layout.launches for index in launch.indices}
        values = [
            torch.frombuffer(
                (ctypes.c_char * (numel * dtypes[index].itemsize)).from_address(lists.first[index]), dtype=dtypes[index]
            )
            for index, numel in enumerate(self._layout.numels)
        ]
        return self.sums(operation, Lists(values, inverse_scale=lists.inverse_scale))


def test_the_host_is_left_to_pytorch(warnings, monkeypatch):
    monkeypatch.setattr(choice, "fused", pytest.fail)

    assert sums("auto") == THE_SUMS
    assert sums("torch") == THE_SUMS
    assert not warnings()


def test_without_triton_pytorch_sums_up_and_one_warning_says_so(monkeypatch, warnings):
    monkeypatch.setitem(sys.modules, "triton", None)
    for name in LAUNCHING:
        monkeypatch.delitem(sys.modules, name, raising=False)

    assert sums("triton") == THE_SUMS
    assert sums("triton") == THE_SUMS
    MultiTensor((5,), (torch.float32,), CPU, kernels="triton").dots(X[:1], X[:1])

    assert len(warnings()) == 1
    assert "NOISESCALE_KERNELS=torch" in warnings()[0]
    assert "cpu" in warnings()[0]
    assert "triton" in warnings()[0]


def test_where_the_kernels_do_not_start_pytorch_sums_up_and_one_warning_says_so(warnings, monkeypatch):
    """Compiled kernels on a host without a GPU."""
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)

    assert sums("triton") == THE_SUMS
    assert sums("triton") == THE_SUMS

    assert len(warnings()) == 1


def test_a_kernel_that_is_off_is_not_used(monkeypatch, warnings):
    monkeypatch.setattr(choice, "fused", TooLarge)

    assert sums("triton") == THE_SUMS
    assert sums("triton") == THE_SUMS

    assert len(warnings()) == 1
    assert "ArithmeticError: sq_norms" in warnings()[0]


def test_a_kernel_that_is_right_is_used(monkeypatch, warnings):
    monkeypatch.setattr(choice, "fused", Right)
    multi_tensor = MultiTensor((5, 3), (torch.float32,) * 2, CPU, kernels="triton")

    multi_tensor.sq_norms(X)

    assert multi_tensor.is_fused
    assert not warnings()


def test_a_kernel_is_tested_once_for_each_operation(monkeypatch):
    made = []
    monkeypatch.setattr(choice, "fused", lambda *arguments: made.append(arguments) or Right(*arguments))

    for _ in range(3):
        choice.takes_triton("triton", CPU, Operation.DOTS)
    choice.takes_triton("triton", CPU, Operation.SIGNS)

    assert len(made) == 2


def test_nothing_is_tested_or_made_while_a_graph_is_captured(monkeypatch):
    """A test waits for the device, and what is made would be copied again at each replay."""
    monkeypatch.setattr(choice, "fused", Right)
    monkeypatch.setattr(choice, "is_capturing", lambda device: True)

    assert not choice.takes_triton("triton", CPU, Operation.SQ_NORMS)
    choice._TESTED[CPU, Operation.SQ_NORMS] = True
    multi_tensor = MultiTensor((5, 3), (torch.float32,) * 2, CPU, kernels="triton")
    multi_tensor.sq_norms(X)

    assert not multi_tensor.is_fused


def test_what_the_process_prefers_counts_where_nothing_is_said(monkeypatch):
    monkeypatch.setattr(choice, "fused", Right)
    monkeypatch.setattr(PREFERENCE, "kernels", "triton")
    multi_tensor = MultiTensor((5, 3), (torch.float32,) * 2, CPU)

    multi_tensor.sq_norms(X)

    assert multi_tensor.is_fused


def test_squared_norms_go_through_the_kernels_that_the_process_prefers(monkeypatch):
    used = []
    monkeypatch.setattr(choice, "fused", lambda *arguments: used.append(arguments) or Right(*arguments))
    monkeypatch.setattr(PREFERENCE, "kernels", "triton")
    sparse = torch.eye(3).to_sparse()

    sq_norms = squared_norms.squared_norms(
        [*X, sparse, torch.ones(2, dtype=torch.complex64), torch.full((20_000,), 2.0)]
    )
    again = squared_norms.squared_norms([torch.ones(4), torch.ones(2).half()])

    assert sq_norms.tolist() == pytest.approx([30, 3, 3, 2, 80_000])
    assert again.tolist() == pytest.approx([4, 2])
    assert len(used) == 3


@pytest.mark.slow
@pytest.mark.processes
def test_triton_is_not_loaded_before_it_is_wanted():
    code = (
        "import sys, torch; from noisescale.kernels import MultiTensor\n"
        "MultiTensor((2,), (torch.float32,), 'cpu').sq_norms([torch.ones(2)])\n"
        "print([name for name in sys.modules if name.split('.')[0] == 'triton'])"
    )

    finished = subprocess.run([sys.executable, "-c", code], env=os.environ, capture_output=True, text=True, timeout=120)

    assert finished.stdout.strip() == "[]", finished.stderr
