"""The preference between examples and steps, as the API is asked for it."""

from typing import Any

from noisescale_dashboard.api.question_fields import FIELDS
from noisescale_dashboard.api.transport import Query

PREFERENCES = (0.001, 0.999)
"""The ends themselves would ask for a batch of nothing or of everything."""
BALANCED = 0.5
"""Where the slider stands before anybody moves it."""

STATED_PRICES = tuple(one.asks for one in FIELDS if one.group == "price")
"""What says a step's worth instead of the preference; the API refuses two at once."""


def question(preference: float, limits: Query) -> dict[str, Any]:
    """The words of a query for a preference, inside limits."""
    low, high = PREFERENCES
    # a slider that nobody moved states no price: the answer is then that of the run's row, and asks for one
    is_silent = preference == BALANCED or any(limits.get(name) is not None for name in STATED_PRICES)
    return {"preference": None if is_silent else min(max(preference, low), high), **limits}
