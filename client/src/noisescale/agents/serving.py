"""How assistants reach the tools: over standard input and output, or over HTTP with a key in each request."""

import json
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from noisescale.agents.caller import Caller, bearer_key
from noisescale.agents.server import make_server
from noisescale.config import Config

HOST = "127.0.0.1"
PATH = "/mcp"
NO_KEY = (
    "this needs a key: send `Authorization: Bearer <key>` with each request; `noisescale keys create`, or the page "
    "Settings, makes one"
)


def serve_stdio(read: Callable[[], Config], *, allows_changes: bool) -> None:
    """Serve whoever has started this process, with its key, until standard input ends.

    Args:
        read: Reads address of the noisescale server, and key.
        allows_changes: With the tools that change something.
    """
    make_server(Caller.of_process(read), allows_changes=allows_changes).run("stdio")


def serve_http(read: Callable[[], Config], *, port: int, allows_changes: bool) -> None:
    """Serve HTTP on this machine's own address, each request with the key that it brings.

    Args:
        read: Reads address of the noisescale server; the key is not used.
        port: To listen on.
        allows_changes: With the tools that change something.
    """
    app = http_app(read().url, allows_changes=allows_changes)
    uvicorn.run(app, host=HOST, port=port, log_level="warning")


def http_app(url: str, *, allows_changes: bool) -> ASGIApp:
    """The application: no session is kept, so nothing is known of anybody from one request to the next.

    Args:
        url: Of the noisescale server.
        allows_changes: With the tools that change something.
    """
    server = make_server(Caller.of_requests(url), allows_changes=allows_changes)
    return _with_key(server.streamable_http_app(streamable_http_path=PATH, stateless_http=True, host=HOST))


def _with_key(app: ASGIApp) -> ASGIApp:
    """The application for requests that bring a key; what the key may is for the noisescale server to say."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and bearer_key(_headers(scope)) is None:
            await _refuse(send)
        elif scope["type"] in ("http", "lifespan"):
            await app(scope, receive, send)

    return guarded


def _headers(scope: Scope) -> dict[str, str]:
    listed: list[tuple[bytes, bytes]] = scope["headers"]
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in listed}


async def _refuse(send: Send) -> None:
    problem: dict[str, Any] = {"title": "A key is needed", "status": 401, "detail": NO_KEY}
    headers = [(b"content-type", b"application/problem+json"), (b"www-authenticate", b"Bearer")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(problem).encode()})
