"""What a reader may say besides a preference, once: prices of a step, limits, interruptible devices.

One line a field; the Run page's form, the Planner's fields, both addresses and their scripts are made from it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from noisescale_dashboard.api.transport import Query

Group = Literal["price", "limit", "spot"]
Fold = Literal["main", "machines", "spot", "worth", "more"]


@dataclass(frozen=True, slots=True)
class OnPlanner:
    """How the Planner asks for it.

    Attributes:
        word: In the Planner's address.
        fold: Part of its panel.
        label: What it is called.
        meaning: What it means, for those who hesitate.
        suffix: Its unit.
        rank: Place in the fold; equal ones as they stand here.
    """

    word: str
    fold: Fold
    label: str
    meaning: str
    suffix: str = ""
    rank: int = 0


@dataclass(frozen=True, slots=True)
class QuestionField:
    """One thing that a reader may say.

    Attributes:
        asks: The API's word for it, which also stands in the Run page's address.
        group: What kind of thing it is.
        label: What the Run page calls it.
        meaning: What it means there.
        planner: How the Planner asks for it; None where it does in other words.
        is_switch: It is said by yes; 1 in the address.
    """

    asks: str
    group: Group
    label: str
    meaning: str
    planner: OnPlanner | None = None
    is_switch: bool = False


FIELDS: tuple[QuestionField, ...] = (
    QuestionField(
        "examples_per_step", "price", "Examples for a step", "that you would spend to save one step",
        OnPlanner("worth", "worth", "Examples for a step", "that you would spend to save one step"),
    ),
    QuestionField(
        "usd_per_hour_sooner", "price", "USD per hour sooner", "what it is worth that the run ends an hour sooner",
        OnPlanner("sooner", "worth", "USD for an hour sooner", "what it is worth to be done an hour sooner", " $"),
    ),
    QuestionField(
        "fixed_hardware", "price", "The devices stay", "the run's own step times decide; it needs two batch sizes",
        is_switch=True,
    ),
    QuestionField(
        "max_hours", "limit", "Hours", "until the run must end",
        OnPlanner("deadline_h", "main", "Deadline", "until the target must be reached"),
    ),
    QuestionField(
        "max_steps", "limit", "Steps", "that may still be taken",
        OnPlanner("max_steps", "more", "Steps at most", "that may be taken"),
    ),
    QuestionField(
        "max_usd", "limit", "USD", "that may still be spent",
        OnPlanner("budget_usd", "main", "Budget", "that may be spent, in USD", " $"),
    ),
    QuestionField(
        "max_examples", "limit", "Examples", "that may still be used",
        OnPlanner("max_examples", "more", "Examples at most", "that may be used"),
    ),
    QuestionField("num_devices", "limit", "Devices", "a fixed number, whatever the batch"),
    QuestionField(
        "examples_per_device", "limit", "Micro-batch", "largest that fits on a device, in examples",
        OnPlanner("mem", "machines", "Batch a device holds", "largest micro-batch that fits on a device", rank=1),
    ),
    QuestionField(
        "max_micro_batches", "limit", "Micro-batches a step", "accumulated at most",
        OnPlanner("accum", "more", "Micro-batches a step", "accumulated at most; any number otherwise"),
    ),
    QuestionField(
        "usd_per_device_hour", "limit", "USD per device-hour", "else the run's own price",
        OnPlanner("price", "machines", "Price of a device-hour", "else that of the run", " $"),
    ),
    QuestionField(
        "spot_price_share", "spot", "Spot price share", "of the price on demand, 0.3 for 30 %",
        OnPlanner("spot_share", "spot", "Share of the price", "spot price ÷ price on demand"),
    ),
    QuestionField(
        "interruptions_per_device_hour", "spot", "Interruptions per device-hour", "how often a device is taken away",
        OnPlanner("stops", "spot", "Interruptions per device-hour", "how often a device is taken away"),
    ),
    QuestionField(
        "restart_hours", "spot", "Hours to restart", "from an interruption until training goes on",
        OnPlanner("restart_h", "spot", "Hours to restart", "from an interruption until training goes on", " h"),
    ),
    QuestionField(
        "checkpoint_hours", "spot", "Hours a checkpoint", "between two of them; half is lost at a stop",
        OnPlanner("ckpt_h", "spot", "Hours between checkpoints", "half of it is lost at each stop", " h"),
    ),
)  # fmt: skip
"""In the order of the Run page's form."""


def on_run(group: Group) -> Mapping[str, tuple[str, str]]:
    """From the API's word to label and meaning, of one group.

    Args:
        group: Which.
    """
    return {one.asks: (one.label, one.meaning) for one in FIELDS if one.group == group}


def on_planner(fold: Fold) -> Mapping[str, tuple[str, OnPlanner]]:
    """From the word in the Planner's address to the API's word and how it is asked for, in one fold.

    Args:
        fold: Which.
    """
    asked = [(one.asks, one.planner) for one in FIELDS if one.planner is not None and one.planner.fold == fold]
    return {planner.word: (asks, planner) for asks, planner in sorted(asked, key=lambda pair: pair[1].rank)}


def for_scripts() -> str:
    """The same for the scripts of pages, as JSON: they read addresses before any Python is asked."""
    return json.dumps(
        {
            "fields": [one.asks for one in FIELDS],
            "prices": [one.asks for one in FIELDS if one.group == "price"],
            "switches": [one.asks for one in FIELDS if one.is_switch],
            "planner": {fold: list(on_planner(fold)) for fold in ("main", "machines", "spot", "worth", "more")},
        }
    )


# The preference between examples and steps, as the API is asked for it.

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
