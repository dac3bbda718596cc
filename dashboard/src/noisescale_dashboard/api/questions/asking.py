"""What every question to the REST API stands on: the transport, pages, and paths made of checked ids."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import httpx

from noisescale_dashboard.api.transport import ApiProblem, ApiTransport, Query

API = "/api/v1"


class Questions:
    """Asks the API on behalf of one visitor at a time: `visitor` is the headers that came with the call."""

    def __init__(
        self, *, base_url: str, transport: httpx.AsyncBaseTransport | None = None, timeout_seconds: float = 10.0
    ) -> None:
        self._api = ApiTransport(base_url=base_url, transport=transport, timeout_seconds=timeout_seconds)

    async def _pages(self, visitor: Mapping[str, str], place: str, query: Query | None = None) -> list[Any]:
        """The answers page by page, up to the last one."""
        pages = [await self._api.get(visitor, place, query)]
        while (cursor := pages[-1]["next_cursor"]) is not None:
            pages.append(await self._api.get(visitor, place, {**(query or {}), "cursor": cursor}))
        return pages


def run_path(run_id: str) -> str:
    """The path of a run.

    Raises:
        ApiProblem: For what is no UUID.
    """
    return f"{API}/runs/{checked_id(run_id, 'run')}"


def sweep_path(sweep_id: str) -> str:
    """The path of a sweep.

    Raises:
        ApiProblem: For what is no UUID.
    """
    return f"{API}/sweeps/{checked_id(sweep_id, 'sweep')}"


def checked_id(given: str, what: str) -> UUID:
    """The id as a UUID: it comes from the address bar, and nothing else may become part of a path of the API.

    Raises:
        ApiProblem: For what is none.
    """
    try:
        return UUID(given)
    except ValueError as error:
        raise ApiProblem(
            f"GET {API}/{what}s/…", 404, f"{what.capitalize()} not found", f"a {what} id is a UUID"
        ) from error
