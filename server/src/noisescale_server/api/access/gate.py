"""The gate in front of everything that this process answers, the dashboard included: who is not known, stays outside.

It wraps the whole application, so nothing that is mounted or added later stands before it. What somebody known may do
in the API is decided by `auth_route.py`, behind it.
"""

import json
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote

from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders, State
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from noisescale_server.api.access.credentials import Credentials, Visitor
from noisescale_server.api.access.guests import is_guest, sees_page
from noisescale_server.api.access.mode import AccessMode
from noisescale_server.api.access.rates import ReadRate, Turns, is_read, takes_a_turn
from noisescale_server.api.platform.body import check_announced_length
from noisescale_server.api.platform.docs import docs_html
from noisescale_server.api.platform.errors import database_problem, domain_problem
from noisescale_server.api.platform.openapi import name_bodies, name_problem
from noisescale_server.api.platform.refusals import Busy, TooManyAttempts, TooManyReads
from noisescale_server.process.client_address import client_address, counted_as
from noisescale_server.process.own_metrics import ProcessMetrics
from noisescale_server.services.access.access import Principal, Right
from noisescale_server.services.platform.errors import DomainError, NotAllowed, NotAuthenticated, refuse
from noisescale_server.storage.platform.driver import DATABASE_ERRORS

LOGIN: Final = frozenset({"/login", "/login/start", "/login/back", "/shared"})
PUBLIC: Final = LOGIN | {"/livez", "/readyz", "/logout", "/_favicon.ico"}
PUBLIC_FOLDERS: Final = frozenset({"assets", "_dash-component-suites"})
"""Scripts, styles and fonts: the same for everybody, and without any data."""
API: Final = "/api/"
METRICS: Final = "/metrics"
"""For whoever scrapes, who may read nothing else."""

HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}
"""Of every answer that does not set them itself."""


