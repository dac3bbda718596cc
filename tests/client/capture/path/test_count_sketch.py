"""Sketches: linear, exact where every element has a bucket of its own, and unbiased with the stated error elsewhere."""

import math

import pytest
import torch

from noisescale.capture.path.count_sketch import CountSketch, random_words, rows_of_piece
from noisescale_core.estimators.path import SKETCH_SIZE, sketch_error


def sq_norm(sketch):
    return float((sketch * sketch).sum())


def relative_errors(make, num_seeds=60):
    """Of the squared norm by sketches of other signs."""
    tensors = [[make()]]
    true = sum(float(t.double().square().sum()) for group in tensors for t in group)
    return [sq_norm(CountSketch(tensors, seed=1000 * seed).now()) / true - 1 for seed in range(num_seeds)]


def rank_one():
    torch.manual_seed(1)
    return torch.outer(torch.randn(300), torch.randn(256))


def one_column():
    torch.manual_seed(2)
    matrix = torch.zeros(2000, 1024)
    matrix[:, 5] = torch.randn(2000)
    return matrix


def one_row():
    torch.manual_seed(3)
    matrix = torch.zeros(30, 50_000)
    matrix[7] = 1.0
    return matrix


def long_vector():
    torch.manual_seed(4)
    return torch.randn(200_001)


@pytest.mark.parametrize("make", [rank_one, one_column, one_row, long_vector])
def test_squared_norms_are_unbiased_and_as_exact_as_is_said_whatever_the_shape(make):
    errors = relative_errors(make)

    mean = sum(errors) / len(errors)
    rms = math.sqrt(sum(error**2 for error in errors) / len(errors))
    assert abs(mean) < 5 * sketch_error() / math.sqrt(len(errors))
    assert rms < 1.3 * sketch_error()


def test_parameters_with_fewer_elements_than_buckets_are_exact():
    torch.manual_seed(0)
    parameters = [torch.randn(20, 30), torch.randn(30), torch.randn(7, 3)]

    found = sq_norm(CountSketch([parameters]).now())

    assert found == pytest.approx(sum(float(p.double().square().sum()) for p in parameters), rel=1e-6)


def test_a_sketch_is_linear_so_the_distance_of_two_moments_is_that_of_their_sketches():
    torch.manual_seed(0)
    parameters = [torch.randn(500, 400), torch.randn(70_000)]
    changes = [torch.randn_like(p) for p in parameters]
    sketch = CountSketch([parameters])
    before = sketch.now()
    for parameter, change in zip(parameters, changes, strict=True):
        parameter += 1e-3 * change
    after = sketch.now()

    alone = CountSketch([changes]).now() * 1e-3

    torch.testing.assert_close(after - before, alone, rtol=0, atol=1e-3 * float(alone.abs().max()))


def test_each_group_has_buckets_of_its_own():
    torch.manual_seed(0)
    first, second = torch.randn(40), torch.randn(50)

    sketch_GM = CountSketch([[first], [second]]).now()

    assert sketch_GM.shape == (2, SKETCH_SIZE)
    for row, part in zip(sketch_GM, (first, second), strict=True):
        assert sq_norm(row) == pytest.approx(float(part.double().square().sum()), rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64])
def test_every_dtype_is_taken(dtype):
    torch.manual_seed(0)
    parameter = torch.randn(20, 15, dtype=dtype)

    found = sq_norm(CountSketch([[parameter]]).now())

    assert found == pytest.approx(float(parameter.abs().double().square().sum()), rel=1e-5)


def test_memory_in_another_order_and_empty_parameters_are_taken():
    torch.manual_seed(0)
    parameter = torch.randn(4, 8, 5, 5).to(memory_format=torch.channels_last)

    found = sq_norm(CountSketch([[parameter, torch.zeros(0), torch.randn(3, 300).t() * 0]]).now())

    assert found == pytest.approx(float(parameter.double().square().sum()), rel=1e-6)


def test_signs_are_fair_and_differ_from_piece_to_piece_and_seed_to_seed():
    words = [random_words(40_000, seed, torch.device("cpu")) for seed in (0, 1, 5 << 20)]

    for place, one in enumerate(words):
        bits = torch.stack([(one >> bit) & 1 for bit in range(32)]).double()
        assert (bits.mean(1) - 0.5).abs().max() < 5 * 0.5 / math.sqrt(40_000)
        signs = 2 * bits - 1
        together = (signs @ signs.T / 40_000).fill_diagonal_(0)
        assert together.abs().max() < 5 / math.sqrt(40_000)
        for other in words[:place]:
            assert (one == other).double().mean() < 0.001


def test_the_words_are_the_same_on_every_machine():
    def mixed(word):
        word = (word ^ (word >> 16)) * 0x85EBCA6B % 2**32
        word = (word ^ (word >> 13)) * 0xC2B2AE35 % 2**32
        return word ^ (word >> 16)

    found = random_words(4, 7, torch.device("cpu"))

    assert [word % 2**32 for word in found.tolist()] == [mixed((place + 7 * 0x9E3779B1) % 2**32) for place in range(4)]


def test_no_random_number_of_the_training_is_drawn():
    torch.manual_seed(3)
    before = torch.get_rng_state()

    CountSketch([[torch.ones(100_000)]]).now()

    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("num_elements", "device", "rows"),
    [(10**9, "cpu", 64), (10_000_000, "cuda", 4096), (100_000_000, "cuda", 6122), (70 * 10**9, "cuda", 8192)],
)
def test_on_a_device_pieces_grow_with_the_model_so_that_launches_are_few(num_elements, device, rows):
    assert rows_of_piece(num_elements, torch.device(device)) == rows
