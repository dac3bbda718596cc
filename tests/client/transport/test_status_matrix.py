"""Every answer that a server, or a proxy before it, may give, over a spool on disk: what becomes of the records."""

import email.utils
import json
import time

import pytest

from noisescale.transport.spool.disk_spool import DiskSpool
from noisescale.transport.upload import answers, uploader
from noisescale.transport.upload.http import HttpServer
from noisescale.transport.upload.left_behind import stream_folders
from noisescale.transport.upload.stream import Stream
from noisescale.transport.upload.uploader import Uploader
from noisescale.transport.wire import RunRecord
from spooled_streams import NO_LIMIT_OF_THE_DISK, metric, numbers
from stub_server import http_stub

NUM_RECORDS = 20
HTML = b"<html><body>Bad gateway</body></html>"


def problem(name, **members):
    return json.dumps({"type": f"/errors/{name}", "detail": "as told", **members}).encode()


def retry_at(seconds):
    return email.utils.formatdate(time.time() + seconds, usegmt=True)


class Job:
    """A stream on disk whose server gives one odd answer, and is itself again afterwards."""

    def __init__(self, stub, folder, answer, *, at_record=0):
        self.stub, self.faults = stub, []
        spool = DiskSpool([folder], {"url": stub.url}, limits=NO_LIMIT_OF_THE_DISK)
        self.stream = Stream("run", spool, lambda: RunRecord({"project": "demo"}, {}))
        self.uploader = Uploader(
            self.stream,
            HttpServer(stub.url, "key", "noisescale/test"),
            self.faults.append,
            interval_seconds=0.01,
            first_backoff_seconds=0.01,
        )
        for number in range(at_record):
            self.log(number)
        self.wait(lambda: at_record == 0 or not self.stream.delivery().num_waiting)
        stub.answers.append(answer)
        self.posts_before = len(stub.requests)
        for number in range(at_record, NUM_RECORDS):
            self.log(number)

    def log(self, number):
        self.uploader.notify(self.stream.append(metric(number)))

    def wait(self, is_so, seconds=5.0):
        deadline = time.monotonic() + seconds
        while not is_so() and time.monotonic() < deadline:
            time.sleep(0.005)
        return is_so()

    def end(self):
        self.uploader.close()
        self.stream.end(1)
        assert self.faults == []
        self.stub.ledger.check()


@pytest.fixture(scope="module")
def stub():
    with http_stub() as running:
        yield running


@pytest.fixture
def make_job(stub, tmp_path, monkeypatch):
    monkeypatch.setattr(answers, "REFUSED_RETRY_SECONDS", 0.05)
    monkeypatch.setattr(uploader, "REFUSED_RETRY_SECONDS", 0.05)
    monkeypatch.setattr(uploader, "COMPLAINT_SECONDS", 0.0)
    stub.ledger.__init__()
    stub.answers.clear()
    jobs = []

    def make(answer, **settings):
        jobs.append(Job(stub, tmp_path, answer, **settings))
        return jobs[-1]

    yield make
    for job in jobs:
        job.end()


ARRIVES = {
    "200 without a body": (200, {}, b""),
    "200 with a proxy's page": (200, {}, HTML),
    "200 with a list": (200, {}, b"[]"),
    "200 with a lower cursor": (200, {}, b'{"acked_seq": 0}'),
    "200 with a cursor that is no number": (200, {}, b'{"acked_seq": "all"}'),
    "204": (204, {}, b""),
    "301 to another host": (301, {"Location": "http://127.0.0.1:9/"}, b""),
    "307 to another host": (307, {"Location": "http://127.0.0.1:9/"}, b""),
    "401": (401, {}, problem("not-known")),
    "403": (403, {}, problem("not-allowed")),
    "404 of a proxy": (404, {}, HTML),
    "404 run not found": (404, {}, problem("run-not-found")),
    "408": (408, {}, HTML),
    "409 that says nothing": (409, {}, b"{}"),
    "413": (413, {}, problem("body-too-large", limit=100)),
    "413 of a proxy": (413, {}, HTML),
    "415": (415, {}, problem("media-type-not-supported")),
    "400": (400, {}, HTML),
    "422": (422, {}, problem("invalid-input", errors=[])),
    "426": (426, {}, problem("version-not-supported", supported=[2])),
    "429 with a moment": (429, {"Retry-After": "0.01"}, problem("too-many-batches")),
    "429 without": (429, {}, HTML),
    "500": (500, {}, HTML),
    "502": (502, {}, HTML),
    "503 with a moment": (503, {"Retry-After": "0"}, problem("database-unreachable")),
    "503 with less than nothing": (503, {"Retry-After": "-1"}, HTML),
    "503 with a word": (503, {"Retry-After": "soon"}, HTML),
    "503 with a date that has passed": (503, {"Retry-After": retry_at(-60)}, HTML),
    "504": (504, {}, HTML),
    "599": (599, {}, b"\xff\xfe"),
}


