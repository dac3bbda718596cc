"""What Dash would answer as 500 and tell nobody: bodies that no page sends, files that there are not, errors of ours.

Dash catches every error of its own requests before a logger or FastAPI sees it, so this stands inside of it.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

from dash.exceptions import DependencyException, PreventUpdate
from fastapi import FastAPI, Request
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from noisescale_dashboard.api.outages import CALLBACKS
from noisescale_dashboard.serving.callback_bodies import Bodies

ENDPOINTS: Final = "/_dash-"
"""Before the paths that are Dash's own."""
FILES: Final = "_dash-component-suites"
"""The folder of packages of components, and of their files."""

log = logging.getLogger(__name__)


def register(app: FastAPI, callbacks: Mapping[str, Mapping[str, Any]]) -> None:
    """Answer what a visitor does wrong, and log what we do; `callbacks` are the outputs that can be asked for."""
    app.add_exception_handler(DependencyException, _no_such_file)
    # the last one is the innermost: Dash has put its own around whatever was there
    app.user_middleware.append(Middleware(DashErrors, callbacks=callbacks))


class DashErrors:
    """Middleware inside Dash's own."""

    def __init__(self, app: ASGIApp, *, callbacks: Mapping[str, Mapping[str, Any]]) -> None:
        self.app = app
        self._bodies = Bodies(callbacks)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, if it is one that a page could send."""
        if scope["type"] != "http" or not scope["path"].startswith(ENDPOINTS):
            await self.app(scope, receive, send)
            return
        if names_no_file(scope["path"]):
            await refusal(404, "no component has this file")(scope, receive, send)
            return
        if scope["path"] == CALLBACKS and scope["method"] == "POST":
            wrong = self._bodies.whats_wrong(scope["state"].get("json_body"))
            if wrong is not None:
                await refusal(400, wrong)(scope, receive, send)
                return
        try:
            await self.app(scope, receive, send)
        except PreventUpdate:
            raise
        except Exception:
            log.exception("unexpected error for %s %s", scope["method"], _asked(scope))
            raise


def names_no_file(path: str) -> bool:
    """Whether this path is among the components' files without being one: Dash would answer with its index."""
    root, *parts = path.removeprefix("/").split("/")
    return root == FILES and (len(parts) < 2 or "" in parts)


def refusal(status: int, message: str) -> Response:
    """An answer in the form of Dash's own errors."""
    return JSONResponse({"error": "NotFound" if status == 404 else "BadRequest", "message": message}, status)


async def _no_such_file(_request: Request, _error: Exception) -> Response:
    return refusal(404, "no component has this file")


def _asked(scope: Scope) -> str:
    body = scope["state"].get("json_body")
    return (
        f"{scope['path']} of {body['output'][:200]}" if isinstance(body, dict) and "output" in body else scope["path"]
    )
