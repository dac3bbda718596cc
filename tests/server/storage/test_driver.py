"""What the driver is asked for: arrays without a look at each of their elements, reads without a transaction."""

import asyncpg.protocol.protocol as asyncpg_codecs
import pytest
from asyncpg.exceptions import DataError
from fastapi import FastAPI
from sqlalchemy import text

from noisescale_server.storage.platform.driver import ARRAYS, read

_TRANSACTION = "SELECT pg_current_xact_id()"


@pytest.mark.parametrize("given", [[1.5, None], (1.5, None), {1.5, None}], ids=["list", "tuple", "set"])
async def test_an_array_goes_to_the_database_with_its_nulls(shared_app: FastAPI, given: object) -> None:
    async with shared_app.state.sessions() as session:
        (found,) = await read(session, "SELECT array_to_string($1::float8[], ',', '-') AS said", given)

    assert sorted(found["said"].split(",")) == ["-", "1.5"]


async def test_a_text_is_no_array_of_its_characters(shared_app: FastAPI) -> None:
    async with shared_app.state.sessions() as session:
        with pytest.raises(DataError, match="a sized iterable container expected"):
            await read(session, "SELECT $1::text[]", "abc")


def test_the_driver_knows_arrays_by_their_classes() -> None:
    """An abstract base class instead of them is asked in Python, of every element."""
    assert vars(asyncpg_codecs)["IterableABC"] is ARRAYS


async def test_a_plain_read_is_no_transaction_and_any_other_is_one(shared_app: FastAPI) -> None:
    are_one = []
    for sessions in (shared_app.state.plain_read_sessions, shared_app.state.read_sessions):
        async with sessions() as session:
            first, second = [(await session.execute(text(_TRANSACTION))).scalar_one() for _ in range(2)]
            are_one.append(first == second)

    assert are_one == [False, True]
