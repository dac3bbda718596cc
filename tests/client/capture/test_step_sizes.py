import pytest

from noisescale.capture.step_norms import SmallBatchSize, StepSizes, resolve_sizes


def read(*sizes):
    return [SmallBatchSize(size, is_marked=False) for size in sizes]


def marked(*sizes):
    return [SmallBatchSize(size, is_marked=True) for size in sizes]


@pytest.mark.parametrize(
    ("small_batches", "batch_size", "expected"),
    [
        (read(4, 4), None, StepSizes(2, 8, "inferred")),
        (read(4, 2), None, StepSizes(2, 6, "inferred", (1.5, 3.0))),
        (read(4, 2), 6, StepSizes(2, 6, "argument", (1.5, 3.0))),
        (read(4, 2), 64, StepSizes(2, 64, "argument")),
        (read(None, 4), None, StepSizes(2, None, None)),
        (read(None, 4), 8, StepSizes(2, 8, "argument")),
        (marked(30, 10), None, StepSizes(2, 40, "micro_batch", (4 / 3, 4.0))),
        (marked(30, 10), 8, StepSizes(2, 8, "argument", (4 / 3, 4.0))),
        (marked(30, 10, 0), None, StepSizes(2, 40, "micro_batch", (4 / 3, 4.0))),
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
    assert resolve_sizes(small_batches, batch_size) == expected
