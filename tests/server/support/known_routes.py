"""The routes of the API, worked out once for all servers of a test's process."""

from fastapi import FastAPI
from starlette.routing import BaseRoute

_KNOWN: list[BaseRoute] = []


def with_known_routes(app: FastAPI) -> FastAPI:
    """The app with the routes of the process's first one, which hold nothing of theirs.

    FastAPI makes the models of every route again for each application: a fifth of what the tests of the API took.

    Args:
        app: As `create_app` made it, before anything is mounted on it.
    """
    fresh = app.router.routes
    if not _KNOWN:
        _KNOWN.extend(fresh)
    assert [type(route) for route in fresh] == [type(route) for route in _KNOWN]
    fresh[:] = _KNOWN
    return app
