"""What the API says of how a project is kept and shared, and of links that show a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Keeping:
    """How a project is kept and shared.

    Attributes:
        days: Without data after which rows of a run are folded; None: never.
        is_public: Everybody may read it.
        is_allowed: The server lets projects be read so.
    """

    days: int | None
    is_public: bool
    is_allowed: bool


def keeping(retention: Mapping[str, Any], public: Mapping[str, Any]) -> Keeping:
    """From the two answers."""
    return Keeping(retention["fold_after_days"], public["is_public"], public["is_allowed"])


@dataclass(frozen=True, slots=True)
class RunLink:
    """A link that shows one run.

    Attributes:
        id: Of the link.
        expires_at: When it ends, as ISO 8601.
        address: To send; None where it is only listed.
    """

    id: str
    expires_at: str
    address: str | None


def run_link(body: Mapping[str, Any]) -> RunLink:
    """A link as listed or just made."""
    return RunLink(body["id"], body["expires_at"], body.get("address"))
