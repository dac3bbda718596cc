"""What dead jobs have left is sent by a command, or by the next job of the same user."""

import contextlib
import json
import os
import sys
import threading
import time

import pytest

import noisescale
from noisescale import commands, outbox
from noisescale.transport.spool.frames import encode
from noisescale.transport.upload.answers import Answer
from noisescale.transport.upload.http import HttpServer
from noisescale.transport.upload.late_delivery import (
    NotNowError,
    adopt,
    deliver,
    has_arrived,
    num_waiting_in,
    server_cursor,
)
from noisescale.transport.upload.left_behind import stream_folders
from noisescale.transport.wire import MetricRecord
from noisescale_core.errors import TransportError
from spooled_streams import kill_after, metric, spooled
from stub_server import http_stub

NO_STREAM = b'{"type": "/errors/stream-not-found"}'
DELETED = b'{"type": "/errors/run-deleted", "detail": "run was deleted"}'


@pytest.fixture
def stub(monkeypatch, tmp_path):
    monkeypatch.setenv("NOISESCALE_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    with http_stub() as running:
        yield running


def values(stub):
    stored = [stub.ledger.stored[name][seq] for name in stub.ledger.stored for seq in sorted(stub.ledger.stored[name])]
    return [row["value"] for kind, row in stored if kind == "metrics"]


def test_sync_sends_what_was_left_and_nothing_twice(stub, tmp_path, capsys):
    spooled(tmp_path / "own" / "spool", range(2500))

    status = commands.main(["sync", str(tmp_path / "own"), "--url", stub.url])

    assert status == 0, capsys.readouterr().err
    assert values(stub) == list(range(2500))
    assert "2501 records sent" in capsys.readouterr().out
    [folder] = stream_folders(tmp_path / "own")
    num_posts = len(stub.requests)
    assert commands.main(["sync", "--url", stub.url]) == 0
    assert len(stub.requests) == num_posts
    assert has_arrived(folder)
    stub.ledger.check()


def test_streams_are_sent_over_one_connection(stub, tmp_path):
    spooled(tmp_path, range(3), url=stub.url)
    [folder] = stream_folders(tmp_path)
    server = HttpServer(stub.url, None, "noisescale/test")

    deliver(folder, server, lambda acked, logged: None, 10.0)

    assert server._client is not None, "it is whoever has opened it that closes it"
    server.close()


@pytest.mark.parametrize(
    ("status", "problem", "is_final"),
    [
        (429, "too-many-requests", False),
        (503, "busy", False),
        (401, "not-authenticated", True),
        (500, "internal", True),
    ],
)
def test_a_busy_server_is_asked_again_and_one_that_refuses_is_not(status, problem, is_final):
    class Server:
        url = "http://any"

        def request(self, method, path):
            return Answer(status, {"type": f"/errors/{problem}"})

    with pytest.raises(TransportError) as found:
        server_cursor(Server(), "stream")

    assert isinstance(found.value, NotNowError) != is_final


def test_sync_goes_on_where_the_server_stands(stub, tmp_path):
    stream = spooled(tmp_path, range(10))
    stub.ledger.acked[stream.stream_id] = 5
    stub.ledger.stored[stream.stream_id] = {seq: ("earlier", {}) for seq in range(1, 6)}

    assert commands.main(["sync", str(tmp_path), "--url", stub.url]) == 0

    assert values(stub) == [*range(4, 10)]
    stub.ledger.check()


def test_sync_sends_what_a_running_job_has_written_so_far(stub, tmp_path):
    stream = spooled(tmp_path, range(10), is_ended=False)

    assert commands.main(["sync", str(tmp_path), "--url", stub.url]) == 0

    assert values(stub) == list(range(10))
    stream.append(metric(10))
    stream.end(1)


def test_of_a_stream_whose_writer_lives_nothing_is_called_damaged_or_cut_off(stub, tmp_path):
    stream = spooled(tmp_path, range(10), is_ended=False)
    [folder] = stream_folders(tmp_path)
    server = HttpServer(stub.url, None, "noisescale/test")

    outcome = deliver(folder, server, on_progress=lambda *progress: None, timeout_seconds=10.0)

    assert (outcome.num_delivered, outcome.num_bytes_damaged, outcome.is_cut_off) == (11, 0, False)
    stream.end(1)
    server.close()


def test_sync_says_in_the_end_what_became_of_all_records(stub, tmp_path, capsys):
    known = spooled(tmp_path, range(10))
    lossy = spooled(tmp_path, range(3), is_ended=False)
    with contextlib.suppress(TypeError):
        lossy.append(MetricRecord(0, 0.0, {"n": object()}))
    lossy.end(1)
    stub.ledger.acked[known.stream_id] = 5
    stub.ledger.stored[known.stream_id] = {seq: ("earlier", {}) for seq in range(1, 6)}

    assert commands.main(["sync", str(tmp_path), "--url", stub.url]) == 0

    said = "2 streams: 10 records sent, 5 there already, 0 left; in all 1 declared lost, 0 in quarantine"
    assert said in capsys.readouterr().out


@pytest.mark.thorough
@pytest.mark.parametrize("is_terminal", [True, False])
def test_sync_shows_how_far_it_is_on_a_terminal_only(stub, tmp_path, capsys, monkeypatch, is_terminal):
    spooled(tmp_path, range(2500))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)

    assert commands.main(["sync", str(tmp_path), "--url", stub.url]) == 0

    found = capsys.readouterr()
    assert ("of 2,501 records" in found.err) == is_terminal
    assert found.err.endswith("\x1b[K") == is_terminal
    assert "\r" not in found.out


