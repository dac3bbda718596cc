"""A run by what people call it: its id, its name, the beginning of either, or the address of its page."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from noisescale.stored.api import Api, path_of
from noisescale_core.errors import NoiseScaleError

MAX_LISTED = 6
ON_A_PAGE, MAX_PAGES = 500, 20
SHORT_ID = 8
"""Characters of an id that lists show; a run without a name is called so."""

StoredRun = Mapping[str, Any]
"""A run as `GET /api/v1/runs/{run_id}` gives it."""


class NotFound(NoiseScaleError):
    """No run, or more than one, is called so; the message names those that are near."""


def find_run(api: Api, said: str, *, project: str | None = None) -> StoredRun:
    """The run that is meant.

    Args:
        api: Where it is stored.
        said: Its id, its name, the beginning of either that no other run shares, or the address of its page.
        project: Of the run; None: any that the key may read.

    Raises:
        NotFound: If no run is called so, or several are.
        Refused: In the server's own words.
        TransportError: Without an answer.
    """
    wanted = in_address(said)
    if (whole := as_id(wanted)) is not None:
        return api.get(path_of("runs", whole))
    near = _near(api, wanted, project)
    found = _called(near, wanted)
    if len(found) == 1:
        return api.get(path_of("runs", found[0]["id"]))
    where = "" if project is None else f" in project {project!r}"
    if found:
        raise NotFound(f"{len(found)} runs are called {wanted!r}{where}: give the id of one, {_listed(found)}")
    others = f"; there are {_listed(near)}" if near else ": `noisescale runs` lists them"
    raise NotFound(f"no run is called {wanted!r}{where}, and none's name or id begins so{others}")


def in_address(said: str) -> str:
    """The run in the address of its page; what is no address stays as it is.

    Args:
        said: As a person gave it.
    """
    try:
        parts = urlsplit(said).path.split("/") if "/runs/" in said else []
    except ValueError:  # it only looks like an address
        return said
    return parts[parts.index("runs") + 1] if "runs" in parts[:-1] else said


def as_id(said: str) -> str | None:
    """A whole id as the server writes it; None for what is none.

    Args:
        said: As a person gave it.
    """
    try:
        return str(UUID(said))
    except ValueError:
        return None


def _near(api: Api, wanted: str, project: str | None) -> list[StoredRun]:
    """Runs with this in their name or at the beginning of their id: the exact one may be behind many."""
    found: list[StoredRun] = []
    cursor = None
    for _ in range(MAX_PAGES):
        page = api.get("/runs", q=wanted, project=project, limit=ON_A_PAGE, cursor=cursor)
        found += page["runs"]
        cursor = page.get("next_cursor")
        if cursor is None:
            break
    return found


def _called(runs: Sequence[StoredRun], wanted: str) -> Sequence[StoredRun]:
    """Runs of exactly this name; without one those whose name or id begins so."""
    exactly = [run for run in runs if run["name"] == wanted]
    small = wanted.lower()
    return exactly or [run for run in runs if run["name"].lower().startswith(small) or run["id"].startswith(small)]


def _listed(runs: Sequence[StoredRun]) -> str:
    shown = [f"{run['name']} ({run['id']})" for run in runs[:MAX_LISTED]]
    more = len(runs) - MAX_LISTED
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
