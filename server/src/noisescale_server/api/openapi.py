"""The OpenAPI description, with the bodies that endpoints read themselves among the named models."""

from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp

from noisescale_server.api.auth_gate import Gate


class Api(FastAPI):
    """FastAPI behind the gate, that finds a place for the models of `body_of`."""

    def build_middleware_stack(self) -> ASGIApp:
        """Everything that this application does, whoever has added it, with the gate around it."""
        return Gate(super().build_middleware_stack(), self.state)

    def openapi(self) -> dict[str, Any]:
        """The description, made once."""
        if self.openapi_schema is None:
            name_bodies(super().openapi())
        return super().openapi()


def name_bodies(description: dict[str, Any]) -> None:
    """Move each inline body and what it is made of to the components, where its references point."""
    models = description.setdefault("components", {}).setdefault("schemas", {})
    for methods in description["paths"].values():
        for operation in methods.values():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            if "title" in content.get("schema", {}):
                content["schema"] = _moved(content["schema"], models)


def _moved(schema: dict[str, Any], models: dict[str, Any]) -> dict[str, str]:
    parts = schema.get("$defs", {}) | {schema["title"]: {key: schema[key] for key in schema if key != "$defs"}}
    for name, part in parts.items():
        assert models.setdefault(name, part) == part, f"two models are named {name}: rename one"
    return {"$ref": f"#/components/schemas/{schema['title']}"}
