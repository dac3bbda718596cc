"""What is open to those without a login: for a link the pages of its run, for everybody what public projects show.

Everything that is not here is refused to them, also what is added later.
"""

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from noisescale_server.services.access.access import Principal
from noisescale_server.services.access.entering import Kind
from noisescale_server.services.platform.errors import NotAllowed, RunNotFound

OF_A_RUN: Final = frozenset(
    {
        "/runs/{run_id}",
        "/runs/{run_id}/recommendation",
        "/runs/{run_id}/noise-scale",
        "/runs/{run_id}/groups",
        "/runs/{run_id}/metrics",
        "/runs/{run_id}/streams",
        "/runs/{run_id}/forecast",
        "/runs/{run_id}/learning-rate",
        "/runs/{run_id}/time",
    }
)
"""Routes that a link may read, of its run."""

OF_PROJECTS: Final = OF_A_RUN | {
    "/runs",
    "/runs/summary",
    "/runs/sparklines",
    "/runs/recommendations",
    "/runs/{run_id}/streams/{stream_id}/lost",
    "/reference-values",
    "/published-sweeps",
    "/recommendation",
    "/projects",
    "/projects/{project:path}/calibrations",
    "/projects/{project:path}/baseline",
    "/projects/{project:path}/defaults",
    "/projects/{project:path}/tasks",
    "/projects/{project:path}/tasks/{task:path}/recommendation",
    "/sweeps",
    "/sweeps/critical-batches",
    "/sweeps/{sweep_id}",
    "/sweeps/{sweep_id}/critical-batch",
    "/sweeps/{sweep_id}/plan",
    "/sweeps/{sweep_id}/quality",
    "/sweeps/{sweep_id}/learning-rates",
    "/sweeps/{sweep_id}/forecast",
    "/sweeps/{sweep_id}/search-cost",
    "/reproductions",
    "/reproductions/{reproduction_id}",
    "/comparison",
    "/comparison/runs",
    "/comparison/sized-tasks",
    "/comparison/model-size",
    "/comparison/temperature",
    "/tradeoff",
    "/cost/leaderboard",
    "/cost/submissions",
    "/cost/growth",
}
"""Routes that everybody may read, of public projects.

No people and what they say (comments), keys, alerts, views, and nothing about the server.
"""

DASH: Final = frozenset({"/_dash-layout", "/_dash-dependencies", "/_dash-update-component", "/_reload-hash"})
PAGES: Final = frozenset({"", "runs", "compare", "sweeps", "planner", "cost", "reproduce", "record", "learn"})
"""First parts of the addresses of pages that show projects."""


def is_guest(principal: Principal) -> bool:
    """Whether somebody has no login and no key."""
    return principal.kind in ("link", "everybody")


def sees_page(principal: Principal, path: str) -> bool:
    """Whether a guest may ask for something outside the API."""
    if path in DASH:
        return True
    if principal.run_id is not None:
        return path in (f"/runs/{principal.run_id}", f"/runs/{principal.run_id}/report")
    return path.split("/")[1] in PAGES


def check_route(principal: Principal, method: str, route: str, named: Iterable[tuple[Kind, UUID | str]]) -> None:
    """Raise unless a guest may read this; others are let through.

    Raises:
        NotAllowed: For a route that is not open to guests of this kind.
        RunNotFound: For anything but its run, by a link: as if it were not there.
    """
    if not is_guest(principal):
        return
    is_open = route in (OF_PROJECTS if principal.run_id is None else OF_A_RUN)
    if method != "GET" or not is_open:
        raise NotAllowed("this is not open to everybody: log in, or ask with a key")
    if principal.run_id is None:
        return
    for kind, name in named:
        if (kind, name) != ("run", principal.run_id):
            raise RunNotFound(name if isinstance(name, UUID) else principal.run_id)
