"""A transaction that Postgres ends for a deadlock is made again, nothing else is."""

import pytest
from fastapi import FastAPI
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.api.platform.transactions import MAX_ATTEMPTS, commit_with_retry
from noisescale_server.storage.platform.driver import DATABASE_ERRORS, fetch


class Work:
    """Lets Postgres raise an error of this code the first few times: in its first statement, or in a later one."""

    def __init__(self, sqlstate: str, num_failures: int, *, is_later: bool = False) -> None:
        self.sqlstate, self.num_failures, self.is_later, self.num_calls = sqlstate, num_failures, is_later, 0

    async def __call__(self, session: AsyncSession) -> int:
        self.num_calls += 1
        if self.is_later:
            await fetch(session, "SELECT 1")
        if self.num_calls <= self.num_failures:
            await fetch(session, f"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{self.sqlstate}'; END $$")
        return self.num_calls


@pytest.mark.parametrize("is_later", [False, True])
@pytest.mark.parametrize("sqlstate", ["40P01", "40001"])
async def test_a_deadlock_is_tried_again(shared_app: FastAPI, sqlstate: str, is_later: bool) -> None:
    work = Work(sqlstate, num_failures=2, is_later=is_later)

    assert await commit_with_retry(shared_app.state.sessions, work) == 3


@pytest.mark.parametrize("is_later", [False, True])
async def test_the_fourth_deadlock_is_an_error(shared_app: FastAPI, is_later: bool) -> None:
    work = Work("40P01", num_failures=9, is_later=is_later)

    with pytest.raises(DATABASE_ERRORS):
        await commit_with_retry(shared_app.state.sessions, work)
    assert work.num_calls == MAX_ATTEMPTS


@pytest.mark.parametrize("is_later", [False, True])
async def test_any_other_error_is_not_tried_again(shared_app: FastAPI, is_later: bool) -> None:
    work = Work("23505", num_failures=1, is_later=is_later)

    with pytest.raises(DATABASE_ERRORS):
        await commit_with_retry(shared_app.state.sessions, work)
    assert work.num_calls == 1
