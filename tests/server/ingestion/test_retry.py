"""A transaction that Postgres ends for a deadlock is made again, nothing else is."""

import pytest
from fastapi import FastAPI
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.api.platform.transactions import MAX_ATTEMPTS, commit_with_retry


class Work:
    """Lets Postgres raise an error of this code the first few times."""

    def __init__(self, sqlstate: str, num_failures: int) -> None:
        self.sqlstate, self.num_failures, self.num_calls = sqlstate, num_failures, 0

    async def __call__(self, session: AsyncSession) -> int:
        self.num_calls += 1
        if self.num_calls <= self.num_failures:
            await session.execute(text(f"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{self.sqlstate}'; END $$"))
        return self.num_calls


@pytest.mark.parametrize("sqlstate", ["40P01", "40001"])
async def test_a_deadlock_is_tried_again(shared_app: FastAPI, sqlstate: str) -> None:
    work = Work(sqlstate, num_failures=2)

    assert await commit_with_retry(shared_app.state.sessions, work) == 3


async def test_the_fourth_deadlock_is_an_error(shared_app: FastAPI) -> None:
    work = Work("40P01", num_failures=9)

    with pytest.raises(DBAPIError):
        await commit_with_retry(shared_app.state.sessions, work)
    assert work.num_calls == MAX_ATTEMPTS


async def test_any_other_error_is_not_tried_again(shared_app: FastAPI) -> None:
    work = Work("23505", num_failures=1)

    with pytest.raises(DBAPIError):
        await commit_with_retry(shared_app.state.sessions, work)
    assert work.num_calls == 1
