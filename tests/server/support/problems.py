"""What every error answer must look like."""

import json

import httpx


def refuse_constant(token: str) -> float:
    raise AssertionError(f"{token} is no JSON")


def assert_problem(answer: httpx.Response, status: int, slug: str, *, field: str | None = None) -> None:
    """The one problem+json shape, with this status and slug, naming this field."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text[:300]
    body = json.loads(answer.content, parse_constant=refuse_constant)
    assert (answer.status_code, body["type"]) == (status, f"/errors/{slug}"), body
    assert {"type", "title", "status", "detail", "errors"} <= set(body)
    assert body["status"] == answer.status_code
    assert isinstance(body["detail"], str)
    assert body["detail"]
    for error in body["errors"]:
        assert set(error) == {"field", "message", "value"}
        assert error["field"]
        assert error["message"]
    if field is not None:
        assert field in [error["field"] for error in body["errors"]], body
