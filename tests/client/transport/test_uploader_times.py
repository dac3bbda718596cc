"""When the uploader sends, hurries and holds back; nothing here waits for the intervals of a real job."""

import random
import threading
import time

import pytest

from noisescale.transport.spool.spool import MemorySpool
from noisescale.transport.upload.answers import Answer
from noisescale.transport.upload.pace import Heartbeat
from noisescale.transport.upload.stream import Stream
from noisescale.transport.upload.uploader import Uploader
from noisescale.transport.wire import Measurement, RunRecord
from noisescale_core.errors import TransportError
from stub_server import FakeServer, answering, no_answer

A_MINUTE = 60.0


def make_row(step):
    return Measurement(step, 1, 0.0, None, None, 0, None, *[None] * 5, None, 0, None, 0)


class Sender:
    """A stream and its uploader, which waits a minute for company."""

    def __init__(self, *faults, interval_seconds=A_MINUTE, **options):
        self.server = FakeServer(*faults)
        self.faults = []
        self.stream = Stream("run", MemorySpool(), lambda: RunRecord({}, {}))
        self.uploader = Uploader(
            self.stream, self.server, self.faults.append, interval_seconds=interval_seconds, **options
        )

    def log(self, *steps):
        for step in steps:
            self.uploader.notify(self.stream.append(make_row(step)))

    @property
    def steps(self):
        return self.server.ledger.steps()


@pytest.fixture
def make_sender():
    senders = []

    def make(*faults, **options):
        senders.append(Sender(*faults, **options))
        return senders[-1]

    yield make
    for sender in senders:
        sender.uploader.close()
        assert sender.faults == []


