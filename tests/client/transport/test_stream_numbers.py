"""What a stream says of itself, and what each batch holds, number by number."""

import json
import random
import zlib

import pytest

from noisescale.transport.accounts import LeftStream
from noisescale.transport.spool.frames import _frame, decode, encode, seq_of
from noisescale.transport.spool.spool import MemorySpool
from noisescale.transport.upload.stream import Stream, noted, up_to_second_run
from noisescale.transport.wire import LostRange, MetricRecord, RunRecord, to_json
from stub_server import Ledger

HUGE = 1 << 30


def make_stream(**limits):
    return Stream("run", MemorySpool(**limits), lambda: RunRecord({"project": "demo"}, {}))


def metric(number):
    return MetricRecord(number, 0.0, {"n": float(number)})


def logged(num_records, **limits):
    """A stream with its run and so many records behind it."""
    stream = make_stream(**limits)
    for number in range(num_records):
        stream.append(metric(number))
    return stream


def batch_of(stream, *, max_records=1000, max_bytes=HUGE):
    found = stream.next_batch(max_records=max_records, max_bytes=max_bytes)
    return None if found is None else (found.first_seq, found.last_seq, [seq for seq, _ in found.records])


def counts(stream):
    found = stream.delivery()
    return found.num_logged, found.num_acked, found.num_lost, found.num_waiting


def test_batches_follow_one_another_and_nothing_is_called_lost_that_has_arrived():
    stream = logged(9)

    assert [batch_of(stream, max_records=4), counts(stream)] == [(1, 4, [1, 2, 3, 4]), (10, 0, 0, 10)]
    stream.acknowledge(4)
    assert [batch_of(stream, max_records=4), counts(stream)] == [(5, 8, [5, 6, 7, 8]), (10, 4, 0, 6)]
    stream.acknowledge(8)
    assert [batch_of(stream, max_records=4), counts(stream)] == [(9, 10, [9, 10]), (10, 8, 0, 2)]
    stream.acknowledge(10)
    assert [batch_of(stream), counts(stream)] == [None, (10, 10, 0, 0)]


def test_an_acknowledgement_of_part_of_a_batch_or_of_more_than_there_is():
    stream = logged(5)
    batch_of(stream)
    stream.acknowledge(3)
    assert batch_of(stream) == (4, 6, [4, 5, 6])
    stream.acknowledge(99)
    assert counts(stream) == (6, 6, 0, 0)


def test_a_batch_without_an_answer_comes_again_unless_it_is_too_large_now_or_was_refused():
    stream = logged(5)
    first = batch_of(stream)
    stream.append(metric(5))

    assert batch_of(stream, max_records=6) == first == (1, 6, [1, 2, 3, 4, 5, 6])
    assert batch_of(stream, max_records=5) == (1, 5, [1, 2, 3, 4, 5])
    stream.split()
    assert batch_of(stream) == (1, 7, [1, 2, 3, 4, 5, 6, 7])


def test_a_batch_ends_where_its_bytes_do_and_with_it_what_it_speaks_of():
    size = len(encode(2, metric(2)))
    stream = logged(6)

    assert batch_of(stream, max_bytes=3 * size) == (1, 4, [1, 2, 3, 4])


def test_a_second_run_record_begins_a_batch_of_its_own():
    stream = logged(2)
    stream.append(RunRecord({"project": "demo"}, {"measure_every": 7}))
    stream.append(metric(9))

    assert batch_of(stream) == (1, 3, [1, 2, 3])
    stream.acknowledge(3)
    assert batch_of(stream) == (4, 5, [4, 5])


def test_losses_are_told_with_the_batch_that_they_lie_in():
    stream = logged(6, max_records=2)
    stream.next_batch(max_records=10, max_bytes=HUGE)

    found = stream.next_batch(max_records=10, max_bytes=HUGE)

    assert [(one.first, one.last, one.reason) for one in found.lost] == [(4, 7, "memory_full")]
    assert counts(stream) == (7, 0, 4, 7)


def test_what_is_given_up_while_a_batch_is_read_keeps_its_reason():
    stream = logged(4)
    spool = stream._spool
    oldest = spool.oldest

    def interrupted(*arguments, **limits):
        del spool._frames[1]
        spool.unsaid.append(LostRange(3, 3, "spool_full"))
        return oldest(*arguments, **limits)

    spool.oldest = interrupted

    found = stream.next_batch(max_records=10, max_bytes=HUGE)

    assert ([seq for seq, _ in found.records], found.lost) == ([1, 2, 4, 5], [LostRange(3, 3, "spool_full")])


@pytest.mark.parametrize(
    ("expected_seq", "is_ours", "acked"), [(0, False, 4), (1, True, 0), (5, True, 4), (8, True, 7), (9, False, 4)]
)
def test_a_stream_goes_to_any_record_that_it_has_logged_and_to_no_other(expected_seq, is_ours, acked):
    stream = logged(6)
    batch_of(stream)
    stream.acknowledge(4)

    assert stream.rewind(expected_seq) == is_ours
    assert stream.delivery().num_acked == acked


