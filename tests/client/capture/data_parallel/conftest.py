"""Two jobs of several processes for the whole folder: what their ranks found, by scenario."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the processes of a job import scenarios by name, and so do the tests

from gloo_ranks import run_on_ranks

Results = dict[str, list[Any]]


@pytest.fixture(scope="session")
def of_two_ranks(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The scenarios of `gloo_two_ranks.py` and `gloo_behaviour.py`."""
    return run_on_ranks(2, "gloo_all_of_two", tmp_path_factory.mktemp("two-ranks"))


@pytest.fixture(scope="session")
def of_four_ranks(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The scenarios of `gloo_four_ranks.py`."""
    return run_on_ranks(4, "gloo_four_ranks", tmp_path_factory.mktemp("four-ranks"))


@pytest.fixture(scope="session")
def of_two_ranks_at_length(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The scenarios of `gloo_wide.py`."""
    return run_on_ranks(2, "gloo_wide", tmp_path_factory.mktemp("wide"))