WITH_THE_RUN = ("200 without a body", "404 run not found", "413", "422")


@pytest.mark.parametrize(("name", "at_record"), [*((one, 10) for one in ARRIVES), *((one, 0) for one in WITH_THE_RUN)])
def test_an_odd_answer_loses_and_doubles_nothing(make_job, name, at_record):
    job = make_job(ARRIVES[name], at_record=at_record)

    assert job.wait(lambda: job.stream.delivery().num_waiting == 0), name

    assert numbers(job.stub.ledger, job.stream) == list(range(NUM_RECORDS))
    assert job.stream.delivery().num_lost == 0
    assert len(job.stub.requests) > job.posts_before


GAPS = {
    "to the beginning": 1,
    "to what has arrived": 4,
    "beyond everything": 10_000,
    "to nowhere": 0,
}


@pytest.mark.parametrize("expected_seq", GAPS.values(), ids=GAPS)
def test_a_gap_is_gone_back_to_where_that_makes_sense(make_job, expected_seq):
    """The stub has all the same what it had: what is sent again is dropped, and what no server says is tried again."""
    job = make_job((409, {}, problem("stream-gap", expected_seq=expected_seq, epoch="first")), at_record=10)
    first_id = job.stream.stream_id

    assert job.wait(lambda: job.stream.delivery().num_waiting == 0)

    stored = [
        row["value"] for one in job.stub.ledger.stored.values() for kind, row in one.values() if kind == "metrics"
    ]
    assert sorted(stored) == list(range(NUM_RECORDS))
    assert job.stream.stream_id == first_id


def test_a_conflict_goes_on_in_another_stream(make_job):
    job = make_job((409, {}, problem("stream-conflict")), at_record=10)
    first_id = job.stream.stream_id

    assert job.wait(lambda: job.stream.delivery().num_waiting == 0)

    assert numbers(job.stub.ledger, job.stream) == list(range(10, NUM_RECORDS))
    assert job.stream.stream_id != first_id


@pytest.mark.parametrize("retry_after", ["1e99", "3600", retry_at(86_400)], ids=["too long", "an hour", "a date"])
@pytest.mark.parametrize("status", [429, 503])
def test_what_the_server_asks_for_is_waited_and_the_records_stay_on_disk(make_job, tmp_path, status, retry_after):
    job = make_job((status, {"Retry-After": retry_after}, problem("any")), at_record=10)
    assert job.wait(lambda: job.uploader._not_before > time.monotonic() + 60)
    time.sleep(0.05)

    assert job.stream.delivery().num_waiting > 0
    assert len(job.stub.requests) == job.posts_before + 1
    wait_seconds = job.uploader._not_before - time.monotonic()
    assert 3500 < wait_seconds <= 3600
    assert sum(path.stat().st_size for path in stream_folders_paths(tmp_path)) > 0


def test_a_deleted_run_is_stopped_and_its_records_stay_on_disk(make_job, tmp_path, caplog):
    job = make_job((410, {}, problem("run-deleted")), at_record=10)

    assert job.wait(lambda: job.uploader.stop_reason is not None)

    assert "the run was deleted" in caplog.text
    assert job.stream.delivery().num_waiting > 0
    assert sum(path.stat().st_size for path in stream_folders_paths(tmp_path)) > 0


def test_no_answer_of_any_kind_makes_the_key_travel(make_job):
    """Neither a redirect nor an authentication challenge brings it to another place."""
    job = make_job((302, {"Location": "http://127.0.0.1:9/", "WWW-Authenticate": "Basic"}, b""))

    assert job.wait(lambda: job.stream.delivery().num_waiting == 0)

    assert all(headers["Host"] == job.stub.url.removeprefix("http://") for _, headers in job.stub.requests)


def stream_folders_paths(root):
    return [path for folder in stream_folders(root) for path in folder.segment_paths()]
