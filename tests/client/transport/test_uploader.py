"""Delivery against a server that is down, slow, wrong, or forgetful; the ledger stays true."""

import os
import threading
import time

import pytest

from noisescale.transport.spool.spool import MemorySpool
from noisescale.transport.upload.answers import Answer
from noisescale.transport.upload.stream import Stream
from noisescale.transport.upload.uploader import Uploader
from noisescale.transport.wire import FinishRecord, Measurement, RunRecord
from stub_server import FakeServer, answering, no_answer, reply_lost

RUN_NOT_FOUND = {"type": "/errors/run-not-found"}


def make_row(step):
    return Measurement(step, 1, 0.0, None, None, 0, None, *[None] * 5, None, 0, None, 0)


class Sender:
    """A stream and its uploader, quick enough for tests."""

    def __init__(self, *faults, max_records=1000):
        self.server = FakeServer(*faults)
        self.faults = []
        self.stream = Stream("run", MemorySpool(max_records=max_records), lambda: RunRecord({}, {}))
        self.uploader = Uploader(
            self.stream, self.server, self.faults.append, interval_seconds=0.01, first_backoff_seconds=0.01
        )

    def log(self, *steps):
        for step in steps:
            self.uploader.notify(self.stream.append(make_row(step)))

    @property
    def ledger(self):
        return self.server.ledger


@pytest.fixture
def make_sender():
    senders = []

    def make(*faults, **limits):
        senders.append(Sender(*faults, **limits))
        return senders[-1]

    yield make
    for sender in senders:
        sender.uploader.close()
        assert sender.faults == []


def test_everything_arrives_once_and_in_order(make_sender):
    sender = make_sender(max_records=10_000)

    sender.log(*range(2500))
    sender.uploader.notify(sender.stream.append(FinishRecord("finished", 0.0)))

    assert sender.uploader.flush(10)
    assert sender.ledger.steps() == list(range(2500))
    assert all(len(body["measurements"]["seq"]) <= 1000 for body in sender.server.bodies if "measurements" in body)
    sender.ledger.check()


@pytest.mark.parametrize(
    "faults",
    [
        [no_answer] * 3,
        [reply_lost],
        [reply_lost, no_answer, reply_lost],
        [answering(500), answering(502), answering(504)],
        [answering(503, retry_after="0.01")],
        [answering(429, retry_after="0")],
        [answering(200)],
        [answering(200, {"acked_seq": 0})],
        [answering(302)],
        [answering(404)],
        [answering(404, RUN_NOT_FOUND)],
        [answering(409, {"type": "/errors/stream-conflict"})],
        [answering(409, {"type": "/errors/stream-gap", "expected_seq": 1})],
    ],
    ids=lambda faults: "-".join(getattr(fault, "__name__", "?") for fault in faults),
)
def test_a_server_that_fails_for_a_while_gets_everything_in_the_end(make_sender, faults):
    sender = make_sender(*faults)

    sender.log(*range(20))
    deadline = time.monotonic() + 5
    while sender.stream.delivery().num_waiting and time.monotonic() < deadline:
        time.sleep(0.01)

    assert sender.ledger.steps()[-20:] == list(range(20))
    assert sender.stream.delivery().num_lost == 0
    sender.ledger.check()


def test_a_gap_is_answered_by_going_back(make_sender):
    sender = make_sender()
    sender.log(*range(5))
    assert sender.uploader.flush(5)
    stream_id = sender.stream.stream_id
    sender.ledger.acked[stream_id] = 2
    del sender.ledger.crc32[stream_id]
    for seq in (3, 4, 5, 6):
        del sender.ledger.stored[stream_id][seq]

    sender.log(5)

    assert sender.uploader.flush(5)
    assert sender.ledger.steps() == [0, 5]
    assert set(sender.ledger.lost[stream_id].values()) == {"trimmed"}
    sender.ledger.check()


def test_a_run_that_the_server_lost_is_described_again(make_sender):
    sender = make_sender()
    sender.log(0, 1)
    assert sender.uploader.flush(5)
    stream_id = sender.stream.stream_id
    sender.ledger.__init__()
    sender.server.faults.append(answering(404, RUN_NOT_FOUND))
    num_before = len(sender.server.bodies)

    sender.log(2)

    assert sender.uploader.flush(5)
    assert [body["first_seq"] for body in sender.server.bodies[num_before:]] == [4, 1]
    assert sender.ledger.stored[stream_id][1][0] == "run"
    assert sender.ledger.steps() == [2]
    sender.ledger.check()


@pytest.mark.parametrize(("status", "problem"), [(413, "body-too-large"), (422, "invalid-input")])
def test_a_refused_record_is_found_by_halving_and_declared_lost(make_sender, status, problem):
    def refuse_step_13(ledger, stream_id, batch):
        if 13 in batch.get("measurements", {"step": []})["step"]:
            return Answer(status, {"type": f"/errors/{problem}", "detail": "step 13"})
        return ledger.accept(stream_id, batch)

    sender = make_sender(*[refuse_step_13] * 100)

    sender.log(*range(40))

    assert sender.uploader.flush(5)
    assert sender.ledger.steps() == [step for step in range(40) if step != 13]
    assert sender.ledger.lost[sender.stream.stream_id] == {15: "rejected"}
    sender.ledger.check()


