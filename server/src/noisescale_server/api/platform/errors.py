"""Errors as RFC 9457 problem+json: one table, one shape, one handler for our own errors."""

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from asyncpg.exceptions import InterfaceError as DriverInterfaceError
from asyncpg.exceptions import InternalClientError as DriverConfused
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from noisescale_server.api.platform.body import invalid_input
from noisescale_server.api.platform.refusals import (
    BodyTooLarge,
    Busy,
    MediaTypeNotSupported,
    ProviderFailed,
    TooManyAttempts,
    TooManyBatches,
    TooManyReads,
    VersionNotSupported,
)
from noisescale_server.services.platform.errors import (
    AlertReceiverNotFound,
    AlertRuleNotFound,
    CommentNotFound,
    DatabaseNotDurable,
    DatabaseUnreachable,
    DomainError,
    FieldProblem,
    InvalidInput,
    KeyNotFound,
    LastAdministrator,
    LayerNotFound,
    LinkNotFound,
    NotAllowed,
    NotAuthenticated,
    PersonNotFound,
    ProjectNotFound,
    ReproductionNotFound,
    RunDeleted,
    RunIdTaken,
    RunNotFound,
    SchemaOutdated,
    StreamConflict,
    StreamGap,
    StreamNotFound,
    SweepIdTaken,
    SweepNotFound,
    TaskNotFound,
    TooManyKeys,
    TooManyStreams,
    ViewNotFound,
)
from noisescale_server.storage.platform.driver import DATABASE_ERRORS, sqlstate_of

log = logging.getLogger(__name__)

PROBLEMS: Mapping[type[DomainError], tuple[int, str, str]] = {
    NotAuthenticated: (401, "not-authenticated", "A key or a login is needed"),
    NotAllowed: (403, "not-allowed", "This is not allowed"),
    RunNotFound: (404, "run-not-found", "Run not found"),
    StreamNotFound: (404, "stream-not-found", "Stream not found"),
    LayerNotFound: (404, "layer-not-found", "Layer not found"),
    SweepNotFound: (404, "sweep-not-found", "Sweep not found"),
    ReproductionNotFound: (404, "reproduction-not-found", "Reproduction not found"),
    ProjectNotFound: (404, "project-not-found", "Project not found"),
    TaskNotFound: (404, "task-not-found", "Task not found"),
    KeyNotFound: (404, "key-not-found", "Key not found"),
    CommentNotFound: (404, "comment-not-found", "Comment not found"),
    ViewNotFound: (404, "view-not-found", "View not found"),
    LinkNotFound: (404, "link-not-found", "Link not found"),
    AlertRuleNotFound: (404, "alert-rule-not-found", "Rule not found"),
    AlertReceiverNotFound: (404, "alert-receiver-not-found", "Receiver not found"),
    PersonNotFound: (404, "person-not-found", "Person not found"),
    TooManyKeys: (409, "too-many-keys", "Too many keys in force"),
    LastAdministrator: (409, "last-administrator", "Last admin of all projects"),
    RunIdTaken: (409, "run-id-taken", "Run id is taken"),
    SweepIdTaken: (409, "sweep-id-taken", "Sweep id is taken"),
    StreamGap: (409, "stream-gap", "Records are missing before this batch"),
    StreamConflict: (409, "stream-conflict", "Stream holds other content"),
    TooManyStreams: (409, "too-many-streams", "Too many streams of a run"),
    RunDeleted: (410, "run-deleted", "Run was deleted"),
    InvalidInput: (422, "invalid-input", "Input cannot be accepted"),
    BodyTooLarge: (413, "body-too-large", "Body is too large"),
    MediaTypeNotSupported: (415, "media-type-not-supported", "Content type or encoding not supported"),
    VersionNotSupported: (426, "version-not-supported", "Version of the wire format not supported"),
    TooManyBatches: (429, "too-many-batches", "Too many batches from one sender"),
    TooManyReads: (429, "too-many-reads", "Too many reads from one sender"),
    TooManyAttempts: (429, "too-many-attempts", "Too many wrong keys"),
    ProviderFailed: (502, "login-failed", "The organisation's login failed"),
    Busy: (503, "busy", "Too many reads of one sender wait"),
    DatabaseUnreachable: (503, "database-unreachable", "Database does not answer"),
    DatabaseNotDurable: (503, "database-not-durable", "Database may lose what it has committed"),
    SchemaOutdated: (503, "schema-outdated", "Database schema is older than this server"),
}

# SQLSTATE classes and codes after which the same request may well succeed: connection lost (08), shutting down or
# starting up (57P), too many connections (53), deadlock and serialization (40), statement or lock time-out.
INTERNAL_ERROR = "XX000"
TRY_AGAIN_PREFIXES = ("08", "57P", "53", "40", "57014", "55P03", "25P03")


