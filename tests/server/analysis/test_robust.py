"""The two estimates of scipy.stats that are written anew, held against it; and that a server starts without it."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import binomtest, theilslopes

from noisescale_server.analysis.robust import interval_of_share, theil_sen


@pytest.mark.parametrize("total", [1, 2, 7, 100, 5_000])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_the_interval_of_a_share_is_wilsons(total: int, level: float) -> None:
    for count in {0, 1, total // 3, total - 1, total}:
        expected = binomtest(count, total).proportion_ci(level, method="wilson")

        low, high = interval_of_share(count, total, level)

        assert (low, high) == pytest.approx((expected.low, expected.high), rel=1e-12, abs=1e-15)
        assert 0 <= low <= count / total <= high <= 1


@pytest.mark.parametrize("num_points", [2, 3, 6, 25, 140])
@pytest.mark.parametrize("digits", [1, 12], ids=["with ties", "without"])
def test_the_median_slope_and_its_interval_are_theils_and_sens(num_points: int, digits: int) -> None:
    rng = np.random.default_rng(num_points)
    x = np.append(np.round(rng.uniform(0, 3, num_points - 1), digits), 4.0)
    y = np.round(2 * x + rng.standard_t(2, num_points), digits)

    for level in (0.8, 0.95):
        expected = theilslopes(y, x, alpha=level)

        assert theil_sen(x, y, level) == pytest.approx(
            (expected.slope, expected.low_slope, expected.high_slope), rel=1e-12
        )


@pytest.mark.slow
def test_a_server_is_loaded_without_the_distributions_of_scipy() -> None:
    code = "import sys, noisescale_server.app; sys.exit('scipy.stats' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
