"""The routes of the API, worked out once for all servers of a test's process."""

from fastapi import FastAPI
from starlette.routing import BaseRoute

_KNOWN: dict[tuple[tuple[type[BaseRoute], str], ...], list[BaseRoute]] = {}


def with_known_routes(app: FastAPI) -> FastAPI:
    """The app with the routes of the process's first one that had the same, which hold nothing of theirs.

    FastAPI makes the models of every route again for each application: a fifth of what the tests of the API took.
    Which there are may change between two servers: the built documentation is one as soon as its folder is there.

    Args:
        app: As `create_app` made it, before anything is mounted on it.
    """
    fresh = app.router.routes
    same = tuple((type(route), str(getattr(route, "path", ""))) for route in fresh)
    fresh[:] = _KNOWN.setdefault(same, list(fresh))
    return app
