"""A server that was restored from a backup: each stream asks where it stands, and sends again what it still holds."""

import time

import pytest

from noisescale.transport.spool.disk_spool import DiskSpool
from noisescale.transport.spool.spool import MemorySpool
from noisescale.transport.upload.answers import Answer
from noisescale.transport.upload.http import HttpServer
from noisescale.transport.upload.late_delivery import adopt
from noisescale.transport.upload.left_behind import stream_folders
from noisescale.transport.upload.pace import HEARTBEAT_SECONDS, LONGEST_STEP_SECONDS, Heartbeat
from noisescale.transport.upload.stream import Stream
from noisescale.transport.upload.uploader import Uploader
from noisescale.transport.wire import RunRecord
from spooled_streams import NO_LIMIT_OF_THE_DISK, metric, numbers, spooled
from stub_server import FakeServer, http_stub


class Sender:
    """A stream on disk, or in memory, and what delivers it to a server that others use, too."""

    def __init__(self, server, folder=None):
        spool = MemorySpool() if folder is None else DiskSpool([folder], limits=NO_LIMIT_OF_THE_DISK)
        self.server, self.faults, self.epochs = server, [], []
        self.stream = Stream("run", spool, lambda: RunRecord({"project": "demo"}, {}))
        self.uploader = Uploader(
            self.stream,
            server,
            self.faults.append,
            interval_seconds=0.01,
            first_backoff_seconds=0.01,
            on_epoch=self.epochs.append,
        )

    def log(self, *values):
        for value in values:
            self.uploader.notify(self.stream.append(metric(value)))
        assert self.uploader.flush(5)

    def arrived(self):
        return numbers(self.server.ledger, self.stream)


@pytest.fixture
def make_sender():
    senders = []

    def make(*arguments):
        senders.append(Sender(*arguments))
        return senders[-1]

    yield make
    for sender in senders:
        sender.uploader.close()
        sender.stream.end(1)
        assert sender.faults == []
        sender.server.ledger.check()


def restore(server, stream, last_seq):
    server.ledger = server.ledger.restored({stream.stream_id: last_seq})


def test_a_stream_that_meets_a_gap_sends_again_what_the_backup_lacks(make_sender, tmp_path, caplog):
    sender = make_sender(FakeServer(), tmp_path)
    sender.log(*range(10))
    restore(sender.server, sender.stream, 4)

    sender.log(10)

    assert sender.arrived() == list(range(11))
    assert sender.server.ledger.lost[sender.stream.stream_id] == {}
    assert sender.epochs == ["first", "first'"]
    assert "was restored from a backup" in caplog.text


@pytest.mark.parametrize("database_id", [None, "first"])
def test_of_a_server_that_stays_the_same_nothing_is_said(make_sender, tmp_path, caplog, database_id):
    server = FakeServer()
    server.ledger.database_id = database_id
    sender = make_sender(server, tmp_path)

    for number in range(3):
        sender.log(number)

    assert caplog.text == ""
    assert sender.epochs == ["first"]


def test_another_database_behind_the_address_of_a_running_job_is_told_from_a_backup(make_sender, tmp_path, caplog):
    server = FakeServer()
    server.ledger.database_id = "first"
    sender = make_sender(server, tmp_path)
    sender.log(*range(10))
    restore(server, sender.stream, 0)
    server.ledger.database_id = "second"

    sender.log(10)

    assert sender.arrived() == list(range(11))
    assert "has another database now than the job began with: what it lacks is sent again" in caplog.text
    assert "restored from a backup" not in caplog.text
    [folder] = stream_folders(tmp_path)
    assert folder.database_id() == "second"


def test_a_stream_that_has_nothing_to_send_learns_of_it_from_another_one(make_sender, tmp_path):
    server = FakeServer()
    silent, busy = make_sender(server, tmp_path), make_sender(server, tmp_path)
    silent.log(*range(10))
    busy.log(*range(100, 110))
    server.ledger = server.ledger.restored({silent.stream.stream_id: 4, busy.stream.stream_id: 11})

    busy.log(110)
    wait_until(lambda: len(silent.arrived()) == 10)

    assert silent.arrived() == list(range(10))
    assert busy.arrived() == list(range(100, 111))


