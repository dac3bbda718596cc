"""A view of the list of runs: what its address says, and the query of the API that it stands for."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

from noisescale_dashboard.runs import table as runs_table
from noisescale_dashboard.runs.columns import words_in
from noisescale_dashboard.words.decisions import DECISIONS

DEFAULT_SORT = "-misfit"
TRIALS = ("fold", "hide", "show")
"""Trials of a sweep or a reproduction: behind one row, left out, or a row each."""
MAX_OPEN = 8
PATTERN: Final = re.compile(r"/(.+)/")
"""A search between slashes is a regular expression."""
STATUSES = ("running", "finished", "failed", "silent", "crashed", "diverged")
SINCE: Final[Mapping[str, timedelta | None]] = MappingProxyType(
    {
        "24h": timedelta(hours=24),
        "7d": timedelta(days=7),
        "30d": timedelta(days=30),
        "90d": timedelta(days=90),
        "any": None,
    }
)
"""How long ago a run sent its last data, at most."""
RANGES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "batch_min": "batch_min",
        "batch_max": "batch_max",
        "noise_min": "noise_scale_min",
        "noise_max": "noise_scale_max",
    }
)
"""Numbers that narrow the list, in examples, and the API's words for them."""
NO_FILTER: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "q": "", "project": None, "task": None, "status": None, "decision": None, "tag": "", "since": "90d",
        "shelf": "current", "where": "", "trials": "fold", **dict.fromkeys(RANGES),
    }
)  # fmt: skip
NO_VIEW: Final[Mapping[str, Any]] = MappingProxyType(
    {**NO_FILTER, "group": None, "cols": "", "open": "", "sort": DEFAULT_SORT}
)


def view_of(address: Mapping[str, str]) -> dict[str, Any]:
    """The view that the query part of an address says; as RUNS in assets/modules/address/address.js."""
    said = {name: address.get(name, default) for name, default in NO_VIEW.items()}
    return {**said, **{name: _number(address.get(name)) for name in RANGES}}


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


def is_filtered(view: Mapping[str, Any]) -> bool:
    """Whether something narrows the list down."""
    return any(view[name] != default for name, default in NO_FILTER.items() if name != "trials")


def searched(text: str) -> dict[str, Any]:
    """What a search asks the API: a part of the name; behind a minus what it has not; between slashes a pattern."""
    pattern = PATTERN.fullmatch(text.strip())
    if pattern:
        return {"pattern": pattern[1]}
    without = [word[1:] for word in text.split() if word.startswith("-") and len(word) > 1]
    if not without:
        return {"q": text}
    return {"q": " ".join(word for word in text.split() if not word.startswith("-")), "without": without}


def query(
    view: Mapping[str, Any], cursor: str | None, now: datetime | None = None, *, limit: int = runs_table.PAGE_SIZE
) -> dict[str, Any]:
    """The API's query for a page of the view."""
    since = SINCE.get(view["since"])
    return {
        **searched(view["q"]),
        "where": words_in(view["where"]),
        "trials": "hide" if view["trials"] == "hide" else None,
        "fold": True if view["trials"] == "fold" else None,
        "project": view["project"],
        "task": view["task"],
        "status": view["status"] if view["status"] in STATUSES else None,
        "decision": view["decision"] if view["decision"] in DECISIONS else None,
        "tag": view["tag"],
        "updated_after": None if since is None else ((now or datetime.now(UTC)) - since).isoformat(),
        "archived": True if view["shelf"] == "archived" else None,
        **{word: view[name] for name, word in RANGES.items()},
        "sort": view["sort"] or DEFAULT_SORT,
        "limit": limit,
        "cursor": cursor,
    }
