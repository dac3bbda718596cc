"""The API as one application: FastAPI behind the gate, with a description that names every body."""

import json
from functools import cached_property
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp

from noisescale_server.api.access.gate import Gate
from noisescale_server.api.platform.docs_page import docs_html
from noisescale_server.api.platform.openapi import name_bodies, name_problem


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
