"""When the uploader sends, hurries and holds back; nothing here waits for the intervals of a real job."""

import random
import threading
import time

import pytest

from noisescale.transport.spool import MemorySpool
from noisescale.transport.stream import Stream
from noisescale.transport.uploader import Uploader
from noisescale.transport.wire import Measurement, RunRecord
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


def threads():
    return [one for one in threading.enumerate() if one.name == "noisescale-uploader"]


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


def test_a_flush_hurries_and_afterwards_records_wait_again(make_sender):
    sender = make_sender()
    sender.log(0)
    start = time.monotonic()

    assert sender.uploader.flush(20)
    took = time.monotonic() - start
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
    sender.server.faults.append(answering(429, retry_after="60"))
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
    before = len(threads())
    sender = make_sender(keeps_connection=keeps_connection)
    sender.log(0)
    wait_until(lambda: len(threads()) == before + 1)
    start = time.monotonic()

    sender.uploader.close()
    wait_until(lambda: len(threads()) == before)

    assert time.monotonic() - start < 5
    assert sender.server.is_closed != keeps_connection
    sender.log(1)
    assert len(threads()) == before, "a closed one does not begin again"


def test_one_thread_delivers_whoever_logs(make_sender):
    before = len(threads())
    sender = make_sender(interval_seconds=0.001)

    sender.log(*range(50))
    wait_until(lambda: sender.steps == list(range(50)))

    assert len(threads()) == before + 1
