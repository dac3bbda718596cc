"""What a project takes for granted: the price of a device and the worth of a step, where neither run nor question says.

A default fills a gap and never overrides, and each answer says that it was used.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from noisescale_core.advice.question import Question, Worth
from noisescale_core.errors import DomainError

SAID_OF: Final = "(project default)"
"""Behind every sentence about what a default says."""

BALANCED: Final = 0.5
"""The preference of a reader who has none: the same question as nothing said."""

CURRENCY: Final = "USD"
"""What all amounts are computed and answered in."""


@dataclass(frozen=True, kw_only=True)
class Defaults:
    """What a project says once for all its runs; None where it says nothing.

    Attributes:
        device_hour_price: Price of one device for an hour, in `currency`.
        currency: ISO 4217 code of that price.
        usd_per_unit: USD for one unit of the currency.
        preference: Worth of a step, 0 fewest examples … 1 fewest steps.
        examples_per_step: Worth of a step in examples.
        fixed_hardware: The devices stay as they are whatever the batch: step times say what a step is worth.
    """

    device_hour_price: float | None = None
    currency: str = CURRENCY
    usd_per_unit: float = 1.0
    preference: float | None = None
    examples_per_step: float | None = None
    fixed_hardware: bool = False

    def __post_init__(self) -> None:
        """Refuse what no question could say.

        Raises:
            DomainError: If a step's worth is said twice, or dollars are worth something else than dollars.
        """
        if self.currency == CURRENCY and self.usd_per_unit != 1.0:
            raise DomainError(f"usd_per_unit must be 1 for USD, got {self.usd_per_unit:g}: leave it out")
        Worth(**self.worth)

    @property
    def worth(self) -> Mapping[str, Any]:
        """The way in which a step's worth is said, by the name of the question's field; empty where none is."""
        values = {one.name: getattr(self, one.name, None) for one in fields(Worth)}
        return {name: value for name, value in values.items() if value not in (None, False)}

    @property
    def usd_per_device_hour(self) -> float | None:
        """The price of a device in USD; None where none is said."""
        return None if self.device_hour_price is None else self.device_hour_price * self.usd_per_unit

    @property
    def price_said(self) -> str:
        """The price of a device in words, as somebody has said it."""
        if self.device_hour_price is None:
            return "no price of a device"
        said = f"{self.device_hour_price:,.4g} {self.currency}"
        in_usd = "" if self.currency == CURRENCY else f" ({self.usd_per_device_hour:,.4g} USD)"
        return f"{said}{in_usd} a device-hour"


NO_DEFAULTS: Final = Defaults()


def filled(asked: Question, defaults: Defaults, *, own_price: float | None) -> Question:
    """The question with what the project says where neither the question nor the run does.

    Args:
        asked: The reader's words.
        defaults: Of the project.
        own_price: Price of a device that the run itself has said; None: none.
    """
    taken: dict[str, Any] = {}
    said: dict[str, str] = {}
    if defaults.worth and (not asked.is_stated or asked.preference == BALANCED):
        taken |= {"preference": None, **defaults.worth}
        said |= {name: f"{name} = {value}" for name, value in defaults.worth.items()}
    usd = defaults.usd_per_device_hour
    if usd is not None and asked.usd_per_device_hour is None and own_price is None:
        taken["usd_per_device_hour"] = usd
        said["usd_per_device_hour"] = defaults.price_said
    return replace(asked, **taken, project_says=said) if taken else asked


def price_sentence(asked: Question) -> str | None:
    """That the price of a device is the project's; None where it is not.

    Args:
        asked: As `filled` has answered it.
    """
    said = asked.project_says.get("usd_per_device_hour")
    return None if said is None else f"Money assumes {said} {SAID_OF}."
