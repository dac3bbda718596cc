"""Which tensors are one run of memory, and what is done with those that are not."""

import pytest
import torch

from noisescale.kernels.memory import MemoryRuns, is_one_run

X = torch.arange(120.0).view(2, 3, 20)


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (X, True),
        (X.permute(2, 0, 1), True),
        (X.transpose(0, 1), True),
        (X[:1], True),
        (X[:, :1], False),
        (X[..., ::2], False),
        (X[:1].expand(4, 3, 20), False),
        (torch.tensor(3.0), True),
        (X[0, 0, 5:], True),
        (torch.ones(4, 8, 5, 5).to(memory_format=torch.channels_last), True),
        (torch.ones(3, 1).expand(3, 1), True),
    ],
)
def test_a_run_has_every_element_once_and_no_gaps(tensor, expected):
    assert is_one_run(tensor) is expected


def test_a_transposed_tensor_is_read_as_it_lies():
    runs = MemoryRuns()

    first, _ = runs.of([X.permute(2, 0, 1)], [])

    assert first[0].data_ptr() == X.data_ptr()
    assert runs.num_copies == 0


def test_two_tensors_in_one_order_are_read_as_they_lie():
    runs = MemoryRuns()

    first, other = runs.of([X.permute(2, 0, 1)], [X.clone().permute(2, 0, 1)])

    assert first[0].stride() == other[0].stride() == (1, 60, 20)
    assert runs.num_copies == 0


def test_two_tensors_in_different_orders_are_copied_into_one():
    runs = MemoryRuns()
    transposed = X[0].t().contiguous().t()

    first, other = runs.of([X[0]], [transposed])

    assert first[0].is_contiguous()
    assert other[0].is_contiguous()
    assert torch.equal(other[0], transposed)
    assert runs.num_copies == 1


def test_a_tensor_without_counterpart_is_read_as_it_lies():
    runs = MemoryRuns()

    first, other = runs.of([None, X.transpose(0, 1)], [X.transpose(0, 1), None])

    assert other[0].data_ptr() == first[1].data_ptr() == X.data_ptr()
    assert runs.num_copies == 0


def test_gaps_are_copied_away():
    runs = MemoryRuns()

    first, _ = runs.of([X[..., ::2]], [])

    assert torch.equal(first[0], X[..., ::2])
    assert is_one_run(first[0])
    assert runs.num_copies == 1