class ProblemResponse(JSONResponse):
    """A JSON body with the media type of RFC 9457."""

    media_type = "application/problem+json"


def problem_response(
    status: int,
    slug: str,
    title: str,
    *,
    detail: str | None = None,
    errors: Sequence[FieldProblem] = (),
    members: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> ProblemResponse:
    """The one error shape of this API."""
    content = {
        "type": f"/errors/{slug}",
        "title": title,
        "status": status,
        "detail": detail if detail is not None else title,
        "errors": [{"field": item.field, "message": item.message, "value": item.value} for item in errors],
        **(members or {}),
    }
    return ProblemResponse(content, status_code=status, headers=dict(headers or {}))


def domain_problem(error: DomainError) -> ProblemResponse:
    """The answer for one of our own errors; a subclass without its own line takes its parent's."""
    status, slug, title = next(PROBLEMS[kind] for kind in type(error).__mro__ if kind in PROBLEMS)
    return problem_response(
        status,
        slug,
        title,
        detail=str(error),
        errors=error.problems if isinstance(error, InvalidInput) else (),
        members={name: getattr(error, name) for name in error.members},
        headers=_headers(error),
    )


def _headers(error: DomainError) -> dict[str, str]:
    if isinstance(error, NotAuthenticated):
        return {"WWW-Authenticate": "Bearer"}
    if error.retry_after_seconds is None:
        return {}
    # with the connection go the requests that wait on it: each of them would be refused, too
    closing = {"Connection": "close"} if isinstance(error, TooManyReads) else {}
    return {"Retry-After": str(error.retry_after_seconds), **closing}


def status_problem(status: int, detail: str | None = None, headers: Mapping[str, str] | None = None) -> ProblemResponse:
    """The answer for a bare HTTP status, such as the router's own 404 and 405."""
    title = HTTPStatus(status).phrase
    return problem_response(status, title.lower().replace(" ", "-"), title, detail=detail, headers=headers)


def means_try_again(error: Exception) -> bool:
    """Whether the database was away or busy, as opposed to refusing the statement."""
    sqlstate = sqlstate_of(error)
    if sqlstate is not None:
        # a coordinator that loses a node of Citus says so in words alone
        words = str(error.orig if isinstance(error, DBAPIError) else error)
        is_of_nodes = sqlstate == INTERNAL_ERROR and "connection" in words
        return is_of_nodes or sqlstate.startswith(TRY_AGAIN_PREFIXES)
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or isinstance(error, OperationalError | InterfaceError)
    return isinstance(error, PoolTimeoutError | OSError | DriverInterfaceError | DriverConfused)


async def _on_domain_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, DomainError)
    return domain_problem(error)


async def _on_request_validation(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return domain_problem(invalid_input(error.errors(), skip_location=1))


async def _on_http_exception(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return status_problem(error.status_code, error.detail, error.headers)


def database_problem(method: str, path: str, error: Exception) -> ProblemResponse:
    """The answer where the database was away or busy, or refused a statement of ours."""
    if not means_try_again(error):
        return unexpected_problem(method, path, error)
    log.warning("database unreachable for %s %s: %s", method, path, type(error).__name__)
    return domain_problem(DatabaseUnreachable("the database does not answer"))


def unexpected_problem(method: str, path: str, error: Exception) -> ProblemResponse:
    """The answer to what nobody foresaw; the log has the rest."""
    log.error("unexpected error for %s %s", method, path, exc_info=error)
    return status_problem(500, "an unexpected error, logged by the server: it is a bug of noisescale")


async def _on_database_error(request: Request, error: Exception) -> Response:
    return database_problem(request.method, request.url.path, error)


async def _on_client_disconnect(_request: Request, _error: Exception) -> Response:
    return status_problem(400, "the connection ended before the body was complete")


async def _on_unexpected(request: Request, error: Exception) -> Response:
    return unexpected_problem(request.method, request.url.path, error)


def register_error_handlers(app: FastAPI) -> None:
    """Every error that leaves this app is problem+json."""
    app.add_exception_handler(DomainError, _on_domain_error)
    app.add_exception_handler(RequestValidationError, _on_request_validation)
    app.add_exception_handler(HTTPException, _on_http_exception)
    for kind in DATABASE_ERRORS:
        app.add_exception_handler(kind, _on_database_error)
    app.add_exception_handler(ClientDisconnect, _on_client_disconnect)
    app.add_exception_handler(Exception, _on_unexpected)


# Whatever below /api no route answers: 404, or 405 where another method would have been answered.
#
# It stands behind the real routes and before the dashboard, whose catch-all answers every unknown address with a page.
# Fixed paths that look like a run's or a sweep's, such as /runs/summary, have theirs before the real ones: PATCH
# /runs/{run_id} would take `summary` for an id.

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