def test_what_is_trimmed_is_lost_from_the_record_that_the_server_wants():
    stream = logged(6)
    batch_of(stream)
    stream.acknowledge(4)

    assert stream.rewind(2)
    found = stream.next_batch(max_records=10, max_bytes=HUGE)

    assert [(one.first, one.last, one.reason) for one in found.lost] == [(2, 4, "trimmed")]
    assert (found.first_seq, found.last_seq, [seq for seq, _ in found.records]) == (2, 7, [5, 6, 7])
    assert stream.rewind(1)
    again = stream.next_batch(max_records=10, max_bytes=HUGE)
    assert (again.first_seq, [seq for seq, _ in again.records]) == (1, [1, 5, 6, 7])


def test_a_refused_record_is_lost_and_the_others_go_on():
    stream = logged(3)
    batch_of(stream)

    stream.reject(3)

    found = stream.next_batch(max_records=10, max_bytes=HUGE)
    assert ([seq for seq, _ in found.records], found.lost) == ([1, 2, 4], [LostRange(3, 3, "rejected")])
    assert counts(stream) == (4, 0, 1, 4)


def test_the_checksum_of_a_batch_is_that_of_its_frames_in_order():
    stream = logged(3)
    frames = [encode(1, stream._describe()), *(encode(number + 2, metric(number)) for number in range(3))]

    whole = stream.next_batch(max_records=10, max_bytes=HUGE)
    stream.acknowledge(2)
    rest = stream.next_batch(max_records=10, max_bytes=HUGE)

    assert (whole.crc32, rest.crc32) == (zlib.crc32(b"".join(frames)), zlib.crc32(b"".join(frames[2:])))


def test_what_is_given_up_while_a_conflict_is_settled_is_lost_under_its_new_number():
    stream = logged(4)
    batch_of(stream)
    stream.acknowledge(2)
    spool = stream._spool
    oldest = spool.oldest

    def interrupted(*arguments, **limits):
        [frame] = [one for one in spool._frames if seq_of(one) == 4]
        spool._frames.remove(frame)
        spool.unsaid.append(LostRange(4, 4, "spool_full"))
        return oldest(*arguments, **limits)

    spool.oldest = interrupted
    stream.start_anew()
    spool.oldest = oldest

    found = stream.next_batch(max_records=10, max_bytes=HUGE)
    assert [seq for seq, _ in found.records] == [1, 2, 4]
    assert found.lost == [LostRange(3, 3, "spool_full")]


def test_a_record_of_a_kind_that_only_a_later_release_knows_is_put_aside_and_declared_lost():
    stream = logged(2)
    spool, put_aside = stream._spool, []
    spool._frames[0] = frame = _frame(63, 2, b"{}")
    spool.quarantine = put_aside.append

    found = stream.next_batch(max_records=10, max_bytes=HUGE)

    with pytest.raises(ValueError, match="unknown kind of record 63: written by a newer version"):
        decode(frame)
    assert ([seq for seq, _ in found.records], found.lost) == ([1, 3], [LostRange(2, 2, "spool_corrupt")])
    assert put_aside == [frame]
    assert found.crc32 == zlib.crc32(encode(1, stream._describe()) + encode(3, metric(1)))


@pytest.mark.parametrize("acked", [0, 1, 2])
def test_after_a_conflict_the_rest_has_new_numbers_behind_the_run(acked):
    """Records 1 to 7: the run's, five metrics of which number 4 was refused, and one that comes afterwards."""
    stream, ledger = logged(5), Ledger()
    old = stream.stream_id
    batch_of(stream)
    if acked:
        stream.acknowledge(acked)
    batch_of(stream)
    stream.reject(4)

    stream.start_anew()
    stream.append(metric(5))
    num_logged = stream.delivery().num_logged
    while (found := stream.next_batch(max_records=2, max_bytes=HUGE)) is not None:
        ledger.accept(stream.stream_id, json.loads(to_json(found)))
        stream.acknowledge(found.last_seq)

    shift = max(0, acked - 1)
    stored = ledger.stored[stream.stream_id]
    values = [stored[seq][1]["value"] for seq in sorted(stored) if stored[seq][0] == "metrics"]
    assert stream.stream_id != old
    assert values == [0.0, 1.0, 3.0, 4.0, 5.0][shift:]
    assert ledger.lost[stream.stream_id] == {4 - shift: "rejected"}
    assert (num_logged, stream.delivery().num_lost) == (7 - shift, 1)
    assert sorted([*stored, 4 - shift]) == list(range(1, num_logged + 1))
    ledger.check()


