"""What the dashboard reads of an answer is in the API's description, and its pages know all that may be asked."""

import types
import typing
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from fakes_planner import LIMIT_WORDS
from noisescale_core.advice.question import FIELDS
from noisescale_core.theory.limits import LimitKind
from noisescale_dashboard.answers.advice import Recommendation
from noisescale_dashboard.answers.plans import TradeOff
from noisescale_dashboard.api import question_fields
from noisescale_dashboard.planner import query as planner_query
from noisescale_dashboard.run import limits as plan_limits
from noisescale_server.app import create_app
from noisescale_server.process.settings import Settings

RECOMMENDATION, TRADE_OFF = "/api/v1/runs/{run_id}/recommendation", "/api/v1/tradeoff"
ASKED_OTHERWISE = {"preference": "the slider", "batch_sizes": "no page asks for batches of one's own"}
PLANNER_ASKS_OTHERWISE = {"fixed_hardware": "a switch", "num_devices": "devices at most, which may stay"}


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    return create_app(Settings(database_url="postgresql://nowhere/none")).openapi()


@pytest.mark.thorough
@pytest.mark.parametrize(("path", "kind"), [(RECOMMENDATION, Recommendation), (TRADE_OFF, TradeOff)])
def test_every_name_that_the_pages_read_is_in_the_description(
    description: dict[str, Any], path: str, kind: type
) -> None:
    content = description["paths"][path]["get"]["responses"]["200"]["content"]

    assert list(unknown(kind, content["application/json"]["schema"], description)) == []


def test_a_name_that_the_description_lacks_is_found(description: dict[str, Any]) -> None:
    schema = {"properties": {"limits": {"items": {"properties": {"kind": {}}}}}}

    found = list(unknown(TradeOff, schema, description))

    assert {"TradeOff.critical_batch", "Limit.name"} <= set(found)
    assert "Limit.kind" not in found


def unknown(kind: Any, schema: dict[str, Any], description: dict[str, Any]) -> Iterator[str]:
    """Names of the dataclass, and of those in it, that the description of the same part does not have."""
    known = properties(schema, description)
    hints = typing.get_type_hints(kind)
    for one in fields(kind):
        if one.name not in known:
            yield f"{kind.__name__}.{one.name}"
            continue
        for part in parts(hints[one.name]):
            yield from unknown(part, known[one.name], description)


def properties(schema: dict[str, Any], description: dict[str, Any]) -> dict[str, Any]:
    """The properties of an object, of the items of a list, or of what is not null."""
    if "$ref" in schema:
        return properties(description["components"]["schemas"][schema["$ref"].rpartition("/")[2]], description)
    inner = [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])]
    found = dict(schema.get("properties", {}))
    for one in inner:
        found |= properties(one, description)
    return found


def parts(hint: Any) -> Iterator[Any]:
    """The dataclasses in an annotation."""
    if is_dataclass(hint):
        yield hint
    elif isinstance(hint, types.UnionType) or typing.get_origin(hint) is not None:
        for one in typing.get_args(hint):
            yield from parts(one)


def test_every_field_of_a_question_is_known_to_the_run_page_or_asked_there_otherwise() -> None:
    assert {*plan_limits.FIELDS, *ASKED_OTHERWISE} == set(FIELDS)
    assert not plan_limits.FIELDS.keys() & ASKED_OTHERWISE


def test_every_field_of_a_question_is_known_to_the_planner_or_asked_there_otherwise() -> None:
    asked = {one.asks for one in planner_query.FIELDS.values()}

    assert set(FIELDS) - ASKED_OTHERWISE.keys() <= asked | PLANNER_ASKS_OTHERWISE.keys()


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        (RECOMMENDATION, [one.asks for one in question_fields.FIELDS]),
        (TRADE_OFF, [one.asks for one in planner_query.FIELDS.values()]),
    ],
)
def test_every_field_of_the_pages_is_one_of_the_api(description: dict[str, Any], path: str, asked: list[str]) -> None:
    known = {one["name"] for one in description["paths"][path]["get"]["parameters"]}

    assert set(asked) <= known


@pytest.mark.parametrize("kind", LIMIT_WORDS)
def test_the_stand_in_calls_a_limit_as_the_core_does(kind: str) -> None:
    real = LimitKind(kind)

    assert LIMIT_WORDS[kind] == (real.called, real.breaks, real.role, real.quantity)
