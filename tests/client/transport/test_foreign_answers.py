"""Answers that are not the server's: none of them rejects a record, acknowledges, stops or marks anything."""

import json
import time

import pytest

from noisescale.transport.spool.spool import MemorySpool
from noisescale.transport.upload import pace, uploader
from noisescale.transport.upload.answers import Action, Answer, cursor_in, decide, epoch_in, standing_in
from noisescale.transport.upload.http import HttpServer
from noisescale.transport.upload.pace import MAX_RECORDS, BatchSize, Heartbeat
from noisescale.transport.upload.stream import Stream
from noisescale.transport.upload.uploader import Uploader
from noisescale.transport.wire import RunRecord
from simulated_proxy import FOREIGN_JSON, STATUSES
from spooled_streams import metric, numbers
from stub_server import FakeServer, answering, http_stub

OBJECTS = [body for body in FOREIGN_JSON if isinstance(body, dict)]
NOT_HOURS = {"first_backoff_seconds": 0.005, "interval_seconds": 0.005}


class Sender:
    """A stream in memory and its uploader, quick enough for tests."""

    def __init__(self, *faults):
        self.server, self.faults = FakeServer(*faults), []
        self.stream = Stream("run", MemorySpool(), lambda: RunRecord({"project": "demo"}, {}))
        self.uploader = Uploader(self.stream, self.server, self.faults.append, **NOT_HOURS)

    def log(self, *values):
        for value in values:
            self.uploader.notify(self.stream.append(metric(value)))

    def wait(self, is_so, seconds=10.0):
        deadline = time.monotonic() + seconds
        while not is_so() and time.monotonic() < deadline:
            time.sleep(0.002)
        return is_so()

    def has_arrived(self):
        return self.wait(lambda: not self.stream.delivery().num_waiting)

    def arrived(self):
        return numbers(self.server.ledger, self.stream)

    def sizes(self):
        return [body["last_seq"] - body["first_seq"] + 1 for body in self.server.bodies]


@pytest.fixture
def make_sender(monkeypatch):
    monkeypatch.setattr(uploader, "LAST_BACKOFF_SECONDS", 0.02)
    senders = []

    def make(*faults):
        senders.append(Sender(*faults))
        return senders[-1]

    yield make
    for sender in senders:
        sender.uploader.close()
        assert sender.faults == []
        sender.server.ledger.check()


@pytest.mark.parametrize("body", [{}, *OBJECTS], ids=lambda body: json.dumps(body)[:40])
def test_whatever_a_proxy_says_means_no_more_than_try_again(body):
    """Every status with every body: a smaller batch where something was too large, else the same one later."""
    for status in STATUSES:
        answer = Answer(status, body, "99999")
        decision = decide(answer)

        harmless = Action.SHRINK if status == 413 else Action.BACK_OFF
        is_number = status == 200 and decision.action is Action.ADVANCE  # "acked_seq" alone, judged with the batch
        assert is_number or decision.action is harmless, (status, body)
        assert decision.wait_seconds <= 60
        assert answer.problem is None
        assert cursor_in(answer, "stream") is None
        assert standing_in(answer) is None


def test_the_problems_of_every_release_are_ours_and_their_likes_are_not():
    ours = {"type": "/errors/stream-gap", "expected_seq": 1}

    assert Answer(409, ours).problem == "stream-gap"
    assert Answer(409, ours | {"status": 409}).problem == "stream-gap"
    assert Answer(409, ours | {"status": 502}).problem is None
    for like in ("https://proxy.example/errors/stream-gap", "/errors/stream-gap/", "x/errors/stream-gap", 7, None):
        assert Answer(409, {"type": like, "expected_seq": 1}).problem is None


@pytest.mark.parametrize(
    ("status", "problem", "action"),
    [
        (404, "run-not-found", Action.RESEND_RUN),
        (409, "stream-conflict", Action.NEW_STREAM),
        (410, "run-deleted", Action.STOP),
        (413, "body-too-large", Action.SPLIT),
        (415, "media-type-not-supported", Action.WAIT),
        (422, "invalid-input", Action.SPLIT),
    ],
)
def test_the_same_status_of_the_server_itself_has_its_consequence(status, problem, action):
    assert decide(Answer(status, {"type": f"/errors/{problem}"})).action is action
    assert decide(Answer(500, {"type": f"/errors/{problem}"})).action is Action.BACK_OFF


