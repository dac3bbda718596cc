"""Numbers as people read them."""

import pytest

from noisescale_core.advice.parts.numbers import chance, duration, ratio


@pytest.mark.parametrize(
    ("hours", "said"),
    [(2.4 / 3600, "2.4 s"), (0.146, "8.76 min"), (1, "1 h"), (11.3, "11.3 h"), (48, "48 h"), (127, "5.29 days")],
)
def test_a_time_is_said_in_the_unit_that_people_would_use(hours, said):
    assert duration(hours) == said


@pytest.mark.parametrize(
    ("probability", "said"), [(0.797, "79 %"), (0.8, "80 %"), (0.29, "29 %"), (0.57, "57 %"), (0.995, "more than 99 %")]
)
def test_a_probability_is_never_said_surer_than_it_is(probability, said):
    """Of 0.797 nothing is advised without a "probably", which 80 % would ask for."""
    assert chance(probability) == said


@pytest.mark.parametrize(("value", "said"), [(9.94, "9.9 ×"), (9.96, "10 ×"), (12.3, "12 ×"), (0.42, "0.4 ×")])
def test_a_ratio_has_a_decimal_only_where_it_says_something(value, said):
    assert ratio(value) == said
