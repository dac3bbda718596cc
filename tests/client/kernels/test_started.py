"""A compiled kernel is started again by the sort of the call, and another sort is compiled by itself."""

import pytest

from noisescale.kernels.multi_tensor import launch
from noisescale.kernels.multi_tensor.launch import start_again


class Compiled:
    """What Triton gives back of a first call."""

    def __init__(self, calls):
        self.calls = calls

    def __getitem__(self, grid):
        return lambda *arguments: self.calls.append(("again", grid, arguments))


class Kernel:
    """Stands in for a function by `triton.jit`."""

    def __init__(self, *, is_interpreted=False):
        self.calls = []
        self.is_interpreted = is_interpreted

    def __getitem__(self, grid):
        def call(*arguments, **named):
            self.calls.append(("first", grid, arguments, named))
            return None if self.is_interpreted else Compiled(self.calls)

        return call


@pytest.fixture(autouse=True)
def nothing_compiled(monkeypatch):
    monkeypatch.setattr(launch, "_COMPILED", {})


def start(kernel, sort, *arguments, block=64, num_warps=8):
    start_again(kernel, (7,), arguments, {"BLOCK": block, "SCALE": True}, {"num_warps": num_warps}, sort=sort)


def test_the_second_call_of_a_sort_runs_the_kernel_of_the_first_with_its_own_arguments():
    kernel = Kernel()

    start(kernel, "aligned", 1, 2)
    start(kernel, "aligned", 3, 4)

    assert kernel.calls == [
        ("first", (7,), (1, 2), {"BLOCK": 64, "SCALE": True, "num_warps": 8}),
        ("again", (7, 1, 1), (3, 4, 64, True)),
    ]


def test_another_sort_and_another_kernel_are_compiled_by_themselves():
    kernel, other = Kernel(), Kernel()

    start(kernel, "aligned", 1)
    start(kernel, "odd addresses", 1)
    start(other, "aligned", 1)

    assert [call[0] for call in kernel.calls + other.calls] == ["first"] * 3


def test_other_constants_and_other_options_are_compiled_by_themselves():
    kernel = Kernel()

    start(kernel, "aligned", 1)
    start(kernel, "aligned", 1, block=128)
    start(kernel, "aligned", 1, num_warps=4)

    assert [call[0] for call in kernel.calls] == ["first"] * 3


def test_what_triton_interprets_is_called_as_ever():
    kernel = Kernel(is_interpreted=True)

    start(kernel, "aligned", 1)
    start(kernel, "aligned", 2)

    assert [call[0] for call in kernel.calls] == ["first", "first"]