class Gate:
    """An ASGI application around another one."""

    def __init__(self, app: ASGIApp, state: State) -> None:
        self.app, self.state = app, state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request in, or answer it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            process: ProcessMetrics = self.state.process_metrics
            answered = with_headers(send, is_api=scope["path"].startswith(API))
            await process.counted(self._http, scope, receive, answered)
        else:
            # nothing here speaks over sockets; to close one before it opens is answered as 403
            await send({"type": "websocket.close", "code": 1008})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        try:
            refusal = await self._refusal(scope, headers)
        except DomainError as error:
            refusal = domain_problem(error)
        except DATABASE_ERRORS as error:
            refusal = database_problem(scope["method"], scope["path"], error)
        if refusal is not None:
            await refusal(scope, receive, send)
        elif takes_a_turn(scope["method"], scope["path"]):
            await self._in_turn(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _in_turn(self, scope: Scope, receive: Receive, send: Send) -> None:
        turns: Turns = self.state.turns
        try:
            async with turns.of(self._sender(scope)):
                await self.app(scope, receive, send)
        except Busy as error:
            await domain_problem(error)(scope, receive, send)

    async def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """The answer to who stays outside; None for who may enter, whose name the request then carries."""
        mode: AccessMode = self.state.access_mode
        path: str = scope["path"]
        mode.check_host(headers)
        if not path.startswith(API):
            # the API counts what it reads; the dashboard reads whatever comes
            check_length(headers, self.state.settings.max_body_bytes)
        if is_public(path):
            await self._count_public(scope, headers)
            return None
        try:
            visitor = await self._visitor(scope, headers) or await self._guest(scope, headers)
        except TooManyAttempts:
            # a browser whose login is over is sent to the next one, whatever else its address has sent
            if not is_navigation(scope, headers):
                raise
            visitor = None
        if visitor is None:
            if is_navigation(scope, headers):
                query = scope["query_string"].decode("latin-1")
                return RedirectResponse("/login?next=" + quote(f"{path}?{query}" if query else path), 303)
            raise NotAuthenticated
        if visitor.by == "cookie":
            mode.check_origin(scope["method"], path, headers)
        needed = Right.METRICS if path == METRICS else Right.READ
        if not path.startswith(API) and not visitor.principal.may_anywhere(needed):
            raise NotAllowed("this key or person may read nothing here: ask an admin for a role in a project")
        scope.setdefault("state", {})["principal"] = visitor.principal
        self._count(scope)
        return None

    def _count(self, scope: Scope) -> None:
        if is_read(scope["method"], scope["path"]):
            reads: ReadRate = self.state.read_rate
            reads.count(self._sender(scope))

    async def _count_public(self, scope: Scope, headers: Headers) -> None:
        """Count what everybody may ask for by its address; what a known key or person asks for, by them.

        These are looked up only where the address has read too much: a right one is not to be refused for its
        neighbours. The login has a bucket of its own, or one reader of files would lock out everybody who has none yet.

        Raises:
            TooManyReads: When the bucket is empty.
        """
        if not is_read(scope["method"], scope["path"]):
            return
        reads: ReadRate = self.state.read_rate
        is_login = scope["path"] in LOGIN
        try:
            reads.count(f"{'login of ' if is_login else ''}{self._sender(scope)}")
        except TooManyReads:
            try:
                visitor = await self._visitor(scope, headers)
            except (TooManyAttempts, NotAuthenticated):
                visitor = None
            if visitor is None:
                raise
            reads.count(f"{visitor.principal.kind} {visitor.principal.id}")

    async def _guest(self, scope: Scope, headers: Headers) -> Visitor | None:
        """Who has neither a key nor a login and may have this all the same."""
        credentials: Credentials = self.state.credentials
        guest = await credentials.guest(headers, self._address(scope))
        path: str = scope["path"]
        is_open = guest is not None and (path.startswith(API) or sees_page(guest.principal, path))
        return guest if is_open else None

    async def _visitor(self, scope: Scope, headers: Headers) -> Visitor | None:
        credentials: Credentials = self.state.credentials
        return await credentials.visitor(headers, self._address(scope))

    def _address(self, scope: Scope) -> str:
        return client_address(scope, Headers(scope=scope), self.state.settings.trusted_proxies)

    def _sender(self, scope: Scope) -> str:
        """Who reads: the key or person that was let in, else the address, also of who comes by a link."""
        principal = scope.get("state", {}).get("principal")
        if isinstance(principal, Principal) and not is_guest(principal):
            return f"{principal.kind} {principal.id}"
        return f"address {counted_as(self._address(scope))}"


def is_public(path: str) -> bool:
    """Whether everybody may ask for it: these paths, and what lies in these folders by its plain name."""
    folder, *names = path.removeprefix("/").split("/")
    return path in PUBLIC or (folder in PUBLIC_FOLDERS and bool(names) and not {"", ".", ".."} & set(names))


def is_navigation(scope: Scope, headers: Headers) -> bool:
    """Whether a person waits for a page, who can be sent to the login."""
    if scope["method"] not in ("GET", "HEAD") or scope["path"].startswith((API, "/_")):
        return False
    return "text/html" in headers.get("accept", "")


def check_length(headers: Headers, limit: int) -> None:
    """Raise unless a body says how long it is, and is not too long.

    Raises:
        InvalidInput: Where it does not say.
        BodyTooLarge: Where it is.
    """
    if "transfer-encoding" in headers:
        raise refuse("Content-Length", "is required here: send the body in one piece")
    check_announced_length(headers, limit)


def with_headers(send: Send, *, is_api: bool) -> Send:
    """The same `send` whose answers carry the headers that keep browsers from guessing, framing and storing."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            if is_api:
                headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return send_with_headers


# The API as one application: FastAPI behind the gate, with a description that names every body.


class Api(FastAPI):
    """FastAPI behind the gate, that finds a place for the models of `body_of`."""

    def build_middleware_stack(self) -> ASGIApp:
        """Everything that this application does, whoever has added it, with the gate around it."""
        return Gate(super().build_middleware_stack(), self.state)

    def openapi(self) -> dict[str, Any]:
        """The description, made once."""
        if self.openapi_schema is None:
            description = super().openapi()
            name_bodies(description)
            name_problem(description)
        return super().openapi()

    @cached_property
    def openapi_json(self) -> bytes:
        """The description as /openapi.json sends it: 330 kB, encoded once."""
        return json.dumps(self.openapi(), ensure_ascii=False, separators=(",", ":")).encode()

    @cached_property
    def openapi_html(self) -> bytes:
        """The description as /openapi shows it, written once."""
        return docs_html(self.openapi()).encode()
