"""Which paths are pages, and the headers each page is sent with."""

from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from noisescale_dashboard.run.report_address import LAST_PART

FIRST_PARTS = ("", "runs", "compare", "sweeps", "planner", "cost", "record", "reproduce", "settings", "learn")
"""First parts of the paths that are pages; everything else is an asset, an endpoint of Dash or the API."""
WITH_ID = ("runs", "sweeps", "reproduce")
"""Those below which each thing has a page of its own, under its id."""
NOT_FOUND = 404


class PageRoutes:
    """Middleware that serves every page's path with Dash's index, under a content security policy.

    Dash prepares its assets when "/" or its own endpoints are asked for, not for a path below: pages are asked for
    as "/". Dash gives its index for any other path too, as 200: where there is no such page the status says so.
    """

    def __init__(self, app: ASGIApp, *, script_hashes: Sequence[str]) -> None:
        self.app = app
        self._headers = {
            "Content-Security-Policy": content_security_policy(script_hashes),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; pages get their headers, the one that says that there is no such page, too."""
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            await self.app(scope, receive, send)
            return
        is_known = is_page(scope["path"])
        asked = {**scope, "path": "/", "raw_path": b"/"} if is_known else scope

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start" and (is_known or is_index(message)):
                MutableHeaders(scope=message).update(self._headers)
                if is_from_dash(asked) and not names_a_page(scope["path"]):
                    message["status"] = NOT_FOUND
            await send(message)

        await self.app(asked, receive, send_with_headers)


def is_page(path: str) -> bool:
    """Whether this path is one of Dash's pages; a run's report is a document of its own."""
    parts = path.removeprefix("/").split("/")
    return parts[0] in FIRST_PARTS and parts[2:] != [LAST_PART]


def names_a_page(path: str) -> bool:
    """Whether the whole path is the address of a page; whether its run or sweep exists is for the API to say."""
    match path.strip("/").split("/"):
        case [first]:
            return first in FIRST_PARTS
        case ["planner", "first"]:
            return True
        case [first, given]:
            return first in WITH_ID and is_id(given)
        case _:
            return False


def is_id(given: str) -> bool:
    """Whether a part of an address can be the id of a run, a sweep or a reproduction."""
    with suppress(ValueError):
        UUID(given)
        return True
    return False


def is_from_dash(asked: Scope) -> bool:
    """Whether Dash itself has answered, once it has: it also answers every path that nobody else does."""
    return getattr(asked.get("endpoint"), "__module__", "").startswith("dash.")


def is_index(start: Message) -> bool:
    """Whether this answer is HTML without a policy of its own: Dash gives its index for every path that is left."""
    headers = MutableHeaders(scope=start)
    return headers.get("content-type", "").startswith("text/html") and "content-security-policy" not in headers


def content_security_policy(script_hashes: Sequence[str]) -> str:
    """Only this origin; inline scripts by hash, inline styles because plotly and the table write them."""
    return "; ".join(
        (
            "default-src 'self'",
            f"script-src 'self' {' '.join(script_hashes)}".strip(),
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "object-src 'none'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        )
    )
