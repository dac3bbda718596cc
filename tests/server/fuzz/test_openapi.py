"""What the OpenAPI says is what the server does: every operation, with inputs that fit its schema and that do not."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi import FastAPI
from pydantic import BaseModel

from fuzzed_api import fuzz
from served_app import TOKEN, served_app

pytestmark = [pytest.mark.processes, pytest.mark.slow, pytest.mark.timeout(600)]


def test_no_input_brings_forth_a_5xx_or_an_answer_that_is_not_described(
    new_database: Callable[[], str], tmp_path: Path
) -> None:
    """`make fuzz` asks longer, and in sequence; here each time the same is asked."""
    with served_app(new_database(), public_projects=True) as address:
        found = fuzz(address, TOKEN, folder=tmp_path, examples=1, with_sequences=False, seed=9)

    assert found.num_failures == 0, found.report
    assert found.num_requests > 300


class Answered(BaseModel):
    length: int


@pytest.fixture
def careless() -> Callable[[FastAPI], None]:
    def extend(app: FastAPI) -> None:
        @app.get("/careless")
        async def divide(by: int) -> Answered:
            return Answered(length=100 // by)

        # the last routes of the app answer every unknown path
        app.router.routes.insert(0, app.router.routes.pop())

    return extend


def test_a_route_that_fails_on_one_input_is_found(
    new_database: Callable[[], str],
    careless: Callable[[FastAPI], None],
    tmp_path: Path,
) -> None:
    with served_app(new_database(), extend=careless) as address:
        found = fuzz(address, TOKEN, folder=tmp_path, examples=1, seed=9, path="/careless")

    assert found.num_failures > 0, found.report
    assert "/careless?by=0" in found.report