def test_a_stream_that_the_backup_does_not_know_is_sent_from_its_first_record(make_sender, tmp_path, monkeypatch):
    sender = make_sender(FakeServer(), tmp_path)
    sender.log(*range(10))
    sender.server.ledger = sender.server.ledger.restored({})

    monkeypatch.setattr(Heartbeat, "is_due", lambda heartbeat, num_logged: True)
    wait_until(lambda: sender.server.ledger.acked.get(sender.stream.stream_id) == 11)

    assert sender.arrived() == list(range(10))


def test_what_is_no_longer_held_is_declared_trimmed(make_sender):
    sender = make_sender(FakeServer())
    sender.log(*range(10))
    restore(sender.server, sender.stream, 4)

    sender.log(10)

    assert sender.arrived() == [0, 1, 2, 10]
    assert sender.server.ledger.lost[sender.stream.stream_id] == dict.fromkeys(range(5, 12), "trimmed")


def test_a_server_that_goes_back_and_is_killed_leaves_the_stream_as_not_arrived(make_sender, tmp_path):
    """The file beside the records must not say that all has arrived while it is to be sent again."""
    sender = make_sender(FakeServer(), tmp_path)
    sender.log(*range(10))
    # who is killed sends nothing any more; a sender that lives has sent it all again within milliseconds
    sender.uploader.close()

    assert sender.stream.rewind(5)

    [folder] = stream_folders(tmp_path)
    assert (folder.acked_seq(), folder.epoch()) == (4, "first")


def test_streams_that_had_arrived_are_asked_for_once_more_in_another_epoch(tmp_path):
    with http_stub() as stub:
        left = spooled(tmp_path, range(10), url=stub.url)
        server = HttpServer(stub.url, None, "noisescale/test")
        assert len([*adopt(tmp_path, server, "first")]) == 1
        stub.ledger = stub.ledger.restored({left.stream_id: 4})

        [again] = adopt(tmp_path, server, "first'")
        [*nothing] = adopt(tmp_path, server, "first'")

        assert (again.num_delivered, again.num_left, nothing) == (7, 0, [])
        assert numbers(stub.ledger, left) == list(range(10))
        stub.ledger.check()
        server.close()


def test_a_job_without_news_says_now_and_then_that_it_lives(make_sender, monkeypatch):
    sender = make_sender(FakeServer())
    sender.log(0)

    monkeypatch.setattr("noisescale.transport.upload.pace.HEARTBEAT_SECONDS", 0.02)
    wait_until(lambda: len(sender.server.heartbeats) >= 3)

    assert set(sender.server.heartbeats) == {sender.stream.stream_id}


def test_a_server_of_an_earlier_release_knows_neither_epochs_nor_heartbeats(make_sender, monkeypatch):
    """It answers 404 without a type to what it does not know, which changes nothing."""
    monkeypatch.setattr("noisescale.transport.upload.pace.HEARTBEAT_SECONDS", 0.02)
    server = FakeServer()
    server.ledger.epoch = None
    asked = []
    server.post_heartbeat = lambda stream_id: asked.append(stream_id) or Answer(404, {"detail": "Not Found"})
    sender = make_sender(server)

    sender.log(*range(10))
    wait_until(lambda: len(asked) >= 3)
    sender.log(10)

    assert sender.arrived() == list(range(11))
    assert sender.epochs == [None]


def test_a_job_that_has_delivered_nothing_does_not_say_so(make_sender, monkeypatch):
    monkeypatch.setattr("noisescale.transport.upload.pace.HEARTBEAT_SECONDS", 0.0)
    sender = make_sender(FakeServer())
    sender.uploader.notify(0)
    time.sleep(0.1)

    assert sender.server.heartbeats == []


def test_a_heartbeat_is_due_a_while_after_the_last_answer_and_not_for_ever(monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    heartbeat = Heartbeat()
    due = []

    for seconds, num_logged in [(0, 1), (HEARTBEAT_SECONDS, 1), (LONGEST_STEP_SECONDS, 1), (0, 2)]:
        clock[0] += seconds
        due.append(heartbeat.is_due(num_logged))
    heartbeat.was_heard()

    assert due == [False, True, False, True]
    assert not heartbeat.is_due(2)


def wait_until(is_so, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)