def test_a_batch_that_came_damaged_blames_no_record():
    """The server says so of the whole body, and of fields else."""
    of_the_whole = {"type": "/errors/invalid-input", "errors": [{"field": "body", "message": "is not gzip"}]}
    of_a_field = {"type": "/errors/invalid-input", "errors": [{"field": "finish.status", "message": "is required"}]}

    assert decide(Answer(422, of_the_whole)).action is Action.SHRINK
    assert decide(Answer(422, of_a_field)).action is Action.SPLIT


@pytest.mark.parametrize("status", [400, 410, 413, 415, 422])
def test_a_foreign_refusal_never_rejects_a_record_nor_stops_the_delivery(make_sender, status):
    sender = make_sender(*[answering(status)] * 25)

    sender.log(*range(40))

    assert sender.has_arrived()
    assert sender.arrived() == list(range(40))
    assert sender.stream.delivery().num_lost == 0
    assert sender.uploader.stop_reason is None
    assert len(sender.server.bodies) > 25


def test_a_foreign_413_halves_down_to_one_record_and_begins_again_with_all(make_sender):
    sender = make_sender(answering(200, {"acked_seq": 0}), *[answering(413)] * 12)
    sender.log(*range(30))

    assert sender.has_arrived()

    sizes = sender.sizes()
    whole = max(sizes)
    fell_to_one = sizes.index(1)
    assert sizes[:fell_to_one] == sorted(sizes[:fell_to_one], reverse=True)
    assert sizes[fell_to_one + 1] == whole
    assert sender.arrived() == list(range(30))


def test_behind_a_limit_of_bodies_batches_stay_small_enough_for_a_while(make_sender):
    def refuse_large(ledger, stream_id, batch):
        if batch["last_seq"] - batch["first_seq"] >= 100:
            return Answer(413, {})
        return ledger.accept(stream_id, batch)

    sender = make_sender(*[refuse_large] * 1000)
    sender.log(*range(2000))

    assert sender.has_arrived()

    num_refused = sum(size > 100 for size in sender.sizes())
    assert num_refused <= 8, "once the size is known it is not passed with each batch"
    assert sender.arrived() == list(range(2000))


