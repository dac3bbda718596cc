"""What the API says of the views that a project's team shares."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from noisescale_dashboard.answers.common import decoded


@dataclass(frozen=True, slots=True)
class SharedView:
    """A view of a page under a name; `query` is the query part of its address, percent-encoded."""

    id: str
    name: str
    author: str
    page: str
    query: str


def shared_views(data: Mapping[str, Any]) -> tuple[SharedView, ...]:
    """The views in `data`, by name."""
    return decoded(tuple[SharedView, ...], data["views"])
