"""The one batch of a run, by its windows: what is a change of it, and what only looks like one."""

import random
from collections.abc import Sequence
from statistics import fmean

import pytest

from noisescale_server.analysis.series.steady_batch import BatchWindow, steady_batch


def windows(steps: Sequence[float], num_windows: int = 40) -> list[BatchWindow]:
    """The windows of a run with these batches, one a step."""
    length = -(-len(steps) // num_windows)
    parts = [steps[start : start + length] for start in range(0, len(steps), length)]
    return [BatchWindow(max(part), fmean(part)) for part in parts]


def epochs(num_steps: int, *, of: int, rest: float, batch: float = 64.0) -> list[float]:
    """Steps of one batch, but for the last of each epoch of so many steps."""
    return [rest if step % of == of - 1 else batch for step in range(num_steps)]


@pytest.mark.parametrize("num_steps", [9, 40, 400, 10_000])
@pytest.mark.parametrize("of", [2, 3, 5, 10, 77])
@pytest.mark.parametrize("rest", [1.0, 20.0, 60.0])
def test_the_smaller_last_step_of_an_epoch_is_no_change(num_steps: int, of: int, rest: float) -> None:
    assert steady_batch(windows(epochs(num_steps, of=of, rest=rest)), 64.0) == 64.0


def test_steps_that_all_differ_a_little_are_one_batch() -> None:
    rng = random.Random(1)
    steps = [rng.uniform(50.0, 70.0) for _ in range(4_000)]

    assert steady_batch(windows(steps), 61.0) == 61.0


@pytest.mark.parametrize("num_steps", [20, 100, 3_000])
@pytest.mark.parametrize("batches", [(32.0, 64.0), (64.0, 32.0), (32.0, 256.0, 32.0), (60.0, 64.0)])
def test_a_batch_that_changed_is_none(num_steps: int, batches: Sequence[float]) -> None:
    each = num_steps // len(batches)
    steps = [batch for batch in batches for _ in range(each)]

    assert steady_batch(windows(steps), batches[-1]) is None


def test_a_ramp_is_none() -> None:
    assert steady_batch(windows([16.0 + step // 10 for step in range(1_000)]), 115.0) is None


def test_a_change_in_the_last_steps_leaves_the_batch_that_the_run_trained_at() -> None:
    assert steady_batch(windows([32.0] * 990 + [256.0] * 10), 256.0) == 32.0


def test_a_warm_up_of_a_twentieth_is_no_change() -> None:
    assert steady_batch(windows([8.0] * 25 + [64.0] * 975), 64.0) == 64.0


def test_without_a_known_window_the_newest_batch_stands() -> None:
    assert steady_batch([], 64.0) == 64.0