@pytest.mark.parametrize(
    ("folder", "url", "status", "said"),
    [
        ("own", "http://127.0.0.1:9", 1, "no answer"),
        ("nowhere", "http://127.0.0.1:9", 2, "no folder"),
        ("own", "nonsense", 2, "url must look like"),
    ],
)
def test_sync_that_cannot_says_why(stub, tmp_path, capsys, folder, url, status, said):
    spooled(tmp_path / "own", range(3))

    assert commands.main(["sync", str(tmp_path / folder), "--url", url]) == status
    assert said in capsys.readouterr().err


def test_sync_with_a_refused_stream_says_so(stub, tmp_path, capsys):
    spooled(tmp_path, range(3))
    stub.answers += [(404, {}, NO_STREAM), (410, {}, DELETED)]

    assert commands.main(["sync", str(tmp_path), "--url", stub.url]) == 1
    assert "was deleted" in capsys.readouterr().err


def test_sync_without_anything_to_send_is_content(stub, tmp_path, capsys):
    assert commands.main(["sync", str(tmp_path), "--url", stub.url]) == 0
    assert "nothing to send" in capsys.readouterr().out


def test_a_later_job_adopts_what_is_meant_for_its_server_and_no_running_stream(stub, tmp_path):
    left = spooled(tmp_path, range(10), url=stub.url)
    spooled(tmp_path, range(100, 110), url="http://elsewhere")
    running = spooled(tmp_path, range(200, 210), url=stub.url, is_ended=False)
    server = HttpServer(stub.url, None, "noisescale/test")

    [outcome] = adopt(tmp_path, server, "first")

    assert (outcome.stream_id, outcome.num_delivered, outcome.num_left) == (left.stream_id, 11, 0)
    assert values(stub) == list(range(10))
    running.end(1)
    server.close()


def test_what_goes_on_in_a_new_folder_after_a_conflict_is_meant_for_the_same_server(stub, tmp_path):
    left = spooled(tmp_path, range(10), url=stub.url)
    server = HttpServer(stub.url, None, "noisescale/test")
    stub.answers += [(404, {}, NO_STREAM), (409, {}, b'{"type": "/errors/stream-conflict"}')]

    list(adopt(tmp_path, server, "first"))

    [new] = [folder for folder in stream_folders(tmp_path) if not folder.has_moved]
    assert new.path.name != left.stream_id
    assert (new.meta()["url"], has_arrived(new)) == (stub.url, True)
    assert values(stub) == list(range(10))
    server.close()


