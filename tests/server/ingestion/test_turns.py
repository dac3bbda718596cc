"""What lists show is made anew where no batch and no page waits: by rounds, and by some of the batches."""

import asyncio

import pytest

from noisescale_server.api.platform.transactions import CONNECTIONS_FOR_READERS, BatchTurns
from noisescale_server.process.refreshing import LATE_SECONDS, MOST_LEFT_OUT, Turns
from noisescale_server.services.ingest.window_turns import WINDOWS_A_SECOND, WindowTurns
from noisescale_server.services.platform.errors import DatabaseUnreachable


def test_a_round_that_begins_in_time_has_time() -> None:
    turns = Turns()

    assert [turns.has_time(late) for late in (0.0, 0.001, 0.9 * LATE_SECONDS)] == [True] * 3


def test_a_process_that_others_wait_for_has_time_in_one_round_of_sixteen() -> None:
    turns = Turns()

    found = [turns.has_time(10 * LATE_SECONDS) for _ in range(3 * (MOST_LEFT_OUT + 1))]

    assert found == ([False] * MOST_LEFT_OUT + [True]) * 3


def test_one_round_in_time_begins_the_count_again() -> None:
    turns = Turns()
    for _ in range(MOST_LEFT_OUT - 1):
        turns.has_time(1.0)

    assert turns.has_time(0.0)
    assert not any(turns.has_time(1.0) for _ in range(MOST_LEFT_OUT))


def windows_taken(*, batches_a_second: int, seconds: int) -> int:
    at = 0.0
    turns = WindowTurns(now=lambda: at)
    taken = 0
    for number in range(batches_a_second * seconds):
        at = number / batches_a_second
        taken += turns.take()
    return taken


def test_each_batch_of_a_few_jobs_computes_its_window() -> None:
    assert windows_taken(batches_a_second=15, seconds=60) == 15 * 60


def test_a_thousand_jobs_share_the_turns_of_each_second() -> None:
    taken = windows_taken(batches_a_second=200, seconds=60)

    assert 0.95 * 60 * WINDOWS_A_SECOND <= taken <= 61 * WINDOWS_A_SECOND


def test_turns_that_nobody_took_are_kept_for_a_second_and_no_longer() -> None:
    at = 0.0
    turns = WindowTurns(a_second=3, now=lambda: at)
    at = 3600.0

    assert [turns.take() for _ in range(4)] == [True, True, True, False]


async def test_batches_leave_connections_to_readers_and_the_next_one_begins_when_one_ends() -> None:
    turns, at_once, most = BatchTurns(pool_size=6, wait_seconds=10.0), 0, 0

    async def store() -> None:
        nonlocal at_once, most
        async with turns.take():
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0)
            at_once -= 1

    await asyncio.gather(*(store() for _ in range(50)))

    assert most == 6 - CONNECTIONS_FOR_READERS


async def test_a_batch_whose_turn_does_not_come_is_told_to_come_again() -> None:
    turns = BatchTurns(pool_size=1, wait_seconds=0.01)
    async with turns.take():
        with pytest.raises(DatabaseUnreachable, match="before this one wait for the database: try again in 2 s"):
            async with turns.take():
                raise AssertionError("there is no turn")

    async with turns.take():
        pass
