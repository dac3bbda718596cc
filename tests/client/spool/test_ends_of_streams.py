"""The end of a stream whose job was killed, and what was lost: told with the stream, never as if it were nothing."""

import os
import time

import pytest

from full_disk import FullDisk
from noisescale import commands, outbox
from noisescale.transport.limits import Limits
from noisescale.transport.spool import segment
from noisescale.transport.spool.frames import encode, is_cut_short
from noisescale.transport.upload import late_delivery
from noisescale.transport.upload.http import HttpServer
from noisescale.transport.upload.late_delivery import REFUSED_SECONDS, adopt
from noisescale.transport.upload.left_behind import num_damaged_at_the_end, stream_folders
from spooled_streams import kill_after, make_stream, metric, spooled
from stub_server import http_stub

NO_STREAM = (404, {}, b'{"type": "/errors/stream-not-found"}')
DELETED = (410, {}, b'{"type": "/errors/run-deleted", "status": 410, "detail": "run was deleted"}')
FRAME = encode(7, metric(5))


@pytest.fixture
def stub(monkeypatch, tmp_path):
    monkeypatch.setenv("NOISESCALE_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NOISESCALE_URL", raising=False)
    with http_stub() as running:
        yield running


@pytest.fixture
def root(tmp_path):
    return tmp_path / "own" / "spool"


def with_a_damaged_end(root, url, num_kept_files=1):
    """A killed job whose last files hold nothing that can be read."""
    child = os.fork()
    if child == 0:
        stream = make_stream(root, limits=Limits(free_share=0.0, segment_bytes=1000))
        for number in range(40):
            stream.append(metric(number))
        os._exit(0)
    os.waitpid(child, 0)
    [folder] = stream_folders(root)
    folder.write("meta.json", b'{"url": "%s"}' % url.encode())
    lost = folder.segment_paths()[num_kept_files:]
    for path in lost:
        path.write_bytes(bytes(path.stat().st_size))
    return folder, sum(path.stat().st_size for path in lost)


def test_damaged_files_at_the_end_are_said_to_be_lost_uncounted(stub, root, capsys, caplog):
    folder, num_bytes = with_a_damaged_end(root, stub.url)

    assert commands.main(["sync", "--url", stub.url]) == 0

    said = capsys.readouterr().out
    assert num_bytes > 2000
    assert (
        f"run run stream {folder.path.name[:8]}: its job was killed: {num_bytes:,} bytes at its end are damaged" in said
    )
    assert f"{num_bytes:,} bytes are damaged: records in them are lost, and are not among those declared lost" in said


def test_the_job_that_adopts_says_so_too_and_how_many_are_lost(stub, root, caplog):
    folder, num_bytes = with_a_damaged_end(root, stub.url)
    with folder.segment_paths()[0].open("r+b") as file:
        file.seek(file.read().index(FRAME[:8]))
        file.write(b"xx")
    server = HttpServer(stub.url, None, "noisescale/test")

    [outcome] = adopt(root, server, "first")

    server.close()
    assert not outbox._is_left(outcome)
    assert f"run run: its job was killed: {num_bytes:,} bytes at its end are damaged" in caplog.text
    assert f"1 of its {outcome.num_records} records are declared lost" in caplog.text


def test_status_names_each_stream_whose_end_cannot_be_known(stub, root, capsys):
    kill_after(root, stub.url, range(5))
    [folder] = stream_folders(root)
    name = f"cut off  run run stream {folder.path.name[:8]}: its job was killed: "

    assert commands.main(["status", "--url", stub.url]) == 0
    assert f"{name}whether it had more than the 6 records that are known cannot be known" in capsys.readouterr().out
    assert commands.main(["sync", "--url", stub.url]) == 0
    capsys.readouterr()
    assert commands.main(["status", "--url", stub.url]) == 0

    said = capsys.readouterr().out
    assert f"{name}whether it had more than the 6 records that are known cannot be known" in said
    assert "state    ready" in said


def test_status_says_nothing_of_the_end_of_a_stream_that_has_one(stub, root, capsys):
    spooled(root, range(5), url=stub.url)

    commands.main(["status", "--url", stub.url])

    said = capsys.readouterr().out
    assert "cut off" not in said
    assert "lost" not in said


def test_many_ends_that_cannot_be_known_are_counted(stub, root, capsys):
    for _ in range(7):
        kill_after(root, stub.url, range(2))

    commands.main(["status", "--url", stub.url])

    said = capsys.readouterr().out
    assert said.count("cut off  run run") == 5
    assert "cut off  2 more like these" in said


def test_status_names_what_was_lost_while_the_disk_was_full(stub, root, capsys, monkeypatch):
    monkeypatch.setattr(segment, "os", FullDisk(2000))
    stream = spooled(root, range(100), url=stub.url)
    monkeypatch.undo()
    monkeypatch.setenv("NOISESCALE_DIR", str(root.parent))
    num_lost = stream.account().num_lost_by_reason["disk_full"]
    sentence = (
        f"lost     {num_lost} of 101 records of run run stream {stream.stream_id[:8]}: in memory only when the disk"
    )

    commands.main(["status", "--url", stub.url])
    before = capsys.readouterr().out
    assert commands.main(["sync", "--url", stub.url]) == 0
    capsys.readouterr()
    commands.main(["status", "--url", stub.url])

    assert num_lost > 10
    assert sentence in before
    assert sentence in capsys.readouterr().out


@pytest.mark.parametrize(
    ("data", "is_so"),
    [(b"", True), (FRAME[:2], True), (FRAME[:-1], True), (FRAME, False), (bytes(3), False), (bytes(100), False)],
    ids=["nothing", "part of a magic", "all but a byte", "a frame", "few zeros", "zeros"],
)
def test_a_write_that_was_cut_off_is_told_from_damage(data, is_so):
    assert is_cut_short(data) is is_so


def test_a_torn_record_is_no_damage_and_zeros_behind_the_last_record_are(stub, root):
    kill_after(root, stub.url, range(5))
    [folder] = stream_folders(root)
    path = folder.segment_paths()[0]
    whole = path.read_bytes()

    path.write_bytes(whole + FRAME[:-3])
    torn = num_damaged_at_the_end(folder)
    path.write_bytes(whole + bytes(77))

    assert (torn, num_damaged_at_the_end(folder)) == (0, 77)


def test_nothing_is_said_to_stay_at_the_start_that_deletes_it(stub, root, caplog, monkeypatch):
    spooled(root, range(3), url=stub.url)
    stub.answers += [NO_STREAM, DELETED]
    server = HttpServer(stub.url, None, "noisescale/test")
    now = time.time()
    monkeypatch.setattr(late_delivery.time, "time", lambda: now)
    list(adopt(root, server, "first"))
    until = time.strftime("%Y-%m-%d %H:%M", time.localtime(now + REFUSED_SECONDS))
    assert f"They stay until {until}" in caplog.text
    caplog.clear()

    monkeypatch.setattr(late_delivery.time, "time", lambda: now + REFUSED_SECONDS + 1)
    list(adopt(root, server, "first"))

    server.close()
    assert list(stream_folders(root)) == []
    assert "They stay" not in caplog.text
    assert "4 records of run run are lost, and their folder is deleted" in caplog.text