def wait_until(is_so, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.thorough
def test_a_record_waits_for_company_until_its_time(make_sender):
    sender = make_sender(interval_seconds=0.3)

    sender.log(0)
    time.sleep(0.05)
    early = len(sender.server.bodies)
    wait_until(lambda: sender.steps == [0])

    assert early == 0


def test_a_full_batch_does_not_wait_for_company(make_sender):
    sender = make_sender()

    sender.log(*range(1_500))

    wait_until(lambda: len(sender.steps) >= 999)


@pytest.mark.thorough
def test_a_flush_hurries_and_afterwards_records_wait_again(make_sender):
    sender = make_sender()
    sender.log(0)
    start = time.monotonic()

    assert sender.uploader.flush(20)
    took = time.monotonic() - start
    time.sleep(0.3)  # until its thread waits again
    sender.log(1)
    time.sleep(0.3)

    assert took < 10
    assert sender.steps == [0]


def test_a_failure_is_followed_by_pauses_that_double_up_to_a_minute_and_begin_anew(make_sender, monkeypatch):
    asked = []
    monkeypatch.setattr(random, "uniform", lambda low, high: asked.append((low, high)) or 0.0)
    sender = make_sender(*[no_answer] * 9, interval_seconds=0.001)

    sender.log(0)
    wait_until(lambda: sender.steps == [0])
    first = list(asked)
    sender.server.faults.append(no_answer)
    sender.log(1)
    wait_until(lambda: sender.steps == [0, 1])

    assert first == [(0, longest) for longest in (0.5, 1, 2, 4, 8, 16, 32, 60, 60)]
    assert asked[9:] == [(0, 0.5)]


def test_a_thousand_failures_are_no_overflow(make_sender, monkeypatch):
    asked = []
    monkeypatch.setattr(random, "uniform", lambda low, high: asked.append(high) or 0.0)
    sender = make_sender(*[no_answer] * 1_100, interval_seconds=0.0)

    sender.log(0)
    wait_until(lambda: sender.steps == [0], seconds=30)

    assert asked[-1] == 60


@pytest.mark.thorough
def test_a_pause_is_waited(make_sender, monkeypatch):
    monkeypatch.setattr(random, "uniform", lambda low, high: 0.3)
    sender = make_sender(no_answer, interval_seconds=0.001)
    start = time.monotonic()

    sender.log(0)
    wait_until(lambda: sender.steps == [0])

    assert time.monotonic() - start >= 0.3


def test_a_flush_cuts_our_own_pause_short(make_sender, monkeypatch):
    monkeypatch.setattr(random, "uniform", lambda low, high: A_MINUTE)
    sender = make_sender(interval_seconds=0.001)
    sender.log(0)
    wait_until(lambda: sender.steps == [0])
    sender.server.faults.append(no_answer)
    sender.log(1)
    wait_until(lambda: len(sender.server.bodies) == 2)
    start = time.monotonic()

    assert sender.uploader.flush(20)

    assert time.monotonic() - start < 10
    assert sender.steps == [0, 1]


def test_a_flush_waits_as_long_as_the_server_has_asked_for(make_sender):
    sender = make_sender(interval_seconds=0.001)
    sender.log(0)
    wait_until(lambda: sender.steps == [0])
    sender.server.faults.append(answering(429, {"type": "/errors/too-many-batches"}, retry_after="60"))
    sender.log(1)
    wait_until(lambda: len(sender.server.bodies) == 2)

    assert not sender.uploader.flush(0.3)

    assert len(sender.server.bodies) == 2


def test_a_flush_of_nothing_returns_at_once(make_sender):
    start = time.monotonic()

    assert make_sender().uploader.flush(30)

    assert time.monotonic() - start < 5


@pytest.mark.parametrize("keeps_connection", [False, True])
def test_closed_its_thread_ends_at_once_and_gives_back_its_own_connection(make_sender, keeps_connection):
    sender = make_sender(keeps_connection=keeps_connection)
    sender.log(0)
    thread = sender.uploader._thread
    was_alive = thread.is_alive()
    start = time.monotonic()

    sender.uploader.close()
    wait_until(lambda: not thread.is_alive())

    assert was_alive
    assert time.monotonic() - start < 5
    assert sender.server.is_closed != keeps_connection


def test_a_closed_one_does_not_begin(make_sender):
    sender = make_sender()
    sender.uploader.close()

    sender.log(0)

    assert sender.uploader._thread is None


def test_one_thread_delivers_whoever_logs(make_sender):
    sender = make_sender(interval_seconds=0.001)
    sender.log(0)
    thread = sender.uploader._thread

    sender.log(*range(1, 50))
    wait_until(lambda: sender.steps == list(range(50)))

    assert sender.uploader._thread is thread


def test_who_logs_while_another_starts_the_thread_does_not_wait_for_it(make_sender):
    sender = make_sender()
    assert sender.uploader._start_once.acquire(blocking=False)

    logging = threading.Thread(target=sender.log, args=(0,), daemon=True)
    logging.start()
    logging.join(5.0)

    assert not logging.is_alive()
    sender.uploader._start_once.release()


def test_our_own_fault_is_followed_by_a_pause_too(make_sender, monkeypatch):
    monkeypatch.setattr(random, "uniform", lambda low, high: A_MINUTE)
    sender = make_sender(interval_seconds=0.001)
    tried = []

    def fail(**_):
        tried.append(time.monotonic())
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(sender.stream, "next_batch", fail)
    sender.log(0)
    wait_until(lambda: sender.faults)
    time.sleep(0.2)
    sender.faults.clear()

    assert len(tried) == 1


def test_a_flush_hurries_a_thread_that_is_about_to_fail(make_sender, monkeypatch):
    monkeypatch.setattr(random, "uniform", lambda low, high: 0.0)
    sender = make_sender()
    sender.log(0)
    assert sender.uploader.flush(20)
    posting, may_fail = threading.Event(), threading.Event()

    def fail_late(ledger, stream_id, batch):
        posting.set()
        assert may_fail.wait(20)
        raise TransportError("no answer")

    sender.server.faults.append(fail_late)
    sender.log(*range(1, 1_000))
    sender.log(1_000)  # a full batch: it is sent at once
    assert posting.wait(20)
    start = time.monotonic()
    threading.Timer(0.1, may_fail.set).start()

    assert sender.uploader.flush(20)

    assert time.monotonic() - start < 10


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (answering(401, {"type": "/errors/not-authenticated", "detail": "who are you"}), "trying again in 60 s"),
        (answering(503, {"detail": "busy"}), "records wait, training goes on"),
        (no_answer, "records wait, training goes on"),
    ],
)
def test_why_records_wait_is_said(make_sender, caplog, fault, said):
    sender = make_sender(fault, interval_seconds=0.001)

    sender.log(0)
    wait_until(lambda: said in caplog.text)

    assert "http://fake" in caplog.text


@pytest.mark.parametrize("status", [429, 500, 503, None])
def test_a_server_that_fails_while_it_is_asked_is_asked_again(make_sender, monkeypatch, status):
    monkeypatch.setattr(random, "uniform", lambda low, high: 0.0)
    sender = make_sender(interval_seconds=0.001)
    sender.log(0)
    wait_until(lambda: sender.steps == [0])
    asked = []
    post = sender.server.post_heartbeat

    def fail_once(stream_id):
        asked.append(stream_id)
        if len(asked) == 1:
            return no_answer(None, None, None) if status is None else Answer(status, {})
        return post(stream_id)

    sender.server.post_heartbeat = fail_once
    sender.server.ledger.epoch = "another"
    sender.uploader.ask_where_it_stands("another")

    wait_until(lambda: len(asked) >= 2)
    assert sender.uploader.num_failures == 1


