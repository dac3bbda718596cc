"""Decisions that lists show are made again where no batch and no page waits."""

from noisescale_server.process.refreshing import LATE_SECONDS, MOST_LEFT_OUT, Turns


def test_a_round_that_begins_in_time_decides() -> None:
    turns = Turns()

    assert [turns.has_time(late) for late in (0.0, 0.001, 0.9 * LATE_SECONDS)] == [True] * 3


def test_a_process_that_others_wait_for_decides_in_one_round_of_sixteen() -> None:
    turns = Turns()

    found = [turns.has_time(10 * LATE_SECONDS) for _ in range(3 * (MOST_LEFT_OUT + 1))]

    assert found == ([False] * MOST_LEFT_OUT + [True]) * 3


def test_one_round_in_time_begins_the_count_again() -> None:
    turns = Turns()
    for _ in range(MOST_LEFT_OUT - 1):
        turns.has_time(1.0)

    assert turns.has_time(0.0)
    assert not any(turns.has_time(1.0) for _ in range(MOST_LEFT_OUT))
