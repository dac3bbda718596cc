"""/docs/: the documentation that `make docs` has built, and that the wheel carries."""

from pathlib import Path
from typing import Final

from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.responses import Response
from starlette.types import Scope

SITE: Final = Path(__file__).parents[2] / "documentation"
POLICY: Final = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
"""The theme's own scripts stand in its pages; nothing that anybody has typed does."""


class Site(StaticFiles):
    """Files of the documentation, with a policy under which its pages work."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file, or the index of a folder."""
        answer = await super().get_response(path, scope)
        answer.headers["Content-Security-Policy"] = POLICY
        return answer


def serve_documentation(app: FastAPI, folder: Path = SITE) -> None:
    """Put the documentation under /docs/; a checkout where it is not built shows the description of the API instead.

    Args:
        app: The server.
        folder: Where the pages lie.
    """
    if (folder / "index.html").exists():
        app.mount("/docs", Site(directory=folder, html=True), name="documentation")
    else:
        app.add_api_route("/docs", _show_openapi, include_in_schema=False)
        app.add_api_route("/docs/{path:path}", _show_openapi, include_in_schema=False)


async def _show_openapi() -> RedirectResponse:
    return RedirectResponse("/openapi")
