"""A planner's view, as the address has it, in the words of the API, and the API's refusals beside their fields."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from noisescale_dashboard.api.question_fields import BALANCED, PREFERENCES, Fold, on_planner
from noisescale_dashboard.api.transport import ApiProblem

ROWS_PER_DOUBLING = 2
"""One of them is drawn as a dot, the others carry the curve."""
View = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """A number that the reader may say.

    Attributes:
        asks: The API's word for it.
        label: What it is called.
        meaning: What it means, for those who hesitate.
        suffix: Its unit.
    """

    asks: str
    label: str
    meaning: str
    suffix: str = ""


def _of(fold: Fold) -> dict[str, Field]:
    asked = on_planner(fold).items()
    return {word: Field(asks, shown.label, shown.meaning, shown.suffix) for word, (asks, shown) in asked}


MAIN = {
    **_of("main"),
    "devices": Field("max_devices", "Devices at most", "how many there are, if devices are added with the batch"),
}
"""Those with a slider."""
MACHINES, SPOT, WORTH, MORE = _of("machines"), _of("spot"), _of("worth"), _of("more")
SPOT_DEFAULTS = {"spot_share": 0.3, "stops": 0.04, "restart_h": 0.1, "ckpt_h": 0.25}
"""Assumed, and shown, until the reader says otherwise."""
KNOWN = {
    "bcrit": Field("critical_batch", "Critical batch", "in examples, instead of a task's"),
    "bcrit_low": Field(
        "critical_batch_low", "its lower end", "of the 95 % interval; without it the value is taken as exact"
    ),
    "bcrit_high": Field("critical_batch_high", "its upper end", "of the 95 % interval"),
    "steps": Field("steps", "Steps to the target", "at the batch below"),
    "at": Field("at_batch", "at a batch of", "the batch that takes so many steps"),
    "step_s": Field("step_seconds", "Seconds a step", "at that batch", " s"),
    "at_devices": Field("num_devices", "on devices", "that run that batch"),
    "overhead_s": Field("overhead_seconds", "Or: fixed seconds", "of every step on a fixed number of devices"),
    "example_s": Field("seconds_per_example", "and for each example", "what one more example adds to a step"),
}
FIELDS = {**MAIN, **MACHINES, **SPOT, **WORTH, **MORE, **KNOWN}
"""The word in the address to what it means."""
FLAGS = ("stay", "fixed", "spot")
PRICES = ("worth", "sooner", "fixed")
"""What says a step's worth instead of the preference."""


def is_typed(view: View) -> bool:
    """Whether the reader has said a critical batch, so that no run or task is asked."""
    return view.get("bcrit") is not None


def has_price(view: View) -> bool:
    """Whether the view says what a step is worth, so that the slider does not."""
    return any(view.get(name) for name in PRICES)


def question(view: View, source: Mapping[str, str]) -> dict[str, Any]:
    """What the API is asked.

    Args:
        view: Prices and limits.
        source: `run_id`, or `project` and `task`; nothing where the critical batch is typed.
    """
    left_out = {"devices", *SPOT} | ({"at_devices"} if not is_typed(view) else set())
    asked = {field.asks: view.get(name) for name, field in FIELDS.items() if name not in left_out}
    asked |= {**source, "rows_per_doubling": ROWS_PER_DOUBLING, "preference": _preference(view)}
    asked["sweep_target"] = view.get("target") if "task" in source else None
    asked["fixed_hardware"] = "true" if view.get("fixed") else None
    stays = bool(view.get("stay")) and not is_typed(view)
    asked["num_devices" if stays else "max_devices"] = view.get("devices")
    return {name: value for name, value in {**asked, **spot(view)}.items() if value is not None}


def spot(view: View) -> dict[str, float]:
    """Interruptible devices, as said or assumed; nothing where the view is on demand."""
    if not view.get("spot"):
        return {}
    said = {name: view.get(name) for name in SPOT}
    return {SPOT[name].asks: SPOT_DEFAULTS[name] if value is None else float(value) for name, value in said.items()}


def on_demand(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The same question without interruptions.

    Args:
        asked: As `question` gives it.
    """
    names = {field.asks for field in SPOT.values()}
    return {name: value for name, value in asked.items() if name not in names}


def _preference(view: View) -> float | None:
    preference = float(view.get("pref", BALANCED))
    if has_price(view) or preference == BALANCED:
        return None
    low, high = PREFERENCES
    return min(max(preference, low), high)


def refusal(problem: ApiProblem | None) -> tuple[dict[str, str], str | None]:
    """What stands beside each field after a refusal, and what belongs to none of them.

    Args:
        problem: The refusal; None after an answer.
    """
    if problem is None:
        return {}, None
    by_field = {field.rsplit(".", 1)[-1]: message for field, message in problem.errors}
    beside = {name: by_field[field.asks] for name, field in FIELDS.items() if field.asks in by_field}
    if "sweep_target" in by_field:
        beside["target"] = by_field["sweep_target"]
    if "num_devices" in by_field:
        beside["devices"] = by_field["num_devices"]
    return beside, None if beside else problem.detail
