"""Every domain error has its line in the table, and everything that leaves the app is problem+json."""

import asyncpg
import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from noisescale_server.api.platform.errors import PROBLEMS, register_error_handlers
from noisescale_server.services.platform.errors import Conflict, DomainError, NotFound
from problems import assert_problem

GROUPING_ONLY = {DomainError, NotFound, Conflict}


class StatementError(Exception):
    """Stands in for asyncpg's errors: it has a sqlstate."""

    def __init__(self, sqlstate: str | None) -> None:
        super().__init__("from the driver")
        self.sqlstate = sqlstate


def every_kind_of(error: type[DomainError]) -> set[type[DomainError]]:
    return {error}.union(*(every_kind_of(child) for child in error.__subclasses__()))


async def answer_to(raised: Exception) -> httpx.Response:
    app = FastAPI()
    register_error_handlers(app)

    @app.get("/")
    async def fail() -> None:
        raise raised

    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
        return await http.get("/")


class TestTable:
    def test_every_domain_error_has_a_status(self) -> None:
        ours = {kind for kind in every_kind_of(DomainError) if kind.__module__.startswith("noisescale_server")}

        assert ours - GROUPING_ONLY == set(PROBLEMS)

    def test_slugs_are_unique(self) -> None:
        slugs = [slug for _, slug, _ in PROBLEMS.values()]

        assert len(slugs) == len(set(slugs))


class TestUnexpected:
    async def test_an_unexpected_error_is_500_without_detail_and_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        answer = await answer_to(ZeroDivisionError("secret"))

        assert_problem(answer, 500, "internal-server-error")
        assert "secret" not in answer.text
        assert "ZeroDivisionError" in caplog.text

    async def test_a_refused_statement_is_500_without_detail(self) -> None:
        answer = await answer_to(DBAPIError("SELECT secret", {}, StatementError("42P01")))

        assert_problem(answer, 500, "internal-server-error")
        assert "secret" not in answer.text


class TestDatabaseAway:
    @pytest.mark.parametrize(
        "raised",
        [
            pytest.param(ConnectionRefusedError(111, "refused"), id="refused"),
            pytest.param(PoolTimeoutError("pool"), id="pool exhausted"),
            pytest.param(asyncpg.ConnectionDoesNotExistError("closed"), id="closed outside SQLAlchemy"),
            pytest.param(asyncpg.InternalClientError("cannot switch to state 11"), id="killed while greeting"),
            *(
                pytest.param(DBAPIError("SELECT 1", {}, StatementError(state)), id=state)
                for state in ("08006", "57P01", "57P03", "57014", "53300", "40001", "40P01")
            ),
            pytest.param(DBAPIError("SELECT 1", {}, StatementError(None), connection_invalidated=True), id="lost"),
        ],
    )
    async def test_it_is_503_with_retry_after(self, raised: Exception) -> None:
        answer = await answer_to(raised)

        assert_problem(answer, 503, "database-unreachable")
        assert int(answer.headers["retry-after"]) > 0