def test_what_has_arrived_is_deleted_after_a_day(stub, tmp_path):
    spooled(tmp_path, range(10), url=stub.url)
    server = HttpServer(stub.url, None, "noisescale/test")
    assert len([*adopt(tmp_path, server, "first")]) == 1
    [folder] = stream_folders(tmp_path)
    assert [*adopt(tmp_path, server, "first")] == []
    assert folder.path.exists()

    for path in (*folder.segment_paths(), folder.path / ".ack"):
        os.utime(path, (0, 0))

    assert [*adopt(tmp_path, server, "first")] == []
    assert [*tmp_path.iterdir()] == [], "the folder of the run is gone with its last stream"
    server.close()


def test_a_killed_process_whose_records_have_arrived_is_settled_and_not_asked_for_again(stub, tmp_path):
    """It has no seal; without a note of its death every later job would ask for it again, for ever."""
    kill_after(tmp_path, stub.url, range(10))
    server = HttpServer(stub.url, None, "noisescale/test")

    [outcome] = adopt(tmp_path, server, "first")
    [*nothing] = adopt(tmp_path, server, "first")

    [folder] = stream_folders(tmp_path)
    assert (outcome.num_delivered, nothing) == (11, [])
    assert has_arrived(folder)
    with folder.segment_paths()[0].open("ab") as file:
        file.write(encode(12, metric(10)))
    assert not has_arrived(folder), "its process is still running after all, where the file system has no locks"
    server.close()


@pytest.mark.thorough
def test_arrived_streams_do_not_pile_up(stub, tmp_path, monkeypatch):
    monkeypatch.setattr("noisescale.transport.upload.late_delivery.KEPT_STREAMS", 2)
    streams = [spooled(tmp_path, range(3), url=stub.url) for _ in range(4)]
    server = HttpServer(stub.url, None, "noisescale/test")

    assert len([*adopt(tmp_path, server, "first")]) == 4

    kept = {folder.path.name for folder in stream_folders(tmp_path)}
    assert len(kept) == 2
    assert kept < {stream.stream_id for stream in streams}
    server.close()


def test_a_stream_whose_run_record_is_damaged_is_sent_where_the_run_is_known_and_holds_up_nothing(stub, tmp_path):
    stream = spooled(tmp_path, range(3), url=stub.url)
    [folder] = stream_folders(tmp_path)
    [path] = folder.segment_paths()
    content = bytearray(path.read_bytes())
    content[30] ^= 1
    path.write_bytes(content)
    server = HttpServer(stub.url, None, "noisescale/test")
    unknown = b'{"type": "/errors/run-not-found", "detail": "no such run"}'
    stub.answers += [(404, {}, NO_STREAM), (404, {}, unknown)]

    start = time.monotonic()
    [left] = adopt(tmp_path, server, "first")
    took = time.monotonic() - start
    stub.ledger.acked[stream.stream_id] = 0
    [outcome] = adopt(tmp_path, server, "first")

    assert "was damaged" in left.reason
    assert took < 20  # a cliff: it waited a minute for a run that this stream cannot bring
    assert (outcome.num_left, stub.ledger.lost[stream.stream_id]) == (0, {1: "spool_corrupt"})
    assert values(stub) == [0, 1, 2]
    server.close()


