"""A question's fields are declared once: keywords, docstrings, ranges and refusals are those of the dataclass."""

import re
from dataclasses import fields

import pytest

from noisescale_core.advice.question import FIELDS, LISTS, SWITCHES, Asked, Limits, Question, Worth
from noisescale_core.errors import ConfigError


def described(kind):
    """The fields of a docstring's section Attributes."""
    return re.findall(r"^\s+(\w+): ", kind.__doc__.partition("Attributes:")[2], flags=re.MULTILINE)


def test_the_keywords_are_the_fields_of_a_question():
    assert set(Asked.__annotations__) == set(FIELDS)


def test_every_field_is_described_where_it_is_declared():
    assert described(Worth) == [one.name for one in fields(Worth)]
    assert described(Limits) == [one.name for one in fields(Limits)]
    assert sorted([*described(Worth), *described(Limits), *described(Question)]) == sorted(FIELDS)


def test_what_is_no_number_is_told_by_its_default():
    assert SWITCHES == ("fixed_hardware",)
    assert LISTS == ("batch_sizes",)


@pytest.mark.parametrize("size", [0, -1, True, "64", float("nan")])
def test_a_batch_that_is_not_positive_is_refused_by_name_and_value(size):
    with pytest.raises(ConfigError, match=f"each of batch_sizes must be .*, got {size!r}"):
        Question.of({"batch_sizes": [64, size]})


def test_a_batch_that_can_be_run_is_told_about():
    assert Question.of({"batch_sizes": [1e-300, 64, 96.5]}).batch_sizes == [1e-300, 64, 96.5]
