import pytest
import torch

from noisescale.capture.sums.small_batches import SmallBatchSize, sum_late_sizes, sum_sizes, weighted_sums
from noisescale.capture.sums.step_norms import SizeSums, StepSizes, resolve_sizes


def read(*sizes):
    return [SmallBatchSize(size, is_marked=False) for size in sizes]


def marked(*sizes):
    return [SmallBatchSize(size, is_marked=True) for size in sizes]


@pytest.mark.parametrize(
    ("small_batches", "batch_size", "expected"),
    [
        (read(4, 4), None, StepSizes(2, 8, "inferred", mean_inverse_size=0.25)),
        (read(4, 2), None, StepSizes(2, 6, "inferred", are_equal=False, mean_inverse_size=0.375, sum_of_sq_sizes=20)),
        (read(4, 2), 6, StepSizes(2, 6, "argument", are_equal=False, mean_inverse_size=0.375, sum_of_sq_sizes=20)),
        (read(4, 2), 64, StepSizes(2, 64, "argument", mean_inverse_size=1 / 32)),
        (read(None, 4), None, StepSizes(2, None, None)),
        (read(None, 4), 8, StepSizes(2, 8, "argument", mean_inverse_size=0.25)),
        (
            marked(40, 10),
            None,
            StepSizes(2, 50, "micro_batch", are_equal=False, mean_inverse_size=0.0625, sum_of_sq_sizes=1700),
        ),
        (
            marked(40, 10),
            25,
            StepSizes(2, 25, "argument", are_equal=False, mean_inverse_size=0.125, sum_of_sq_sizes=425),
        ),
        (
            marked(40, 10, 0),
            None,
            StepSizes(2, 50, "micro_batch", are_equal=False, mean_inverse_size=0.0625, sum_of_sq_sizes=1700),
        ),
        ([], None, StepSizes(0, None, None)),
        ([], 8, StepSizes(0, 8, "argument")),
    ],
    ids=[
        "read, equal",
        "read, unequal",
        "read and given alike",
        "read is another dimension, so the given size is split equally",
        "one not readable",
        "one not readable, given",
        "marked",
        "marked in tokens, given in sequences",
        "an empty small batch does not count",
        "no backward",
        "no backward, given",
    ],
)
def test_sizes_of_a_step(small_batches, batch_size, expected):
    assert resolve_sizes(sum_sizes(small_batches), batch_size) == expected


MANY = [*marked(40, 10, 0), SmallBatchSize(None), SmallBatchSize(8.0, num_small=8)]


def test_sizes_that_only_the_device_knows_add_up_to_the_same_sums():
    late = [SmallBatchSize(torch.tensor(float(s.num_examples or 0)), s.is_marked, s.num_small) for s in MANY[:3]]

    sums = SizeSums(*sum_late_sizes([*late, *MANY[3:]], torch.zeros(1)).tolist())

    assert sums == sum_sizes(MANY)


def test_small_batches_without_examples_are_in_no_weighted_sum():
    sq_norm_KC = torch.tensor([[1.0, 2.0], [3.0, 4.0], [7.0, 7.0], [5.0, 6.0], [16.0, 24.0]], dtype=torch.float64)

    plain_C, sized_C = weighted_sums(sq_norm_KC, MANY)

    assert plain_C.tolist() == [25.0, 36.0]
    assert sized_C.tolist() == pytest.approx([1 / 40 + 3 / 10 + 5 + 16, 2 / 40 + 4 / 10 + 6 + 24])
