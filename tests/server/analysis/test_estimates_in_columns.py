"""The noise scales of many windows in columns, against `uncertainty.estimate` of each."""

import dataclasses
import math
import random

import numpy as np
import pytest

from noisescale_core.estimators.uncertainty import NoiseScaleEstimate, State, estimate
from noisescale_core.estimators.windows import WindowSums
from noisescale_server.analysis.series.estimates import FIELDS, Estimates, estimates_of

NUM_WINDOWS = 3_000


def window(rng: random.Random) -> WindowSums:
    """Of 0 to 40 blocks with a signal from none to beyond doubt, at any scale; now and then equal or negative."""
    num_blocks = rng.choice([0, 1, 7, 8, 8, 12, 20, 40])
    size, noise = 10.0 ** rng.uniform(-30, 10), 10.0 ** rng.uniform(-3, 1.5)
    trace = rng.choice([-1.0, 0.0, 1e-12, 1.0, 1.0, 1.0, 1.0]) * size
    blocks = []
    for _ in range(num_blocks):
        n = rng.choice([1, 1, 3, 8])
        y = size * rng.choice([1.0, 1.0, 1.0, -0.1]) * (1 + noise * rng.gauss(0, 1))
        blocks.append((n, n * trace * (1 + 0.1 * rng.gauss(0, 1)), n * y))
    if rng.random() < 0.05:
        blocks = blocks[:1] * num_blocks
    return WindowSums.from_blocks(blocks)


@pytest.mark.parametrize("has_signal", [True, False])
def test_columns_say_what_the_estimate_of_each_window_says(has_signal):
    rng = random.Random(int(has_signal))
    windows, before = [window(rng) for _ in range(NUM_WINDOWS)], [window(rng) for _ in range(NUM_WINDOWS)]
    expected = [estimate(one, has_signal=has_signal, before=b) for one, b in zip(windows, before, strict=True)]

    found = estimates_of(np.array(windows, float), np.array(before, float), has_signal=has_signal)

    assert {one.state for one in expected} == set(State)
    assert len({one.reason for one in expected}) >= (6 if has_signal else 7)
    for one, same in zip(expected, found, strict=True):
        for name in FIELDS:
            mine, theirs = getattr(same, name), getattr(one, name)
            assert type(mine) is type(theirs), (name, one)
            assert mine == theirs or math.isclose(mine, theirs, rel_tol=1e-9), (name, one)


def test_one_estimate_and_the_last_ones_are_taken_as_from_a_list():
    rng = random.Random(2)
    each = [estimate(window(rng)) for _ in range(5)]

    found = Estimates.of(each)

    assert found[-1] == each[-1]
    assert found[1:3] == each[1:3]
    assert list(found) == each
    assert len(Estimates.of([])) == 0
    assert tuple(field.name for field in dataclasses.fields(NoiseScaleEstimate)) == FIELDS
