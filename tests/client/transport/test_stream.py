"""The ledger: every number is delivered or declared lost, whatever happens."""

import contextlib
import json
import random

import pytest

from noisescale.transport.accounts import Account
from noisescale.transport.spool.frames import encode
from noisescale.transport.spool.spool import MemorySpool
from noisescale.transport.upload import stream as stream_module
from noisescale.transport.upload.stream import Stream
from noisescale.transport.wire import MetricRecord, RunRecord, to_json
from stub_server import Ledger


def make_stream(**limits):
    return Stream("run", MemorySpool(**limits), lambda: RunRecord({"project": "demo"}, {}))


def metric(number):
    return MetricRecord(number, 0.0, {"n": float(number)})


def post(stream, ledger, *, max_records=1000):
    """Deliver one batch; answers the status, or None when nothing waits."""
    batch = stream.next_batch(max_records=max_records, max_bytes=1 << 20)
    if batch is None:
        return None
    answer = ledger.accept(stream.stream_id, json.loads(to_json(batch)))
    if answer.status == 200:
        stream.acknowledge(answer.body["acked_seq"])
    return answer.status


def numbers(ledger, stream):
    return [row["value"] for kind, row in ledger.stored[stream.stream_id].values() if kind == "metrics"]


def test_a_stream_that_logs_nothing_is_nothing():
    stream = make_stream()

    assert stream.next_batch(max_records=10, max_bytes=1000) is None
    assert stream.stream_id is None


def test_the_run_comes_first_and_numbers_have_no_gap():
    stream, ledger = make_stream(), Ledger()

    for number in range(25):
        stream.append(metric(number))
    while post(stream, ledger, max_records=7):
        pass

    assert numbers(ledger, stream) == list(range(25))
    assert ledger.acked == {stream.stream_id: 26}
    assert stream.delivery().num_waiting == 0


def test_what_finds_no_room_is_declared_lost():
    stream, ledger = make_stream(max_records=5), Ledger()

    for number in range(12):
        stream.append(metric(number))
    post(stream, ledger)
    stream.append(metric(99))
    post(stream, ledger)

    assert numbers(ledger, stream) == [0, 1, 2, 3, 4, 99]
    assert ledger.lost[stream.stream_id] == dict.fromkeys(range(7, 14), "memory_full")
    assert stream.delivery().num_lost == 7
    ledger.check()


def test_room_is_limited_in_bytes_too():
    size = len(encode(2, metric(0)))
    stream, ledger = make_stream(max_bytes=2 * size), Ledger()

    for number in range(4):
        stream.append(metric(number))
    post(stream, ledger)

    assert numbers(ledger, stream) == [0, 1]
    assert ledger.lost[stream.stream_id] == {4: "memory_full", 5: "memory_full"}


def test_a_record_that_no_frame_holds_is_declared_lost_and_told():
    stream, ledger = make_stream(), Ledger()

    with pytest.raises(ValueError, match="JSON compliant"):
        stream.append(MetricRecord(0, 0.0, {"n": float("nan")}))
    stream.append(metric(1))
    post(stream, ledger)

    assert ledger.lost[stream.stream_id] == {2: "not_encodable"}
    ledger.check()


def test_a_lost_reply_is_sent_again_and_stored_once():
    stream, ledger = make_stream(), Ledger()
    stream.append(metric(0))
    ledger.accept(
        stream.append(metric(1)) and stream.stream_id,
        json.loads(to_json(stream.next_batch(max_records=10, max_bytes=1 << 20))),
    )

    stream.append(metric(2))
    while post(stream, ledger):
        pass

    assert numbers(ledger, stream) == [0, 1, 2]
    ledger.check()


def test_a_batch_without_an_answer_comes_again_as_it_was():
    """The server may have stored it: other content under the same numbers would be a conflict."""
    stream = make_stream(max_records=4)
    stream.append(metric(0))
    first = stream.next_batch(max_records=10, max_bytes=1 << 20)

    for number in range(1, 9):
        stream.append(metric(number))
    again = stream.next_batch(max_records=10, max_bytes=1 << 20)

    assert (again.first_seq, again.last_seq, again.crc32, again.lost) == (1, 2, first.crc32, first.lost)


def test_a_server_that_went_back_gets_what_is_held_and_the_rest_declared_trimmed():
    stream, ledger = make_stream(), Ledger()
    for number in range(5):
        stream.append(metric(number))
    post(stream, ledger)
    restored = Ledger()
    restored.acked[stream.stream_id] = 3
    restored.stored[stream.stream_id] = {1: ("run", {}), 2: ("metrics", {"value": 0.0}), 3: ("metrics", {"value": 1.0})}
    stream.append(metric(5))

    status = post(stream, restored)
    assert status == 409
    assert stream.rewind(4)
    post(stream, restored)

    assert restored.lost[stream.stream_id] == {4: "trimmed", 5: "trimmed", 6: "trimmed"}
    assert numbers(restored, stream) == [0, 1, 5]
    restored.check()


