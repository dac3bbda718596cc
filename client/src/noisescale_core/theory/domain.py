"""Where a formula holds: checks of its inputs, whose errors name the field, the value and the way out."""

import math

from noisescale_core.errors import DomainError


def require_positive(way_out: str, /, **values: float) -> None:
    """Every value is a finite number above zero.

    Args:
        way_out: What the caller can do instead, the end of the message.
        **values: The fields by name.

    Raises:
        DomainError: At the first that is not.
    """
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise DomainError(f"{name} must be positive and finite, got {value:g}: {way_out}")


def require_not_negative(way_out: str, /, **values: float) -> None:
    """Every value is zero, positive or infinite: the two limits of a noise scale are allowed.

    Args:
        way_out: What the caller can do instead, the end of the message.
        **values: The fields by name.

    Raises:
        DomainError: At the first that is negative or not a number.
    """
    for name, value in values.items():
        if not value >= 0:
            raise DomainError(f"{name} must not be negative, got {value:g}: {way_out}")


def require_share(way_out: str, /, **values: float) -> None:
    """Every value lies between 0 and 1, both excluded.

    Args:
        way_out: What the caller can do instead, the end of the message.
        **values: The fields by name.

    Raises:
        DomainError: At the first that does not.
    """
    for name, value in values.items():
        if not 0 < value < 1:
            raise DomainError(f"{name} must be between 0 and 1, both excluded, got {value:g}: {way_out}")


def require_any(field: str, count: int, way_out: str) -> None:
    """A list holds something.

    Args:
        field: Name of the list.
        count: How many it holds.
        way_out: What the caller can do instead, the end of the message.

    Raises:
        DomainError: If it is empty.
    """
    if count == 0:
        raise DomainError(f"{field} must not be empty: {way_out}")
