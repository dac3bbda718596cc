"""What Dash would answer as 500 and tell nobody: bodies that no page sends, files that there are not, errors of ours.

Dash catches every error of its own requests before a logger or FastAPI sees it, so this stands inside of it.
"""

import logging
from collections.abc import Container
from typing import Any, Final

from dash.exceptions import DependencyException, PreventUpdate
from fastapi import FastAPI, Request
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from noisescale_dashboard.outages import CALLBACKS

ENDPOINTS: Final = "/_dash-"
"""Before the paths that are Dash's own."""
PARTS_OF_A_CALL: Final = {"output": str, "outputs": list | dict, "inputs": list, "changedPropIds": list}
"""What the browser always sends, and of which type."""

log = logging.getLogger(__name__)


def register(app: FastAPI, callbacks: Container[str]) -> None:
    """Answer what a visitor does wrong, and log what we do; `callbacks` are the outputs that can be asked for."""
    app.add_exception_handler(DependencyException, _no_such_file)
    # the last one is the innermost: Dash has put its own around whatever was there
    app.user_middleware.append(Middleware(DashErrors, callbacks=callbacks))


class DashErrors:
    """Middleware inside Dash's own."""

    def __init__(self, app: ASGIApp, *, callbacks: Container[str]) -> None:
        self.app = app
        self._callbacks = callbacks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, if it is one that a page could send."""
        if scope["type"] != "http" or not scope["path"].startswith(ENDPOINTS):
            await self.app(scope, receive, send)
            return
        if scope["path"] == CALLBACKS and scope["method"] == "POST":
            wrong = whats_wrong(scope["state"].get("json_body"), self._callbacks)
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


def whats_wrong(body: Any, callbacks: Container[str]) -> str | None:
    """Why this body calls no callback; None where it does. None as a body is one that Dash could not read."""
    if not isinstance(body, dict):
        return "the body is not the JSON of a callback, or nested too deeply: load the page again"
    for name, kind in PARTS_OF_A_CALL.items():
        if not isinstance(body.get(name), kind):
            return f"{name} is missing, or of another type: load the page again"
    if body["output"] not in callbacks:
        return "no callback has this output: load the page again, the server may be of another release"
    return None


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