def test_the_answer_to_a_batch_puts_the_next_heartbeat_off(make_sender, monkeypatch):
    heard = []
    monkeypatch.setattr(Heartbeat, "was_heard", lambda heartbeat: heard.append(heartbeat))
    sender = make_sender(interval_seconds=0.001)

    sender.log(0)
    wait_until(lambda: sender.steps == [0])
    wait_until(lambda: heard)

    assert sender.server.heartbeats == []


def test_the_halves_of_a_batch_that_the_server_refused_go_without_a_pause(make_sender):
    def refuse_step_5(ledger, stream_id, batch):
        num_pauses_before.append(len(pauses))
        if 5 in batch.get("measurements", {"step": []})["step"]:
            return Answer(422, {"type": "/errors/invalid-input", "detail": "step 5"})
        return ledger.accept(stream_id, batch)

    sender = make_sender(*[refuse_step_5] * 100, interval_seconds=0.1)
    pauses, num_pauses_before = [], []
    pause = sender.uploader._pause
    sender.uploader._pause = lambda: pauses.append(pause())

    sender.log(*range(8))
    wait_until(lambda: sender.steps == [0, 1, 2, 3, 4, 6, 7])

    assert sender.server.ledger.lost[sender.stream.stream_id] == {7: "rejected"}
    assert set(num_pauses_before) == {1}


def test_a_conflict_is_followed_by_a_short_pause_and_each_further_one_by_a_longer(make_sender, monkeypatch):
    asked = []
    monkeypatch.setattr(random, "uniform", lambda low, high: asked.append(high) or 0.0)
    sender = make_sender(*[answering(409, {"type": "/errors/stream-conflict"})] * 4, interval_seconds=0.001)

    sender.log(0)
    wait_until(lambda: sender.steps == [0])

    assert asked == [0.5, 1, 2, 4]


def test_a_smaller_batch_is_tried_soon_and_a_single_record_after_pauses_that_double(make_sender, monkeypatch):
    asked = []
    monkeypatch.setattr(random, "uniform", lambda low, high: asked.append(high) or 0.0)
    sender = make_sender(*[answering(413)] * 6, interval_seconds=0.001)

    sender.log(0)
    wait_until(lambda: sender.steps == [0])

    assert asked == [0.5, 0.5, 0.5, 1, 0.5, 2]


def test_failures_are_counted_one_by_one(make_sender, monkeypatch):
    monkeypatch.setattr(random, "uniform", lambda low, high: 0.0)
    sender = make_sender(*[no_answer] * 3, interval_seconds=0.001)

    sender.log(0)
    wait_until(lambda: sender.steps == [0])

    assert sender.uploader.num_failures == 3


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (answering(429, {"type": "/errors/too-many-batches", "epoch": "another"}), ["another", "first"]),
        (answering(200, {"acked_seq": 0, "rejected": [], "epoch": "another"}), ["first"]),
        (answering(500, {"epoch": "another"}), ["first"]),
    ],
    ids=["our own problem", "an account that is not believed", "a proxy"],
)
def test_only_who_is_believed_says_which_life_the_data_are_in(make_sender, monkeypatch, fault, expected):
    monkeypatch.setattr(random, "uniform", lambda low, high: 0.0)
    epochs = []
    sender = make_sender(fault, interval_seconds=0.001, on_epoch=epochs.append)

    sender.log(0)
    wait_until(lambda: sender.steps == [0] and sender.stream.epoch == "first")

    assert epochs == expected


def test_a_flush_hurries_what_is_left_behind_a_batch_that_is_on_its_way(make_sender):
    sender = make_sender()
    sender.log(0)
    assert sender.uploader.flush(20)
    posting, may_go_on = threading.Event(), threading.Event()

    def answer_late(ledger, stream_id, batch):
        posting.set()
        assert may_go_on.wait(20)
        return ledger.accept(stream_id, batch)

    sender.server.faults.append(answer_late)
    sender.log(*range(1, 1_001))  # a full batch: it is sent at once
    assert posting.wait(20)
    sender.log(*range(1_001, 1_500))
    start = time.monotonic()
    threading.Timer(0.1, may_go_on.set).start()

    assert sender.uploader.flush(20)

    assert time.monotonic() - start < 10
