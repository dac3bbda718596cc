"""The first value that says "resolved" holds the truth, on the server as in the job; simulated, without a database."""

from itertools import islice

import numpy as np
import pytest

from quick import quick_or_slow
from server_windows import blocks_in_a_chart, blocks_of_the_latest_window
from simulated_runs import Setting, blocks_in_the_job, first_moments


def test_the_latest_window_has_the_blocks_of_the_jobs_own_window() -> None:
    """Where its blocks have just become twice as long, the job has forgotten a few of the oldest before it."""
    pairs = zip(blocks_of_the_latest_window(0), blocks_in_the_job(), strict=False)
    for (window, before), (window_in_job, before_in_job) in islice(pairs, 3_000):
        assert window.tolist() == window_in_job.tolist()
        assert before[-len(before_in_job) :].tolist() == before_in_job.tolist()
        assert len(before) - len(before_in_job) <= 4


@pytest.mark.parametrize("first_step", quick_or_slow([0, 1_000, 1_237], [1_237]))
def test_the_first_resolved_latest_window_holds_the_truth(first_step: int) -> None:
    blocks = blocks_of_the_latest_window(first_step)
    setting = Setting(10, 16, "1000 equal")
    [found] = first_moments(np.random.default_rng(4), setting, runs=600, steps=600, blocks=blocks)

    assert found.share_resolved > 0.95
    assert found.coverage >= 0.925  # 93 %, less a part of the standard error of 600 runs
    assert found.under_half <= 0.03


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize(("window", "level"), [(40, 0), (300, 1)])
def test_the_first_resolved_point_of_a_chart_holds_the_truth(window: int, level: int) -> None:
    """Deep in the noise: z of a window is about 5, so that many windows are not resolved."""
    setting = Setting(0.75 * window**0.5, 8, "30 equal")
    blocks = blocks_in_a_chart(window)
    [found] = first_moments(
        np.random.default_rng(4), setting, runs=600, steps=20 * window, every=level + 1, blocks=blocks
    )

    assert found.share_resolved > 0.5
    assert found.coverage >= 0.925
    assert found.under_half <= 0.03
