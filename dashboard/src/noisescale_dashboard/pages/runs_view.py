"""A view of the list of runs: what its address says, and the query of the API that it stands for."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

from noisescale_dashboard.decisions import DECISIONS
from noisescale_dashboard.pages import runs_table

DEFAULT_SORT = "-misfit"
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
        "shelf": "current", **dict.fromkeys(RANGES),
    }
)  # fmt: skip
NO_VIEW: Final[Mapping[str, Any]] = MappingProxyType({**NO_FILTER, "group": None, "cols": "", "sort": DEFAULT_SORT})


def view_of(address: Mapping[str, str]) -> dict[str, Any]:
    """The view that the query part of an address says; as `readRuns` in assets/50-address.js reads it."""
    said = {name: address.get(name, default) for name, default in NO_VIEW.items()}
    return {**said, **{name: _number(address.get(name)) for name in RANGES}}


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


def is_filtered(view: Mapping[str, Any]) -> bool:
    """Whether something narrows the list down."""
    return any(view[name] != default for name, default in NO_FILTER.items())


def query(
    view: Mapping[str, Any], cursor: str | None, now: datetime | None = None, *, limit: int = runs_table.PAGE_SIZE
) -> dict[str, Any]:
    """The API's query for a page of the view."""
    since = SINCE.get(view["since"])
    return {
        "q": view["q"],
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
