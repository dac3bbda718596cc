"""Cases of one test of which a few run at every change and the rest in `make test-full`."""

from collections.abc import Container, Iterable
from typing import Any

import pytest


def quick_or_slow(cases: Iterable[Any], quick: Container[Any]) -> list[Any]:
    """The cases for `pytest.mark.parametrize`, slow but for those named.

    Args:
        cases: All of them, in their order.
        quick: Those that the quick tests run.
    """
    return [case if case in quick else pytest.param(case, marks=pytest.mark.slow) for case in cases]
