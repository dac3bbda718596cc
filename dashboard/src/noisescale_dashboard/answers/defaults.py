"""What the API says of a project's defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Way = Literal["none", "preference", "examples_per_step", "fixed_hardware"]
"""In which words a project says what a step is worth."""


@dataclass(frozen=True, slots=True)
class ProjectDefaults:
    """What a project takes for granted; None where it says nothing.

    Attributes:
        device_hour_price: Of one device for an hour, in `currency`.
        currency: Three letters.
        usd_per_unit: USD for one unit of it.
        preference: 0 fewest examples … 1 fewest steps.
        examples_per_step: What a step is worth.
        fixed_hardware: Step times say what a step is worth.
    """

    device_hour_price: float | None
    currency: str
    usd_per_unit: float
    preference: float | None
    examples_per_step: float | None
    fixed_hardware: bool

    @property
    def way(self) -> Way:
        """In which words the worth of a step is said."""
        if self.fixed_hardware:
            return "fixed_hardware"
        if self.preference is not None:
            return "preference"
        return "none" if self.examples_per_step is None else "examples_per_step"

    @property
    def worth(self) -> float | None:
        """The number that goes with it; None where there is none."""
        return self.preference if self.preference is not None else self.examples_per_step


def project_defaults(body: Mapping[str, Any]) -> ProjectDefaults:
    """The answer of GET and PUT."""
    return ProjectDefaults(
        device_hour_price=body["device_hour_price"],
        currency=body["currency"],
        usd_per_unit=body["usd_per_unit"],
        preference=body["preference"],
        examples_per_step=body["examples_per_step"],
        fixed_hardware=body["fixed_hardware"],
    )
