"""Numbers as people read them."""

import pytest

from noisescale_core.advice.numbers import duration


@pytest.mark.parametrize(
    ("hours", "said"),
    [(2.4 / 3600, "2.4 s"), (0.146, "8.76 min"), (1, "1 h"), (11.3, "11.3 h"), (48, "48 h"), (127, "5.29 days")],
)
def test_a_time_is_said_in_the_unit_that_people_would_use(hours, said):
    assert duration(hours) == said
