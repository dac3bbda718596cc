"""A fit as a tool says it: what has one end has that end, and is not said to be no fit."""

import pytest

from noisescale.agents.schemas import Quantity, Target
from noisescale.agents.sweeps import _text


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (500.0, 400.0, 650.0, "At 0.5: critical batch 500 examples [400, 650]"),
        (500.0, 400.0, None, "At 0.5: critical batch 500 examples [400, no upper bound]"),
        (500.0, None, 650.0, "At 0.5: critical batch 500 examples [0, 650]"),
        (None, 5000.0, None, "At 0.5: no fit, the critical batch is above 5,000 examples. all are below it"),
        (None, 50.0, 90.0, "At 0.5: no fit, the critical batch is above 50 and below 90 examples. all are below it"),
        (None, None, None, "At 0.5: no fit. all are below it"),
    ],
)
def test_every_end_that_is_known_is_said(value, low, high, words):
    batch = Quantity(value=value, low=low, high=high, unit="examples")
    refusal = None if value is not None else "all are below it"

    assert _text(Target(target=0.5, critical_batch=batch, batch_sizes=[8], steps=[None], refusal=refusal)) == words
