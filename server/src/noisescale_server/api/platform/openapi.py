"""The OpenAPI description, with the bodies that endpoints read themselves and the errors among the named models."""

import json
from typing import Any

from pydantic import BaseModel, ConfigDict


class RefusedField(BaseModel):
    """A field that cannot be accepted."""

    model_config = ConfigDict(extra="forbid")

    field: str
    message: str
    value: str | None


class Problem(BaseModel):
    """An error, as RFC 9457 has it; some kinds have further members."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[RefusedField]


def name_bodies(description: dict[str, Any]) -> None:
    """Move each inline body and what it is made of to the components, where its references point."""
    models = description.setdefault("components", {}).setdefault("schemas", {})
    for methods in description["paths"].values():
        for operation in methods.values():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            if "title" in content.get("schema", {}):
                content["schema"] = _moved(content["schema"], models)


def name_problem(description: dict[str, Any]) -> None:
    """Put the form of every error among the components, and leave out FastAPI's own, which is never sent."""
    models = description["components"]["schemas"]
    problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    models |= problem.pop("$defs") | {"Problem": problem}
    for unused in ("HTTPValidationError", "ValidationError"):
        models.pop(unused, None)


def _moved(schema: dict[str, Any], models: dict[str, Any]) -> dict[str, str]:
    parts = schema.get("$defs", {}) | {schema["title"]: {key: schema[key] for key in schema if key != "$defs"}}
    for name, part in parts.items():
        assert _in_floats(models.get(name, part)) == _in_floats(part), f"two models are named {name}: rename one"
        models[name] = part
    return {"$ref": f"#/components/schemas/{schema['title']}"}


def _in_floats(schema: dict[str, Any]) -> Any:
    # FastAPI writes the limits of its own models as floats, which makes 2**63 of 2**63 - 1
    return json.loads(json.dumps(schema), parse_int=float)
