"""GET and change by HTTP, on behalf of one visitor at a time. The only file of the dashboard that speaks HTTP."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import orjson

from noisescale_dashboard.api import outages

FORWARDED_HEADERS = ("authorization", "cookie", "origin", "sec-fetch-site", "host")
TOO_LONG = 414
OWN_SITE = (None, "same-origin", "none")
AWAY = (502, 503, 504)
"""Answers of a server or database that is away and comes back; a 500 is an answer, and asking again gives the same."""


@dataclass(eq=False)
class ApiProblem(Exception):
    """The API refused or did not answer; `status` is None when there was no answer."""

    request: str
    status: int | None
    title: str
    detail: str
    errors: tuple[tuple[str, str], ...] = ()
    """Field and message of what was refused."""

    @property
    def is_missing(self) -> bool:
        """Whether the thing asked for does not exist, or not for this visitor."""
        return self.status == 404


Query = Mapping[str, str | int | float | bool | list[str] | None]


class ApiTransport:
    """Asks the API; every failure is an `ApiProblem`."""

    def __init__(
        self, *, base_url: str, transport: httpx.AsyncBaseTransport | None = None, timeout_seconds: float = 10.0
    ) -> None:
        # to compress for a reader in the same process would be work for nothing
        headers = {"Accept-Encoding": "identity"} if transport is not None else None
        self._http = httpx.AsyncClient(base_url=base_url, transport=transport, timeout=timeout_seconds, headers=headers)
        self._being_read: dict[tuple[object, ...], asyncio.Task[httpx.Response]] = {}

    async def get(self, visitor: Mapping[str, str], path: str, query: Query | None = None) -> Any:
        """The JSON of a GET."""
        return orjson.loads((await self.read(visitor, path, query)).content)

    async def read(self, visitor: Mapping[str, str], path: str, query: Query | None = None) -> httpx.Response:
        """The answer, of one request where several parts of a visitor's page ask for the same at the same time."""
        params = {name: value for name, value in (query or {}).items() if value is not None and value != ""}
        asked = (path, *map(str, params.items()), *sorted(visitor.items()))
        reading = self._being_read.get(asked)
        if reading is None:
            reading = asyncio.create_task(self._read_now(visitor, path, params))
            self._being_read[asked] = reading
            reading.add_done_callback(lambda ended: self._forget(asked, ended))
        # who goes away takes the answer from nobody else
        return await asyncio.shield(reading)

    def _forget(self, asked: tuple[object, ...], ended: asyncio.Task[httpx.Response]) -> None:
        if self._being_read.get(asked) is ended:
            del self._being_read[asked]
        if not ended.cancelled():
            # nobody may be left who hears of its failure
            ended.exception()

    async def _read_now(self, visitor: Mapping[str, str], path: str, params: Mapping[str, Any]) -> httpx.Response:
        request = f"GET {path}"
        try:
            response = await self._http.get(path, params=params, headers=dict(visitor))
        except httpx.TransportError as error:
            outages.remember(has_answered=False)
            raise ApiProblem(request, None, "The server did not answer", str(error)) from error
        except httpx.InvalidURL as error:  # longer than any address
            raise ApiProblem(request, TOO_LONG, "What is asked for is too long", str(error)) from error
        outages.remember(has_answered=response.status_code not in AWAY)
        if response.is_success:
            return response
        raise _problem(request, response)

    async def send(self, method: str, visitor: Mapping[str, str], path: str, body: Mapping[str, Any] | None) -> Any:
        """The JSON that answers a change; None where nothing does."""
        request = f"{method} {path}"
        # what is read from here on knows of the change
        self._being_read.clear()
        try:
            response = await self._http.request(method, path, json=body, headers=dict(visitor))
        except httpx.TransportError as error:
            outages.remember(has_answered=False)
            raise ApiProblem(request, None, "The server did not answer", str(error)) from error
        outages.remember(has_answered=response.status_code not in AWAY)
        if response.is_success:
            return response.json() if response.content else None
        raise _problem(request, response)


def is_own_site(headers: Mapping[str, str]) -> bool:
    """Whether the request comes from a page of ours: a foreign one must not change runs with the reader's cookie."""
    lower = {name.lower(): value for name, value in headers.items()}
    return lower.get("sec-fetch-site") in OWN_SITE


def visitor_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Those request headers by which the API knows the visitor."""
    lower = {name.lower(): value for name, value in headers.items()}
    return {name: lower[name] for name in FORWARDED_HEADERS if name in lower}


def _problem(request: str, response: httpx.Response) -> ApiProblem:
    is_problem = response.headers.get("content-type", "").startswith("application/problem+json")
    body = response.json() if is_problem else {}
    title = body.get("title") or response.reason_phrase or "Refused"
    errors = tuple((str(one.get("field")), str(one.get("message"))) for one in body.get("errors") or ())
    return ApiProblem(request, response.status_code, title, body.get("detail") or title, errors)
