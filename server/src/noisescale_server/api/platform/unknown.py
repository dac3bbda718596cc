"""Whatever below /api no route answers: 404, or 405 where another method would have been answered.

It stands behind the real routes and before the dashboard, whose catch-all answers every unknown address with a page.
Fixed paths that look like a run's or a sweep's, such as /runs/summary, have theirs before the real ones: PATCH
/runs/{run_id} would take `summary` for an id.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastapi import FastAPI
from starlette.requests import Request
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from noisescale_server.api.platform.errors import status_problem

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
LOOK_LIKE_AN_ID: Final[Mapping[str, str]] = {
    "/api/v1/runs/sparklines": "GET",
    "/api/v1/runs/recommendations": "GET",
    "/api/v1/runs/summary": "GET",
    "/api/v1/runs/changes": "POST",
    "/api/v1/sweeps/critical-batches": "GET",
}
"""By path, the one method that they answer."""


class UnknownPath:
    """An ASGI app, not a function: Starlette lets it answer every method, also made-up ones."""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self.routes = tuple(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 404, or 405 with the methods that would do."""
        only = LOOK_LIKE_AN_ID.get(scope["path"])
        allowed = [only] if only else [method for method in METHODS if self._answers(scope, method)]
        if allowed:
            detail = f"{scope['path'][:200]} does not answer {scope['method'][:20]}: use {', '.join(allowed)}"
            response = status_problem(405, detail, {"Allow": ", ".join(allowed)})
        else:
            detail = f"nothing is at {Request(scope).url.path[:200]!r}: see /openapi"
            response = status_problem(404, detail)
        await response(scope, receive, send)

    def _answers(self, scope: Scope, method: str) -> bool:
        asked: dict[str, Any] = {**scope, "method": method}
        return any(route.matches(asked)[0] is Match.FULL for route in self.routes)


def register_unknown_api_paths(app: FastAPI) -> None:
    """Add the 404 for /api and all below; call it after every router."""
    unknown = UnknownPath(app.routes)
    for path, answered in LOOK_LIKE_AN_ID.items():
        others = [method for method in METHODS if method != answered]
        app.router.routes.insert(0, Route(path, unknown, methods=others, include_in_schema=False))
    app.router.routes.append(Route("/api", unknown, include_in_schema=False))
    app.router.routes.append(Route("/api/{rest:path}", unknown, include_in_schema=False))
