"""What the API says of comments on a run and of a project's pinned baseline."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from noisescale_dashboard.answers.common import decoded


@dataclass(frozen=True, slots=True)
class Comment:
    """What somebody has said about a run; `mentions` are names that stand behind an @ in the text."""

    id: str
    author: str
    text: str
    created_at: str
    mentions: tuple[str, ...] = ()
    edited_at: str | None = None
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class Comments:
    """The newest comments of a run, how many it has, and names that the visitor may mention."""

    comments: tuple[Comment, ...]
    total: int
    mentionable: tuple[str, ...] = ()


def comments(data: Mapping[str, Any]) -> Comments:
    """The comments in `data`, newest first."""
    return decoded(Comments, data)


@dataclass(frozen=True, slots=True)
class Baseline:
    """The run that others of its project are compared to."""

    run_id: str
    name: str


def baseline(data: Mapping[str, Any]) -> Baseline | None:
    """The baseline in `data`; None where nothing is pinned."""
    return None if data["baseline"] is None else decoded(Baseline, data["baseline"])
