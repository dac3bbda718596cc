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


def asked_for(request: pytest.FixtureRequest, name: str) -> list[str]:
    """The values of a parameter in the tests of this module that run: what one process works out for all of them.

    Args:
        request: Of a fixture of the module.
        name: Of the parameter.
    """
    of_module = (item for item in request.session.items if item.path == request.path)
    calls = (getattr(item, "callspec", None) for item in of_module)
    return sorted({call.params[name] for call in calls if call is not None and name in call.params})