def test_a_job_that_reaches_its_server_sends_what_an_earlier_one_has_left(stub, tmp_path, monkeypatch):
    monkeypatch.setattr(outbox, "_adopted", set())
    spooled(tmp_path / "own" / "spool", range(10), url=stub.url)
    adopted = []
    monkeypatch.setattr(outbox.logger, "info", lambda message, *values: adopted.append(values))

    run = noisescale.init(delivery=noisescale.Delivery(url=stub.url))
    adopted.clear()  # where its page is
    run.log_metrics(0, accuracy=0.5)
    run.finish()
    wait_until(lambda: adopted)

    assert adopted[0][0] == 11
    assert sorted(values(stub)) == [0.0, 0.5, *range(1, 10)]
    stub.ledger.check()


def test_offline_runs_stay_on_disk_until_they_are_sent(stub, tmp_path, capsys):
    run = noisescale.init(delivery=noisescale.Delivery(url=stub.url), mode="offline")
    for step in range(20):
        run.log_norms(small_batch_size=8, big_batch_size=64, small_sq_norm=3.0, big_sq_norm=1.0, step=step)
    run.finish()

    [folder] = stream_folders(tmp_path / "own")
    assert stub.requests == []
    assert commands.main(["sync", str(folder.path), "--url", stub.url]) == 0
    assert stub.ledger.steps() == list(range(20))
    assert stub.ledger.kinds()[-1] == "finish"


def test_status_says_what_waits_on_disk(stub, tmp_path, capsys):
    spooled(tmp_path / "own" / "spool", range(3))
    running = spooled(tmp_path / "own" / "spool", range(3), is_ended=False)

    assert commands.main(["status", "--url", stub.url]) == 0

    out = capsys.readouterr().out
    assert "1 streams of running jobs, 1 others" in out
    assert "noisescale sync" in out
    running.end(1)


def test_the_doctor_looks_at_folder_and_server(stub, tmp_path, capsys, monkeypatch):
    assert commands.main(["doctor", "--url", stub.url]) == 0
    assert "to the disk" in capsys.readouterr().out

    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NOISESCALE_DIR", str(tmp_path / "file"))
    assert commands.main(["doctor", "--url", "http://127.0.0.1:9"]) == 1
    out = capsys.readouterr().out
    assert "cannot be written to" in out
    assert "not reachable" in out
    assert commands.main(["doctor", "--url", "nonsense"]) == 2


def test_of_a_folder_that_cannot_be_read_nobody_knows_of_a_record(stub, tmp_path, monkeypatch):
    spooled(tmp_path / "own" / "spool", range(3))
    [folder] = stream_folders(tmp_path / "own" / "spool")
    before = num_waiting_in(folder)

    def fail(_folder):
        raise PermissionError

    monkeypatch.setattr("noisescale.transport.upload.late_delivery.open_stream", fail)

    assert (before, num_waiting_in(folder)) == (4, 0)


def wait_until(is_so, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_what_the_server_takes_note_of_and_does_not_store_is_kept_aside(stub, tmp_path, caplog):
    """An answer may name records that cannot be stored; they count as rejected, and people can look at them."""
    spooled(tmp_path, range(3))
    refused = {"seq": 3, "code": "value_type", "field": "value", "message": "no number"}
    stub.answers += [
        (404, {}, NO_STREAM),
        (200, {}, json.dumps({"acked_seq": 4, "rejected": [refused]}).encode()),
    ]

    assert commands.main(["sync", str(tmp_path), "--url", stub.url]) == 0

    assert [path.name for path in tmp_path.rglob("*.frame")] == ["000000000003.frame"]
    assert "refused 1 records, record 3 first" in caplog.text


def test_a_stream_that_was_sent_leaves_no_thread(stub, tmp_path):
    spooled(tmp_path, range(3))
    before = set(threading.enumerate())
    server = HttpServer(stub.url, None, "noisescale/test")

    for folder in stream_folders(tmp_path):
        deliver(folder, server, on_progress=lambda *progress: None, timeout_seconds=10.0)
    server.close()

    assert values(stub) == [0, 1, 2]
    assert {thread.name for thread in set(threading.enumerate()) - before if "uploader" in thread.name} == set()
