"""The browser's own modules: one address for all of them, which changes with any of them."""

from hashlib import sha256
from os import PathLike, stat_result
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles
from starlette.types import Scope

BELOW = "/assets/modules"
"""Below the assets, which are read without a key."""
ENTRY = "main.js"


class Modules:
    """ES modules of a folder, served under the fingerprint of what is in all of them.

    A module names the others by paths that are relative to its own, so all come from under one fingerprint: an upgrade
    never mixes old ones and new ones, and a browser may keep each for good. Dash would ask for its assets by the time
    of each file (`?m=`), which a relative path does not carry on.

    Args:
        folder: Where they are; they are read once.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.js"))
        content = sha256()
        for name in self._names:
            content.update(f"{name}\0".encode() + (folder / name).read_bytes() + b"\0")
        self.address = f"{BELOW}/{content.hexdigest()[:16]}"

    def mount(self, app: FastAPI) -> None:
        """Serve them from `app`; before Dash, which answers whatever is below its assets."""
        app.mount(self.address, _KeptForGood(directory=self._folder), name="modules")

    def preloads(self) -> str:
        """Links for the head of a page: all are asked for at once, not each by the one that imports it."""
        return "\n".join(f'<link rel="modulepreload" href="{self.address}/{name}">' for name in self._names)

    def then(self, script: str) -> str:
        """An inline script that waits for all of them and then runs `script`.

        Args:
            script: Statements; here Dash's start, which calls at once what the modules register.
        """
        return f'import("{self.address}/{ENTRY}").then(() => {{ {script} }});'


class _KeptForGood(StaticFiles):
    def file_response(
        self,
        full_path: str | PathLike[str],
        stat_result: stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        answer = super().file_response(full_path, stat_result, scope, status_code)
        answer.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return answer
