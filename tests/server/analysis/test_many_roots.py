"""Roots of many functions at once."""

import numpy as np
import pytest

from noisescale_server.analysis.sweeps.fitting.many_roots import many_roots


@pytest.mark.parametrize(
    "function", [lambda x: x**2, lambda x: 20 * np.log1p(x**2), lambda x: np.expm1(x), lambda x: x + x**5]
)
def test_each_root_is_found_inside_its_bracket(function):
    roots = np.array([0.1, 0.3, 1.0, 7.0])

    found = many_roots(
        lambda x: function(x) - function(roots), np.zeros(4), np.full(4, 9.0), at_inside=-function(roots)
    )

    assert found == pytest.approx(roots, rel=1e-5)


def test_brackets_may_lie_below_what_they_start_from():
    found = many_roots(lambda x: x**2 - 4, np.zeros(1), np.full(1, -5.0), at_inside=np.full(1, -4.0))

    assert found == pytest.approx([-2.0], rel=1e-6)


def test_few_calls_are_enough():
    calls = []

    def above(x):
        calls.append(x)
        return 20 * np.log1p(x**2) - 3.9

    many_roots(above, np.zeros(200), np.full(200, 3.0), at_inside=np.full(200, -3.9))

    assert len(calls) <= 12
