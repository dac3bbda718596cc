"""For how long delivered and refused records stay on the disk, in hours and bytes as `docs/delivery.md` has them."""

import os
import time
from types import SimpleNamespace

import pytest

from noisescale.transport.limits import Limits
from noisescale.transport.upload import late_delivery
from noisescale.transport.upload.answers import Answer
from noisescale.transport.upload.http import HttpServer
from noisescale.transport.upload.late_delivery import NotNowError, adopt, beyond_the_window
from noisescale.transport.upload.left_behind import stream_folders
from spooled_streams import deliver, make_stream, metric, spooled
from stub_server import Ledger, http_stub

HOUR = 3600.0
NO_STREAM = b'{"type": "/errors/stream-not-found"}'


@pytest.fixture
def stub(monkeypatch, tmp_path):
    monkeypatch.setenv("NOISESCALE_DIR", str(tmp_path / "own"))
    with http_stub() as running:
        yield running


@pytest.fixture
def server(stub):
    opened = HttpServer(stub.url, None, "noisescale/test")
    yield opened
    opened.close()


def made_older(folder, hours):
    """All that is in a folder was written so many hours ago."""
    then = time.time() - hours * HOUR
    for path in folder.path.iterdir():
        os.utime(path, (then, then))


@pytest.mark.parametrize(("hours", "num_left"), [(23, 1), (25, 0)])
def test_a_delivered_stream_is_kept_for_a_day(stub, server, tmp_path, hours, num_left):
    spooled(tmp_path, range(3), url=stub.url)
    assert [one.num_left for one in adopt(tmp_path, server, "first")] == [0]
    [folder] = stream_folders(tmp_path)
    made_older(folder, hours)

    assert [*adopt(tmp_path, server, "first")] == []

    assert len([*stream_folders(tmp_path)]) == num_left


@pytest.mark.thorough
def test_what_was_not_taken_in_time_says_so_and_stays(stub, server, tmp_path):
    spooled(tmp_path, range(3), url=stub.url)
    stub.answers += [(404, {}, NO_STREAM), *[(503, {"Retry-After": "60"}, b"{}")] * 9]
    [folder] = stream_folders(tmp_path)

    outcome = late_delivery.deliver(folder, server, lambda acked, logged: None, 0.3)

    assert (outcome.num_records, outcome.num_delivered, outcome.num_left) == (4, 0, 4)
    assert outcome.reason
    assert folder.segment_paths()


def test_a_stream_that_was_not_delivered_is_kept_however_old_it_is(stub, server, tmp_path):
    spooled(tmp_path, range(3), url=stub.url)
    [folder] = stream_folders(tmp_path)
    made_older(folder, 24 * 365)
    stub.answers += [(401, {}, b'{"type": "/errors/not-authenticated"}')]

    assert [one.num_delivered for one in adopt(tmp_path, server, "first")] == [0]

    assert [one.path for one in stream_folders(tmp_path)] == [folder.path]
    assert [one.num_delivered for one in adopt(tmp_path, server, "first")] == [4]


@pytest.mark.parametrize("days", [1, 6.9])
def test_the_records_of_a_deleted_run_are_kept_for_a_week(stub, server, tmp_path, days):
    spooled(tmp_path, range(3), url=stub.url)
    gone = b'{"type": "/errors/run-deleted", "detail": "gone"}'
    stub.answers += [(404, {}, NO_STREAM), (410, {}, gone)]
    assert ["deleted" in one.reason for one in adopt(tmp_path, server, "first")] == [True]
    [folder] = stream_folders(tmp_path)
    made_older(folder, 24 * days)

    assert [*adopt(tmp_path, server, "first")] == []

    assert [one.path for one in stream_folders(tmp_path)] == [folder.path]


def delivered(stub, server, tmp_path, number):
    """The folders of so many delivered streams, each an hour older than the one before."""
    for _ in range(number):
        spooled(tmp_path, range(3), url=stub.url)
    assert len([*adopt(tmp_path, server, "first")]) == number
    folders = [*stream_folders(tmp_path)]
    for hours, folder in enumerate(folders):
        made_older(folder, hours)
    return folders


@pytest.mark.parametrize(
    ("num_bytes", "num_kept"), [(100 << 20, 2), (128 << 20, 2), (256 << 20, 1), ((256 << 20) + 1, 0)]
)
def test_beyond_256_mib_the_oldest_delivered_streams_go(stub, server, tmp_path, monkeypatch, num_bytes, num_kept):
    folders = delivered(stub, server, tmp_path, 3)
    monkeypatch.setattr("noisescale.transport.spool.stream_folder.StreamFolder.num_bytes", lambda folder: num_bytes)
    monkeypatch.setattr("noisescale.transport.spool.stream_folder.StreamFolder.settled_at", lambda folder: 4)

    assert [one.path for one in beyond_the_window(folders)] == [one.path for one in folders[num_kept:]]


@pytest.mark.slow
@pytest.mark.thorough
def test_beyond_a_thousand_the_oldest_delivered_streams_go(stub, server, tmp_path):
    [newer, older] = delivered(stub, server, tmp_path, 2)

    assert beyond_the_window([newer] * 999 + [older]) == []
    assert beyond_the_window([older] + [newer] * 1000) == [older]


@pytest.mark.parametrize(("hours", "are_kept"), [(23, True), (25, False)])
def test_a_running_job_keeps_what_has_arrived_for_a_day(tmp_path, hours, are_kept):
    limits = Limits(segment_bytes=1000, free_share=0.0)
    stream, ledger = make_stream(tmp_path, limits=limits), Ledger()
    for number in range(100):
        stream.append(metric(number))
    num_files = len([*tmp_path.rglob("*.seg")])
    for segment in stream._spool._segments.listed():
        segment.created_at -= hours * HOUR

    deliver(stream, ledger)

    left = len([*tmp_path.rglob("*.seg")])
    assert num_files > 3
    assert left == (num_files if are_kept else 1), "the newest takes frames and stays"
    stream.end(1)


def test_a_folder_that_cannot_be_deleted_stops_nobody(stub, server, tmp_path, monkeypatch):
    [folder] = delivered(stub, server, tmp_path, 1)
    made_older(folder, 25)

    def fail(*arguments, **options):
        raise OSError(30, "read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", fail)
        assert [*adopt(tmp_path, server, "first")] == []
        assert folder.segment_paths()
    assert [*adopt(tmp_path, server, "first")] == []

    assert not folder.path.exists()


def test_a_proxy_that_answers_for_the_server_is_asked_again_after_pauses_that_double_for_as_long_as_there_is_patience(
    monkeypatch,
):
    class Proxy:
        url = "http://proxy"

        def request(self, method, path):
            return Answer(502, {})

    pauses = []
    clock = SimpleNamespace(monotonic=lambda: sum(pauses), sleep=pauses.append)
    monkeypatch.setattr(late_delivery, "time", clock)

    with pytest.raises(NotNowError, match="answered 502, and not as noisescale does"):
        late_delivery._patient_cursor(Proxy(), "stream", 60.0)

    assert pauses == [0.5, 1, 2, 4, 8, 16, 16]