def test_of_records_that_the_server_sets_aside_the_first_is_named(make_sender, caplog):
    def set_aside(ledger, stream_id, batch):
        refused = [{"seq": seq, "code": "value_type"} for seq in (2, 3)]
        return Answer(200, {**ledger.accept(stream_id, batch).body, "rejected": refused})

    sender = make_sender(*[set_aside] * 5)

    sender.log(*range(2))

    assert sender.uploader.flush(5)
    assert "refused 2 records, record 2 first: {'seq': 2, 'code': 'value_type'}" in caplog.text


def test_a_run_that_is_refused_waits_for_people_with_a_sentence(make_sender, caplog):
    refusal = {"type": "/errors/invalid-input", "detail": "project: must not be blank"}
    sender = make_sender(*[answering(422, refusal)] * 50)

    sender.log(*range(3))

    assert not sender.uploader.flush(5), "at once, as the server has said that it takes nothing for a minute"
    assert "must not be blank" in sender.uploader.trouble
    assert "must not be blank" in caplog.text
    assert sender.uploader.stop_reason is None


def test_a_deleted_run_stops_the_upload(make_sender):
    sender = make_sender(answering(410, {"type": "/errors/run-deleted", "detail": "run was deleted"}))

    sender.log(0)

    assert not sender.uploader.flush(5)
    assert "deleted" in sender.uploader.stop_reason


def test_a_full_memory_is_declared_lost(make_sender):
    sender = make_sender(*[no_answer] * 3, max_records=10)

    sender.log(*range(50))
    while sender.server.faults:
        time.sleep(0.01)

    assert sender.uploader.flush(5)
    assert sender.ledger.acked[sender.stream.stream_id] == 51
    assert set(sender.ledger.lost[sender.stream.stream_id].values()) == {"memory_full"}
    sender.ledger.check()


@pytest.mark.thorough
def test_what_the_server_asks_to_wait_is_waited_also_by_flush(make_sender):
    sender = make_sender(answering(503, {"type": "/errors/database-unreachable"}, retry_after="0.4"))
    start = time.monotonic()
    sender.log(0)
    while not sender.uploader.has_reached_server:
        time.sleep(0.005)
    time.sleep(0.05)

    assert sender.uploader.flush(5)
    assert time.monotonic() - start >= 0.4


@pytest.mark.thorough
def test_flush_gives_up_at_its_time_limit(make_sender):
    sender = make_sender(answering(200, {"acked_seq": 1}), *[answering(500)] * 1000)
    sender.log(0)
    while not sender.uploader.has_reached_server:
        time.sleep(0.005)
    start = time.monotonic()

    assert not sender.uploader.flush(0.3)
    assert 0.25 < time.monotonic() - start < 1.0


def test_flush_does_not_wait_for_a_server_that_never_answered(make_sender):
    sender = make_sender(*[no_answer] * 1000)
    sender.log(0)
    start = time.monotonic()

    assert not sender.uploader.flush(10)
    assert time.monotonic() - start < 1.0


def test_flush_without_a_record_has_nothing_to_wait_for(make_sender):
    sender = make_sender()

    assert sender.uploader.flush(10)
    assert sender.server.bodies == []


def test_our_own_fault_while_delivering_is_told_and_tried_again():
    def broken(ledger, stream_id, batch):
        raise ZeroDivisionError("ours")

    sender = Sender(broken)
    sender.log(0)
    while not sender.faults:
        time.sleep(0.005)

    assert sender.uploader.flush(5)
    sender.uploader.close()
    assert [type(fault) for fault in sender.faults] == [ZeroDivisionError]


def test_one_complaint_a_minute(make_sender, caplog):
    sender = make_sender(*[no_answer] * 5)

    sender.log(0)
    while sender.server.faults:
        time.sleep(0.005)
    sender.uploader.flush(5)

    assert caplog.text.count("training goes on") == 1


def test_logging_never_waits_for_the_network(make_sender):
    """A cliff guard: the server hangs, the calls take microseconds all the same."""
    release = threading.Event()

    def hangs(ledger, stream_id, batch):
        release.wait(10)
        return ledger.accept(stream_id, batch)

    sender = make_sender(hangs)
    sender.log(0)
    while not sender.server.bodies:
        time.sleep(0.005)
    start = time.perf_counter()

    sender.log(*range(1, 501))
    seconds = time.perf_counter() - start
    release.set()

    assert seconds < 500 * 1e-3
    assert sender.uploader.flush(5)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_a_stream_of_its_own_and_none_if_it_logs_nothing(make_sender):
    sender = make_sender()
    sender.log(0)
    assert sender.uploader.flush(5)
    parent_id = sender.stream.stream_id
    reading, writing = os.pipe()

    child = os.fork()
    if child == 0:
        status = 1
        try:
            silent = sender.stream.stream_id is None and sender.uploader.flush(1)
            sender.log(7)
            done = sender.uploader.flush(5)
            own_id = sender.stream.stream_id
            steps = [row["step"] for kind, row in sender.ledger.stored[own_id].values() if kind == "measurements"]
            good = silent and done and own_id != parent_id and steps == [7] and sender.server.was_forgotten
            os.write(writing, b"good" if good else b"bad")
            status = 0
        finally:
            os._exit(status)
    os.waitpid(child, 0)
    os.close(writing)

    assert os.read(reading, 10) == b"good"
    os.close(reading)
    sender.log(1)
    assert sender.uploader.flush(5)
    assert sender.stream.stream_id == parent_id
    assert sender.ledger.steps() == [0, 1]