class TestLeftBehind:
    def left(self, last_seq=5, acked_seq=0, lost=(), run_frame=None):
        frame = encode(1, RunRecord({}, {})) if run_frame is None else run_frame
        return Stream.left_behind(LeftStream("run", "its id", frame, last_seq, acked_seq, list(lost)), MemorySpool())

    @pytest.mark.parametrize(("acked_seq", "expected"), [(0, 0), (3, 3), (5, 5), (9, 5)])
    def test_it_stands_where_its_folder_says(self, acked_seq, expected):
        found = self.left(acked_seq=acked_seq, lost=[LostRange(2, 3, "disk_full")])

        assert (found.run_id, found.stream_id) == ("run", "its id")
        assert counts(found) == (5, expected, 2, 5 - expected)

    def test_what_is_neither_held_nor_declared_was_damaged(self):
        found = self.left(lost=[LostRange(3, 3, "disk_full")]).next_batch(max_records=9, max_bytes=HUGE)

        assert [seq for seq, _ in found.records] == [1]
        assert [(one.first, one.last, one.reason) for one in found.lost] == [
            (2, 2, "spool_corrupt"),
            (3, 3, "disk_full"),
            (4, 5, "spool_corrupt"),
        ]

    def test_the_runs_own_record_is_lost_where_it_was_damaged_everywhere(self):
        damaged = self.left(run_frame=b"", lost=[LostRange(1, 2, "x")])
        whole = self.left(lost=[LostRange(1, 2, "x")])

        assert (counts(damaged)[2], counts(whole)[2]) == (2, 1)

    def test_what_was_lost_before_the_account_is_not_called_stored(self):
        found = self.left(acked_seq=4, run_frame=b"", lost=[LostRange(1, 2, "x"), LostRange(5, 5, "y")]).account()

        assert (found.num_logged, found.num_stored, found.num_kept) == (5, 2, 0)
        assert found.num_lost_by_reason == {"x": 2, "y": 1}

    def test_nothing_is_logged_to_it(self):
        empty = Stream.left_behind(LeftStream("run", None, b"", 0, 0, []), MemorySpool())

        with pytest.raises(AssertionError, match="another process"):
            empty.append(metric(0))


def test_only_the_newest_sixteen_notes_are_kept():
    many = RunRecord({}, {"notes": [str(number) for number in range(16)]})

    assert noted(many, None) is many
    assert noted(many, "new").stream["notes"] == [*map(str, range(1, 16)), "new"]
    assert noted(RunRecord({}, {}), "new").stream["notes"] == ["new"]
    assert noted(RunRecord({}, {"notes": None}), "new").stream["notes"] == ["new"]


def test_at_most_one_run_record_is_in_a_batch():
    run, other = encode(1, RunRecord({}, {})), encode(2, metric(0))

    assert list(up_to_second_run([other, run, other, run, other])) == [other, run, other]
    assert list(up_to_second_run([other, other])) == [other, other]


def test_a_signal_that_logs_while_records_are_numbered_comes_after_them():
    stream = logged(2)
    batch_of(stream)
    stream.acknowledge(3)
    rng = random.Random(0)
    append = stream._spool.append
    inner = []

    def interrupted(frame, seq):
        append(frame, seq)
        if len(inner) < 3 and rng.random() < 0.5:
            inner.append(stream.append(metric(100 + len(inner))))

    stream._spool.append = interrupted
    waiting = [stream.append(metric(number)) for number in range(5)]

    assert batch_of(stream) == (4, 11, list(range(4, 12)))
    assert waiting[-1] == 8
    assert 0 < inner[0] <= inner[1] <= inner[2] < 8, "how many wait, as far as they have numbers"


def test_what_is_on_its_way_is_not_declared_lost_meanwhile():
    """The server may have stored it: then it would be both."""
    stream = logged(4)
    batch_of(stream, max_records=3)
    stream._spool.unsaid += [LostRange(2, 3, "memory_full"), LostRange(5, 5, "memory_full")]

    stream.append(metric(4))

    assert stream._lost == [LostRange(5, 5, "memory_full")]


def test_what_signals_log_meanwhile_keeps_its_order():
    stream = logged(0)
    append, others = stream._spool.append, [7, 8, 9]

    def interrupted(frame, seq):
        append(frame, seq)
        while others:
            stream.append(metric(others.pop(0)))

    stream._spool.append = interrupted
    stream.append(metric(6))

    sent = stream.next_batch(max_records=1000, max_bytes=HUGE)
    assert [record.step for seq, record in sent.records if seq > 1] == [6, 7, 8, 9]


def test_a_run_record_that_is_damaged_everywhere_was_not_trimmed():
    """Of a stream whose files hold none: a server that begins anew is told the true reason."""

    class FromTheFourthOn(MemorySpool):
        def first_held(self, seq):
            return max(seq, 4)

    stream = Stream.left_behind(LeftStream("run", "stream", b"", 5, 3, []), FromTheFourthOn())

    assert stream.rewind(1)
    before = stream.account().num_lost_by_reason
    stream.next_batch(max_records=10, max_bytes=HUGE)

    assert before == {"trimmed": 2}
    assert stream.account().num_lost_by_reason == {"trimmed": 2, "spool_corrupt": 3}
