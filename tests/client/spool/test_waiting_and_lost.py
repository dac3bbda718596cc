"""The small parts of a spool by themselves: what waits in memory, what is lost, when a disk is slow."""

import random

import pytest

from noisescale.transport.spool.frames import encode, seq_of
from noisescale.transport.spool.held_frames import WaitingFrames
from noisescale.transport.spool.loss_book import LossBook, clipped, is_in, merged, without
from noisescale.transport.spool.spool import MemorySpool
from noisescale.transport.spool.write_speed import WriteSpeed
from noisescale.transport.wire import LostRange
from spooled_streams import metric

FRAME_BYTES = len(encode(2, metric(2)))


def frame(seq):
    return encode(seq, metric(2))


def seqs(frames):
    return [seq_of(one) for one in frames]


def numbers_of(ranges):
    return {seq: one.reason for one in ranges for seq in range(one.first, one.last + 1)}


class TestRanges:
    def test_arithmetic_of_ranges_is_that_of_sets(self):
        rng = random.Random(1)
        for _ in range(300):
            others = sorted(rng.sample(range(30), 6))
            taken = [(others[0], others[1]), (others[2], others[3]), (others[4], others[5])]
            rng.shuffle(taken)
            first, last = sorted(rng.choices(range(30), k=2))
            covered = {seq for low, high in taken for seq in range(low, high + 1)}
            ranges = [LostRange(low, high, "r") for low, high in taken]

            free = [seq for low, high in without(first, last, taken) for seq in range(low, high + 1)]
            inside = clipped(ranges, first, last)

            assert free == [seq for seq in range(first, last + 1) if seq not in covered]
            assert set(numbers_of(inside)) == covered & set(range(first, last + 1))
            assert all(first <= one.first <= one.last <= last for one in inside)
            assert [seq for seq in range(32) if is_in(ranges, seq)] == sorted(covered)

    def test_neighbours_of_one_reason_are_one_range(self):
        ranges = [
            LostRange(7, 7, "b"),
            LostRange(1, 2, "a"),
            LostRange(3, 5, "a"),
            LostRange(6, 6, "b"),
            LostRange(9, 9, "b"),
        ]

        assert merged(ranges) == [LostRange(1, 5, "a"), LostRange(6, 7, "b"), LostRange(9, 9, "b")]


class TestLossBook:
    def test_each_number_is_written_once_and_told_once(self):
        book = LossBook()
        assert not book.has_unwritten
        assert not book.take_unsaid()

        assert book.remember(LostRange(5, 7, "a"))
        assert not book.remember(LostRange(6, 7, "b"))
        book.give_up(LostRange(7, 9, "a"))

        assert book.has_unwritten
        assert book.take_unwritten() == LostRange(5, 9, "a")
        assert book.take_unwritten() is None
        assert not book.has_unwritten
        assert list(book.take_unsaid()) == [LostRange(7, 9, "a")]
        assert not book.take_unsaid()

    def test_only_neighbours_of_one_reason_are_written_as_one(self):
        book = LossBook()
        for lost in (LostRange(2, 2, "a"), LostRange(3, 3, "a"), LostRange(4, 4, "b"), LostRange(6, 6, "b")):
            book.remember(lost)

        written = [book.take_unwritten() for _ in range(3)]

        assert written == [LostRange(2, 3, "a"), LostRange(4, 4, "b"), LostRange(6, 6, "b")]

    def test_what_could_not_be_written_comes_first_again(self):
        book = LossBook()
        book.remember(LostRange(2, 2, "a"))
        book.remember(LostRange(5, 5, "b"))
        first = book.take_unwritten()
        assert first is not None

        book.give_back(first)

        assert [book.take_unwritten() for _ in range(3)] == [first, LostRange(5, 5, "b"), None]

    def test_the_newest_are_told_first_where_there_is_room_for_some_only(self):
        book = LossBook()
        for seq in (4, 8, 2, 6):
            book.remember(LostRange(seq, seq, "a"))

        assert [one.first for one in book.known()] == [8, 6, 4, 2]

    def test_all_that_is_not_acknowledged_is_written_again(self):
        book = LossBook()
        for seq in (2, 4, 6):
            book.remember(LostRange(seq, seq, "a"))
        while book.take_unwritten():
            pass
        book.acknowledge(4)

        book.write_all_again()

        assert [book.take_unwritten(), book.take_unwritten()] == [LostRange(6, 6, "a"), None]