def test_a_server_that_forgot_the_stream_gets_the_run_record_again():
    stream = make_stream()
    for number in range(3):
        stream.append(metric(number))
    post(stream, Ledger())
    fresh = Ledger()
    stream.append(metric(3))

    assert stream.rewind(1)
    post(stream, fresh)

    assert [kind for kind, _ in fresh.stored[stream.stream_id].values()] == ["run", "metrics"]
    assert fresh.lost[stream.stream_id] == {2: "trimmed", 3: "trimmed", 4: "trimmed"}
    fresh.check()


def test_a_server_ahead_of_us_is_believed_up_to_what_was_logged():
    stream = make_stream()
    for number in range(3):
        stream.append(metric(number))

    assert stream.rewind(3)
    assert stream.next_batch(max_records=10, max_bytes=1 << 20).first_seq == 3
    assert not stream.rewind(100)


def test_a_conflict_takes_the_rest_into_a_new_stream():
    stream, ledger = make_stream(max_records=6), Ledger()
    for number in range(4):
        stream.append(metric(number))
    post(stream, ledger, max_records=3)
    for number in range(4, 12):
        stream.append(metric(number))
    old_id = stream.stream_id

    stream.start_anew()
    post(stream, ledger)

    assert stream.stream_id != old_id
    assert numbers(ledger, stream) == [2, 3, 4, 5, 6, 7]
    assert len(ledger.lost[stream.stream_id]) == 4
    assert stream.delivery().num_waiting == 0
    ledger.check()


def test_a_forked_child_leaves_the_parents_records_to_the_parent():
    stream = make_stream()
    stream.append(metric(0))
    parent_id = stream.stream_id

    stream.restart_after_fork()
    stream.append(metric(1))

    batch = stream.next_batch(max_records=10, max_bytes=1 << 20)
    assert stream.stream_id != parent_id
    assert [record for _, record in batch.records][1:] == [metric(1)]


def test_a_record_logged_while_logging_comes_after():
    """A destructor or a signal handler may log while this thread is inside append."""
    stream, ledger = make_stream(), Ledger()
    spool = stream._spool
    append = spool.append

    def append_and_log(frame, seq):
        spool.append = append
        stream.append(metric(2))
        return append(frame, seq)

    stream.append(metric(0))
    spool.append = append_and_log
    stream.append(metric(1))
    post(stream, ledger)

    assert numbers(ledger, stream) == [0, 1, 2]


@pytest.mark.parametrize("seed", range(20))
def test_the_ledger_stays_true_under_random_faults(seed):
    generator = random.Random(seed)
    stream, ledger = make_stream(max_records=30), Ledger()
    for number in range(400):
        stream.append(metric(number))
        event = generator.random()
        if event < 0.1:
            post(stream, ledger, max_records=generator.randint(1, 40))
        elif event < 0.13:
            batch = stream.next_batch(max_records=9, max_bytes=1 << 20)
            if batch is not None:
                ledger.accept(stream.stream_id, json.loads(to_json(batch)))  # the reply is lost
        elif event < 0.15:
            batch = stream.next_batch(max_records=1, max_bytes=1 << 20)
            if batch is not None and batch.first_seq > 1 and batch.records:
                stream.reject(batch.records[0][0])
        elif event < 0.17:
            stream.start_anew()
    while post(stream, ledger):
        pass

    ledger.check()
    assert stream.delivery().num_waiting == 0
    assert ledger.acked[stream.stream_id] == stream.delivery().num_logged
    assert numbers(ledger, stream) == sorted(set(numbers(ledger, stream)))


def test_a_record_may_be_as_large_as_a_frame_may_be_and_no_larger(monkeypatch):
    monkeypatch.setattr(stream_module, "MAX_FRAME_BYTES", len(encode(2, metric(0))))
    stream, ledger = make_stream(), Ledger()

    stream.append(metric(0))
    stream.append(MetricRecord(0, 0.0, {"nn": 0.0}))
    post(stream, ledger)

    assert numbers(ledger, stream) == [0]
    assert ledger.lost[stream.stream_id] == {3: "too_large"}


def test_the_account_counts_a_lost_record_once_whether_the_server_knows_of_it_or_not():
    stream, ledger = make_stream(), Ledger()
    stream.append(metric(0))
    with contextlib.suppress(TypeError):
        stream.append(MetricRecord(0, 0.0, {"n": object()}))
    before = stream.account()

    post(stream, ledger)
    stream.append(metric(1))

    lost = {"not_encodable": 1}
    assert before == Account(num_logged=3, num_stored=0, num_set_aside=0, num_kept=2, num_lost_by_reason=lost)
    assert stream.account() == Account(num_logged=4, num_stored=2, num_set_aside=0, num_kept=1, num_lost_by_reason=lost)


def test_a_full_batch_without_an_answer_comes_again_with_the_losses_behind_it():
    stream = make_stream()
    stream.append(metric(0))
    with contextlib.suppress(TypeError):
        stream.append(MetricRecord(0, 0.0, {"n": object()}))
    first = stream.next_batch(max_records=2, max_bytes=1 << 20)
    stream.append(metric(1))

    again = stream.next_batch(max_records=2, max_bytes=1 << 20)

    assert (first.first_seq, first.last_seq) == (1, 3)
    assert (again.first_seq, again.last_seq, again.crc32) == (1, 3, first.crc32)