def test_a_size_that_was_refused_is_tried_again_after_a_while(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(pace.time, "monotonic", lambda: clock[0])
    size = BatchSize()
    size.refuse(MAX_RECORDS)
    seen = []

    for seconds in (1, 1, 60, 1):
        clock[0] += seconds
        size.take()
        seen.append(size.num_records)

    assert seen == [500, 500, 1000, 1000]


def test_a_size_that_fell_far_grows_by_two_each_time(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(pace.time, "monotonic", lambda: clock[0])
    size = BatchSize()
    size.refuse(100)
    clock[0] = 60
    seen = []

    for _ in range(5):
        size.take()
        seen.append(size.num_records)

    assert seen == [100, 200, 400, 800, 1000]


def test_batches_grow_again_where_they_arrive(make_sender, monkeypatch):
    monkeypatch.setattr(pace, "LARGER_AGAIN_SECONDS", 0.0)
    sender = make_sender(answering(413))

    sender.log(*range(3000))

    assert sender.has_arrived()
    _, smaller, *later = sender.sizes()
    assert max(later) > smaller


@pytest.mark.parametrize("beyond", [{"acked_seq": 10**12}, {"acked_seq": 10**12, "epoch": "another"}])
def test_an_account_of_what_was_never_sent_is_none(make_sender, beyond):
    sender = make_sender(*[answering(200, beyond)] * 5)

    sender.log(*range(10))

    assert sender.has_arrived()
    assert sender.arrived() == list(range(10))
    assert sender.stream.epoch == "first"


def test_an_account_of_what_another_sender_has_sent_is_believed_of_a_server(make_sender):
    """`noisescale sync` of a running job's folder may be ahead of the job itself."""
    sender = make_sender()

    def stored_and_refused(ledger, stream_id, batch):
        ledger.accept(stream_id, batch)
        return Answer(413, {})  # a proxy's, after the server has stored it

    sender.server.faults.append(stored_and_refused)
    for value in range(10):
        num_waiting = sender.stream.append(metric(value))
    sender.uploader.notify(num_waiting)  # only now, so that all are of one batch

    assert sender.has_arrived()
    assert sender.sizes() == [11, 5], "the answer to the half that is sent again says where the whole one stands"
    assert sender.arrived() == list(range(10))


@pytest.mark.parametrize(("epoch", "is_another_stream"), [("first", True), ("another", False)])
def test_a_server_that_has_more_of_a_stream_than_was_logged_has_another_one(make_sender, epoch, is_another_stream):
    """As after a copied machine. In another life of its data it may be anybody's answer, and is asked for again."""
    sender = make_sender()
    sender.log(*range(3))
    assert sender.has_arrived()
    old = sender.stream.stream_id
    sender.server.faults.append(answering(200, {"acked_seq": 99, "epoch": epoch, "rejected": []}))

    sender.log(3)

    assert sender.has_arrived()
    assert (sender.stream.stream_id != old) == is_another_stream
    assert sender.arrived()[-1] == 3
    assert sender.stream.epoch == "first"


@pytest.mark.parametrize("foreign", [Answer(200, {}), Answer(404, {}), Answer(200, {"acked_seq": 0}), Answer(410, {})])
def test_a_foreign_answer_to_a_heartbeat_changes_nothing_and_the_question_stays(make_sender, monkeypatch, foreign):
    """After a restore a stream asks until a server says where it stands: else it would never send what is missing."""
    sender = make_sender()
    sender.log(*range(10))
    assert sender.has_arrived()
    asked, standing = [], sender.server.post_heartbeat
    sender.server.post_heartbeat = lambda stream_id: (
        asked.append(1) or (foreign if len(asked) < 4 else standing(stream_id))
    )
    monkeypatch.setattr(Heartbeat, "is_due", lambda heartbeat, num_logged: False)

    sender.uploader.ask_where_it_stands("first'")

    assert sender.wait(lambda: len(asked) >= 4)
    assert sender.stream.delivery().num_lost == 0
    assert sender.stream.epoch == "first"


def test_an_epoch_is_that_of_a_server(make_sender):
    assert epoch_in(Answer(502, {"epoch": "another"})) is None
    assert epoch_in(Answer(200, {"epoch": "another"})) is None
    assert epoch_in(Answer(409, {"type": "/errors/stream-gap", "expected_seq": 1, "epoch": "first"})) == "first"


def test_a_proxy_that_wants_an_hour_gets_a_minute():
    assert decide(Answer(503, {}, "3600")).wait_seconds == 60
    assert decide(Answer(503, {"type": "/errors/database-unreachable"}, "3600")).wait_seconds == 3600


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"a":' * 100_000], ids=["lists", "objects"])
def test_json_without_end_is_no_answer_of_ours(content):
    with http_stub() as stub:
        stub.answers.append((200, {}, content))
        server = HttpServer(stub.url, None, "noisescale/test")

        assert server.request("GET", "/api/v1/streams/any").body == {}
        server.close()


def test_an_answer_without_end_is_not_read_to_its_end(monkeypatch):
    monkeypatch.setattr("noisescale.transport.upload.http.MAX_ANSWER_BYTES", 1000)
    with http_stub() as stub:
        stub.answers += [(200, {}, b'{"acked_seq": 1}' + b" " * 100_000), (200, {}, b'{"acked_seq": 1}')]
        server = HttpServer(stub.url, None, "noisescale/test")

        assert server.request("GET", "/").body == {}
        assert server.request("GET", "/").body == {"acked_seq": 1}
        server.close()


def test_the_page_of_a_proxy_is_no_server_that_is_ready():
    with http_stub() as stub:
        stub.answers += [(200, {}, b"<html>welcome</html>"), (200, {}, b'{"status": "up"}')]
        server = HttpServer(stub.url, None, "noisescale/test")

        assert [server.is_ready() for _ in range(3)] == [False, False, True]
        server.close()