class TestWaitingFrames:
    def test_frames_come_out_in_order_and_count_until_they_are_given_back(self):
        waiting = WaitingFrames(max_bytes=10 * FRAME_BYTES, max_frames=10)
        assert waiting.take() is None
        for seq in (2, 3, 4):
            assert waiting.put(frame(seq)) == []

        taken = waiting.take()
        while_away = seqs(waiting.listed())
        waiting.give_back(is_written=False)
        again = waiting.take()
        waiting.give_back(is_written=True)

        assert taken == again == frame(2)
        assert while_away == [2, 3, 4]
        assert (seqs(waiting.listed()), len(waiting)) == ([3, 4], 2)

    @pytest.mark.parametrize("limits", [{"max_frames": 3}, {"max_bytes": 3 * FRAME_BYTES}], ids=["frames", "bytes"])
    def test_beyond_a_limit_the_oldest_go_and_the_newest_stay(self, limits):
        waiting = WaitingFrames(**{"max_bytes": 1 << 20, "max_frames": 100} | limits)

        gone = [waiting.put(frame(seq)) for seq in range(2, 8)]

        assert gone == [[], [], [], [2], [3], [4]]
        assert seqs(waiting.listed()) == [5, 6, 7]

    def test_room_that_was_given_back_is_there_again(self):
        waiting = WaitingFrames(max_bytes=3 * FRAME_BYTES, max_frames=100)
        for round_ in range(5):
            for seq in (2, 3, 4):
                assert waiting.put(frame(10 * round_ + seq)) == []
            waiting.take()
            waiting.give_back(is_written=False)
            waiting.take()
            waiting.give_back(is_written=True)
            waiting.drop_until(10 * round_ + 4)
            assert len(waiting) == 0

    def test_what_the_server_has_is_forgotten(self):
        waiting = WaitingFrames(max_bytes=1 << 20, max_frames=100)
        for seq in (2, 3, 4):
            waiting.put(frame(seq))

        waiting.drop_until(3)

        assert seqs(waiting.listed()) == [4]


class TestMemorySpool:
    def test_the_runs_own_record_is_held_by_the_stream(self):
        spool = MemorySpool()

        spool.append(frame(1))

        assert spool.oldest(0, 9, max_records=9, max_bytes=1 << 20).frames == []

    def test_its_room_is_known_to_the_byte(self):
        spool = MemorySpool(max_bytes=2 * FRAME_BYTES - 1)

        for seq in (2, 3):
            spool.append(frame(seq))

        assert list(spool.take_losses()) == [LostRange(3, 3, "memory_full")]

    @pytest.mark.parametrize("limits", [{"max_records": 3}, {"max_bytes": 3 * FRAME_BYTES}], ids=["records", "bytes"])
    def test_what_finds_no_room_is_named_and_an_acknowledgement_makes_room(self, limits):
        spool = MemorySpool(**limits)
        for seq in range(2, 7):
            spool.append(frame(seq))
        refused = list(spool.take_losses())
        spool.acknowledge(3, None)
        for seq in (7, 8, 9):
            spool.append(frame(seq))

        assert refused == [LostRange(seq, seq, "memory_full") for seq in (5, 6)]
        assert list(spool.take_losses()) == [LostRange(9, 9, "memory_full")]
        assert list(spool.take_losses()) == []
        assert seqs(spool.oldest(0, 99, max_records=9, max_bytes=1 << 20).frames) == [4, 7, 8]

    @pytest.mark.parametrize(
        ("after", "until", "limits", "found", "is_all"),
        [
            (0, 9, {}, [2, 3, 4, 5], True),
            (3, 9, {}, [4, 5], True),
            (0, 4, {}, [2, 3, 4], True),
            (0, 9, {"max_records": 2}, [2, 3], False),
            (0, 9, {"max_records": 4}, [2, 3, 4, 5], True),
            (0, 9, {"max_bytes": 2 * FRAME_BYTES}, [2, 3], False),
            (0, 9, {"max_bytes": 1}, [2], False),
        ],
    )
    def test_the_oldest_come_within_limits(self, after, until, limits, found, is_all):
        spool = MemorySpool()
        for seq in range(2, 6):
            spool.append(frame(seq))

        held = spool.oldest(after, until, **{"max_records": 9, "max_bytes": 1 << 20} | limits)

        assert (seqs(held.frames), held.is_all) == (found, is_all)

    def test_all_that_it_holds_is_in_memory_alone(self):
        spool = MemorySpool()
        for seq in (1, 2, 3):
            spool.append(frame(seq))

        assert spool.num_in_memory == 2, "the run's own record is held by the stream"

    def test_nothing_is_held_that_was_acknowledged(self):
        spool = MemorySpool()
        spool.acknowledge(4, None)
        spool.acknowledge(2, None)

        assert [spool.first_held(seq) for seq in (1, 5, 7)] == [5, 5, 7]
        spool.restart_after_fork()
        assert spool.first_held(1) == 1


class TestWriteSpeed:
    def test_one_slow_write_is_enough_and_a_hundred_quick_ones_in_a_row_end_it(self):
        speed = WriteSpeed()
        speed.see(0.050)
        assert not speed.is_slow
        speed.see(0.051)
        assert speed.is_slow

        for seconds in [0.001] * 99 + [0.005] + [0.001] * 99:
            speed.see(seconds)
            assert speed.is_slow, "one that was not quick begins the count anew"
        speed.see(0.001)

        assert not speed.is_slow

    def test_slow_again_counts_anew(self):
        speed = WriteSpeed()
        for seconds in [1.0] + [0.001] * 60 + [1.0] + [0.001] * 99:
            speed.see(seconds)
            assert speed.is_slow
        speed.see(0.001)
        assert not speed.is_slow
