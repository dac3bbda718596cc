"""Whatever the core refuses, it refuses with an error of the tree in `errors.py`."""

import ast
from pathlib import Path

import pytest

import noisescale_core
from noisescale_core.errors import DomainError, NoiseScaleError
from noisescale_core.theory import trade_off

FILES = sorted(Path(noisescale_core.__file__).parent.rglob("*.py"))


def test_a_value_outside_a_formula_is_named_with_the_way_out():
    with pytest.raises(DomainError, match="batch_size must be positive and finite, got 0"):
        trade_off.step_efficiency(100, 0)


def test_it_is_an_error_of_ours_and_still_a_value_error():
    assert issubclass(DomainError, NoiseScaleError)
    assert issubclass(DomainError, ValueError)


@pytest.mark.parametrize("path", FILES, ids=lambda path: "/".join(path.parts[-2:]))
def test_no_file_of_the_core_raises_an_error_of_another_tree(path):
    raised = [
        node.exc.func.id
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name)
    ]

    assert [name for name in raised if name not in {"ConfigError", "DomainError", "EstimationError"}] == []
