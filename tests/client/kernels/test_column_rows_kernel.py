"""Rows of squared norms where layers are dropped and experts are not reached, in Triton's interpreter and on a GPU."""

import pytest
import torch

from client.kernels.column_rows_cases import CASES, check

MOST_ERROR = 1e-6


def assert_right(name, found):
    assert found["error"] <= MOST_ERROR
    # three sets of their own, and the list of all in each mixture of types that there was
    assert found["layouts"] <= {"few sets": 32, "more sets, of two types": 3 + 2 * 5}.get(name, 4)


@pytest.mark.processes
@pytest.mark.parametrize("name", CASES)
def test_whichever_parameters_have_a_gradient_the_row_is_that_of_the_formula(name, interpreted):
    assert_right(name, interpreted[name])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", CASES)
def test_so_it_is_compiled(name):
    assert_right(name, check(name, "cuda"))
