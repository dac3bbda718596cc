"""GET /openapi.json, and GET /openapi: the description of the API as one page of plain HTML.

Swagger UI, FastAPI's own page, loads its script from a content delivery network; this page asks for nothing but itself.
"""

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.types import Scope

router = APIRouter(include_in_schema=False)

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
section { border-top: 1px solid #8886; padding: .5rem 0; }
h2 { font-size: 1rem; } code, h2 { font-family: ui-monospace, monospace; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
td { padding: .15rem 1rem .15rem 0; vertical-align: top; border-top: 1px solid #8883; }
.scroll { overflow-x: auto; }
"""


@router.get("/openapi.json")
async def get_openapi(request: Request) -> Response:
    """The description itself."""
    return Response(request.app.openapi_json, media_type="application/json")


@router.get("/openapi")
async def show_openapi(request: Request) -> HTMLResponse:
    """The page, made from the same description as /openapi.json."""
    return HTMLResponse(request.app.openapi_html)


def docs_html(openapi: dict[str, Any]) -> str:
    """The whole page for an OpenAPI description."""
    schemas = openapi.get("components", {}).get("schemas", {})
    title = escape(openapi["info"]["title"])
    operations = "".join(
        _operation(method, path, operation)
        for path, methods in openapi["paths"].items()
        for method, operation in methods.items()
    )
    models = "".join(_model(name, schema) for name, schema in sorted(schemas.items()))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f"<body><h1>{title}</h1><p>{escape(openapi['info'].get('description', ''))} "
        f'Machine-readable: <a href="/openapi.json">/openapi.json</a>.</p>'
        f"{operations}<h1>Models</h1>{models}</body></html>"
    )


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    rows = "".join(_row(item["name"], _type(item["schema"]), _note(item)) for item in operation.get("parameters", []))
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    rows += _row("body", _type(body), "JSON") if body else ""
    rows += "".join(_row(code, _answer_type(answer), answer["description"]) for code, answer in _answers(operation))
    return (
        f"<section><h2>{escape(method.upper())} {escape(path)}</h2><p>{escape(operation.get('description', ''))}</p>"
        f'<div class="scroll"><table>{rows}</table></div></section>'
    )


def _answers(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from sorted(operation["responses"].items())


def _answer_type(answer: dict[str, Any]) -> str:
    return ", ".join(
        _type(item.get("schema", {})) or escape(media) for media, item in answer.get("content", {}).items()
    )


def _note(parameter: dict[str, Any]) -> str:
    default = parameter["schema"].get("default")
    need = "required" if parameter.get("required") else "" if default is None else f"default {default}"
    return " ".join(part for part in (parameter["in"], need, parameter.get("description", "")) if part)


def _model(name: str, schema: dict[str, Any]) -> str:
    rows = "".join(
        _row(field, _type(of), of.get("description", "")) for field, of in schema.get("properties", {}).items()
    )
    return (
        f'<section id="{escape(name)}"><h2>{escape(name)}</h2><p>{escape(schema.get("description", ""))}</p>'
        f'<div class="scroll"><table>{rows}</table></div></section>'
    )


def _row(name: str, kind: str, note: str) -> str:
    return f"<tr><td><code>{escape(name)}</code></td><td>{kind}</td><td>{escape(note)}</td></tr>"


def _type(schema: dict[str, Any]) -> str:
    """A type in words, already escaped; a model is a link to its section."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_type(item) for item in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(escape(str(item)) for item in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return escape(str(schema.get("format", schema.get("type", ""))))


# /docs/: the documentation that `make docs` has built, and that the wheel carries.

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
