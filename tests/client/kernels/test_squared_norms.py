"""Squared norms must be right to 1e-6: their errors come out amplified by 2 (1 + B_simple / B)."""

import pytest
import torch

from noisescale.kernels.squared_norms import BUFFER, ROW, SMALL, squared_norms

torch.set_num_threads(1)

SIZES = (0, 1, 7, ROW - 1, ROW, ROW + 1, SMALL, SMALL + 1, BUFFER - 1, BUFFER + 5, 3 * BUFFER + ROW + 3)


def relative_error(tensor: torch.Tensor) -> float:
    exact = float(tensor.detach().double().square().sum())
    return abs(float(squared_norms([tensor])[0]) - exact) / exact if exact else float(squared_norms([tensor])[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", SIZES)
def test_every_size_and_dtype_is_right_to_a_millionth(size, dtype):
    tensor = (torch.randn(size, generator=torch.Generator().manual_seed(size)) * 0.1).to(dtype)

    assert relative_error(tensor) <= 1e-6


@pytest.mark.slow
@pytest.mark.thorough
def test_the_largest_gpt2_matrix_keeps_its_precision():
    """PyTorch's own fp32 norm is 5.5e-3 low here."""
    tensor = torch.randn(50257, 768, generator=torch.Generator().manual_seed(0))

    error = relative_error(tensor)
    own = abs(float(torch.nn.utils.get_total_norm([tensor])) ** 2 / float(tensor.double().square().sum()) - 1)

    assert error <= 1e-7
    assert own > 1e-4


@pytest.mark.parametrize("seed", range(30))
def test_equal_elements_whose_rounding_errors_do_not_cancel_are_right_to_a_millionth(seed):
    value = torch.rand((), generator=torch.Generator().manual_seed(seed)) + 0.1

    assert relative_error(value.expand(3 * SMALL)) <= 1e-6


def test_many_tensors_keep_their_order_whatever_their_size():
    tensors = [torch.full((size,), 2.0) for size in (SMALL + 1, 3, 0, SMALL * 2, 5)]

    sq_norms = squared_norms(tensors)

    assert sq_norms.dtype == torch.float64
    assert sq_norms.tolist() == pytest.approx([4.0 * (SMALL + 1), 12.0, 0.0, 8.0 * SMALL, 20.0])


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(200, 300).t(),
        torch.randn(64, 64)[::2, 1::3],
        torch.tensor(3.0),
        torch.randn(4, 5, 6, 7).permute(3, 1, 0, 2),
        torch.randn(3, 1).expand(3, 5000),
        torch.randn(5, dtype=torch.complex64),
    ],
    ids=["transposed", "strided", "scalar", "permuted", "expanded", "complex"],
)
def test_layouts_that_are_not_contiguous_count_each_element_once(tensor):
    exact = float(tensor.abs().double().square().sum())

    assert float(squared_norms([tensor])[0]) == pytest.approx(exact, rel=1e-6)


def test_a_sparse_gradient_adds_repeated_rows_before_squaring():
    indices, values = torch.tensor([[1, 1, 4]]), torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]])
    sparse = torch.sparse_coo_tensor(indices, values, (6, 2), check_invariants=True)

    assert float(squared_norms([sparse])[0]) == pytest.approx(float(sparse.to_dense().square().sum()))


def test_a_planted_nan_or_infinity_reaches_only_its_own_tensor():
    tensors = [torch.ones(5), torch.tensor([1.0, float("nan")]), torch.tensor([float("inf")])]

    sq_norms = squared_norms(tensors).tolist()

    assert sq_norms[0] == pytest.approx(5)
    assert sq_norms[1] != sq_norms[1]
    assert sq_norms[2] == float("inf")
