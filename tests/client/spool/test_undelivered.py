"""Records that no server has: kept, or declared lost where a person sees it; never gone by age alone."""

import json
import os
import time

import pytest

from full_disk import FullDisk
from noisescale import commands, outbox
from noisescale.config import Config
from noisescale.outbox import Outbox
from noisescale.transport.spool import segment
from noisescale.transport.spool.frames import encode
from noisescale.transport.upload import late_delivery
from noisescale.transport.upload.http import HttpServer
from noisescale.transport.upload.late_delivery import REFUSED_SECONDS, adopt, deliver, has_arrived
from noisescale.transport.upload.left_behind import book_of, open_stream, stream_folders, write_down, written_down
from noisescale.transport.wire import RunRecord
from spooled_streams import kill_after, metric, spooled
from stub_server import http_stub

HTML = b"<html><body>413 Request Entity Too Large</body></html>"
NO_STREAM = (404, {}, b'{"type": "/errors/stream-not-found"}')
DELETED = (410, {}, b'{"type": "/errors/run-deleted", "status": 410, "detail": "run was deleted"}')
RUN_UNKNOWN = (404, {}, b'{"type": "/errors/run-not-found", "detail": "no such run"}')
NOT_LIKED = (422, {}, b'{"type": "/errors/invalid-input", "detail": "project: must not be blank"}')
NOBODY = "http://127.0.0.1:9"


@pytest.fixture
def stub(monkeypatch, tmp_path):
    monkeypatch.setenv("NOISESCALE_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NOISESCALE_URL", raising=False)
    monkeypatch.setattr(late_delivery, "PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr("noisescale.commands.sync.PATIENCE_SECONDS", 0.3)
    with http_stub() as running:
        yield running


@pytest.fixture
def server(stub):
    opened = HttpServer(stub.url, None, "noisescale/test")
    yield opened
    opened.close()


@pytest.fixture
def root(tmp_path):
    return tmp_path / "own" / "spool"


def values(stub):
    stored = [stub.ledger.stored[name][seq] for name in stub.ledger.stored for seq in sorted(stub.ledger.stored[name])]
    return [row["value"] for kind, row in stored if kind == "metrics"]


def adopted(root, server):
    return [outcome for outcome in adopt(root, server, "first") if outcome.num_left]


@pytest.mark.thorough
@pytest.mark.parametrize("status", [400, 403, 410, 413, 415, 422])
def test_a_foreign_answer_to_sync_marks_no_folder(stub, root, server, capsys, status):
    spooled(root, range(10), url=stub.url)
    stub.answers += [NO_STREAM, *[(status, {}, HTML)] * 100]

    assert commands.main(["sync", "--url", stub.url]) == 1

    said = capsys.readouterr()
    [folder] = stream_folders(root)
    assert f"answered {status}, and not as noisescale does" in said.err
    assert not folder.is_refused
    stub.answers.clear()
    assert adopted(root, server) == []
    assert values(stub) == list(range(10))


@pytest.mark.parametrize("answer", [RUN_UNKNOWN, NOT_LIKED], ids=["run unknown", "run refused"])
def test_what_the_server_itself_will_not_take_now_stays_and_is_tried_again(stub, root, server, answer):
    spooled(root, range(3), url=stub.url)
    [folder] = stream_folders(root)
    [path] = folder.segment_paths()
    if answer is RUN_UNKNOWN:
        content = bytearray(path.read_bytes())
        content[30] ^= 1  # the run's own record
        path.write_bytes(content)
    stub.answers += [NO_STREAM, answer, answer, answer]

    [left] = adopted(root, server)

    assert left.num_left == 4
    assert "damaged on the disk" in left.reason or "must not be blank" in left.reason
    assert not folder.is_refused
    stub.answers.clear()
    if answer is NOT_LIKED:
        assert adopted(root, server) == []


def test_a_job_tries_again_what_it_could_not_adopt(stub, tmp_path, root, monkeypatch, caplog):
    spooled(root, range(10), url=stub.url)
    monkeypatch.setattr(outbox, "_adopted", set())
    monkeypatch.setattr(outbox, "ADOPTION_PAUSES", (0.05,))
    config = Config(url=stub.url, folders=(tmp_path / "own",))
    box = Outbox("2" * 8, config, lambda: RunRecord({"project": "demo"}, {}), lambda fault: None)
    server_cursor, asked = late_delivery.server_cursor, []

    def in_the_way(server, stream_id):
        asked.append(stream_id)
        stub.answers += [(410, {}, HTML)] if len(asked) < 4 else []
        return server_cursor(server, stream_id)

    monkeypatch.setattr(late_delivery, "server_cursor", in_the_way)
    box.send(metric(77))
    assert box.flush(5)
    deadline = time.monotonic() + 10
    while len(values(stub)) < 11 and time.monotonic() < deadline:
        time.sleep(0.01)
    box.close(1.0)

    assert sorted(values(stub)) == [*range(10), 77]
    assert "11 records that an earlier process of run run has left still wait" in caplog.text
    assert "answered 410, and not as noisescale does" in caplog.text


def test_what_an_older_client_took_for_refused_is_tried_again(stub, root, server):
    spooled(root, range(3), url=stub.url)
    [folder] = stream_folders(root)
    (folder.path / ".refused").write_text("http://any answered 413: nothing can be stored without the first record")

    assert adopted(root, server) == []
    assert values(stub) == [0, 1, 2]
    assert not (folder.path / ".refused").exists()


def test_records_of_a_deleted_run_go_a_week_after_a_person_was_told_and_are_listed(
    stub, root, server, caplog, monkeypatch
):
    spooled(root, range(3), url=stub.url)
    stub.answers += [NO_STREAM, DELETED]
    [left] = adopted(root, server)
    [folder] = stream_folders(root)
    assert "4 records of run run were never stored" in caplog.text
    later, now = time.time() + REFUSED_SECONDS, time.time
    for path in folder.path.iterdir():
        os.utime(path, (0, 0))

    assert adopted(root, server) == []
    assert folder.path.exists(), "age alone is no reason"
    monkeypatch.setattr(late_delivery.time, "time", lambda: later + now() - later + REFUSED_SECONDS + 1)
    caplog.clear()
    assert adopted(root, server) == []

    assert not folder.path.exists()
    assert "4 records of run run are lost, and their folder is deleted" in caplog.text
    [line] = written_down(root)
    assert (line.num_records, line.stream_id) == (4, left.stream_id)


def test_what_is_listed_is_on_the_disk_before_its_folder_goes(root, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: synced.append(os.readlink(f"/proc/self/fd/{descriptor}")))

    root.mkdir(parents=True)
    write_down(root, "run", "stream", 4, "the run was deleted")

    assert synced == [str(book_of(root))]


def test_what_cannot_be_listed_is_not_deleted(stub, root, server, monkeypatch):
    spooled(root, range(3), url=stub.url)
    stub.answers += [NO_STREAM, DELETED]
    adopted(root, server)
    [folder] = stream_folders(root)
    (folder.path / ".told").write_text("0")
    book_of(root).mkdir()

    adopted(root, server)

    assert folder.path.exists()


@pytest.mark.parametrize("command", ["status", "doctor"])
def test_status_and_doctor_name_what_is_stuck_refused_or_gone_and_are_not_content(stub, root, server, capsys, command):
    refused, stuck = spooled(root, range(3), url=stub.url), spooled(root, range(5), url=stub.url)
    folders = {folder.path.name: folder for folder in stream_folders(root)}
    folders[refused.stream_id].refuse("answered 410 run was deleted")
    folders[stuck.stream_id].leave("answered 413, and not as noisescale does")
    late_delivery.write_down(root, "earlier", "stream", 77, "the run was deleted")

    assert commands.main([command, "--url", stub.url]) == 1

    out = capsys.readouterr().out
    assert "refused  4 records of run run: answered 410 run was deleted" in out
    assert "stuck    6 records of run run: answered 413" in out
    assert "lost     77 records of 1 streams were deleted unsent" in out
    assert "state    ready" not in out


def test_status_says_why_the_records_of_a_job_that_has_ended_wait(stub, tmp_path, capsys):
    finished_job(tmp_path / "own", NOBODY, 3)

    assert commands.main(["status", "--url", stub.url]) == 1

    out = capsys.readouterr().out
    assert "stuck    4 records of run 00000000: no server answered" in out
    assert "state    ready" not in out


def test_status_is_not_just_ready_while_records_wait_of_which_nobody_says_why(stub, root, capsys):
    spooled(root, range(3), url=stub.url)

    assert commands.main(["status", "--url", stub.url]) == 0
    assert "what waits on disk was not sent to it yet" in capsys.readouterr().out


def test_status_is_ready_again_when_all_has_arrived(stub, root, server, capsys):
    spooled(root, range(5), url=stub.url)
    [folder] = stream_folders(root)
    folder.leave("answered 413, and not as noisescale does")

    assert commands.main(["sync", "--url", stub.url]) == 0
    assert commands.main(["status", "--url", stub.url]) == 0

    assert "state    ready" in capsys.readouterr().out


def test_sync_without_a_folder_leaves_out_what_is_meant_for_another_server(stub, root, capsys):
    spooled(root, range(3), url=stub.url)
    spooled(root, range(100, 104), url="http://other:8321")

    assert commands.main(["sync", "--url", stub.url]) == 0

    said = capsys.readouterr().out
    assert values(stub) == [0, 1, 2]
    assert "1 stream left out: meant for http://other:8321, where 0 have arrived" in said
    assert "noisescale sync --url http://other:8321" in said
    other = next(one for one in stream_folders(root) if one.meta()["url"] == "http://other:8321")
    assert commands.main(["sync", str(other.path), "--url", stub.url]) == 0, "whoever names the folder means it"
    assert values(stub) == [0, 1, 2, 100, 101, 102, 103]


def test_sync_goes_on_when_a_proxy_has_answered_its_first_question(stub, root, monkeypatch):
    monkeypatch.setattr(late_delivery, "FIRST_PAUSE_SECONDS", 0.01)
    spooled(root, range(3), url=stub.url)
    stub.answers += [(502, {}, HTML)]

    assert commands.main(["sync", "--url", stub.url]) == 0

    assert values(stub) == [0, 1, 2]


def test_a_folder_that_cannot_be_read_keeps_no_other_one_from_being_sent(stub, root, server, capsys):
    spooled(root, range(3), url=stub.url)
    [bad] = stream_folders(root)
    (bad.path / "00000009.seg").mkdir()  # where a file should be: as good as one that the disk cannot read
    spooled(root, range(100, 104), url=stub.url)

    assert commands.main(["sync", "--url", stub.url]) == 1

    assert values(stub) == [100, 101, 102, 103]
    assert bad.path.name[:8] in capsys.readouterr().err
    assert list(adopt(root, server, "first")) == []
    assert bad.path.is_dir()


def test_sync_says_of_a_killed_job_that_its_end_cannot_be_known(stub, root, capsys):
    ended = spooled(root, range(3), url=stub.url)
    kill_after(root, stub.url, range(5))

    assert commands.main(["sync", "--url", stub.url]) == 0

    assert "1 stream of killed jobs: whether they had more than that" in capsys.readouterr().out
    assert has_arrived(next(one for one in stream_folders(root) if one.path.name == ended.stream_id))


def test_the_job_that_adopts_says_the_same(stub, root, server, caplog):
    kill_after(root, stub.url, range(5))

    [outcome] = adopt(root, server, "first")

    assert not outbox._is_left(outcome)
    assert "whether it had more than the 6 records that are known cannot be known" in caplog.text


# ---- the disk is full and no server answers when the job ends


@pytest.fixture
def full_disk(monkeypatch):
    disk = FullDisk(2000)
    monkeypatch.setattr(segment, "os", disk)
    return disk


def finished_job(folder, url, num_records):
    config = Config(url=url, folders=(folder,))
    box = Outbox("0" * 8, config, lambda: RunRecord({"project": "demo"}, {}), lambda fault: None)
    for number in range(num_records):
        box.send(metric(number))
    box.close(1.0)
    return box


def test_records_in_memory_only_at_the_end_are_declared_and_nobody_says_that_they_are_kept(
    stub, tmp_path, root, full_disk, caplog, capsys
):
    finished_job(tmp_path / "own", NOBODY, 1563)

    [folder] = stream_folders(root)
    stream, _ = open_stream(folder)
    num_kept = stream.delivery().num_logged - stream.delivery().num_lost
    num_lost = 1564 - num_kept
    assert f"{num_lost} of 1564 records of run 00000000 are lost: in memory only when the disk" in caplog.text
    assert f"{num_kept} are kept: noisescale sync" in caplog.text
    assert "could not even be written down" not in caplog.text
    full_disk.num_free = 1 << 30
    assert commands.main(["sync", str(folder.path), "--url", stub.url]) == 0
    said = capsys.readouterr().out
    assert f"{num_kept} records sent, 0 there already, 0 left; in all {num_lost} declared lost" in said.replace(":", "")
    stub.ledger.check()
    assert list(stub.ledger.lost[folder.path.name].values()) == ["disk_full"] * num_lost
    assert values(stub) == list(range(num_kept - 1))


def test_a_disk_that_was_full_from_the_start_leaves_the_run_and_what_it_lost(stub, tmp_path, root, full_disk):
    full_disk.num_free = 0
    finished_job(tmp_path / "own", NOBODY, 20)
    [folder] = stream_folders(root)

    assert not has_arrived(folder)
    assert commands.main(["sync", str(folder.path), "--url", stub.url]) == 0

    assert (stub.ledger.kinds(), len(stub.ledger.lost[folder.path.name])) == (["run"], 20)


def test_what_cannot_even_be_written_down_is_said(stub, tmp_path, root, full_disk, caplog, monkeypatch):
    monkeypatch.setattr(
        "noisescale.transport.spool.stream_folder.StreamFolder.write_given_up", lambda folder, frames: False
    )

    finished_job(tmp_path / "own", NOBODY, 100)

    assert "could not even be written down" in caplog.text


def test_without_any_folder_the_end_says_that_records_are_gone(stub, tmp_path, caplog):
    (tmp_path / "file").write_text("")

    finished_job(tmp_path / "file", NOBODY, 10)

    assert "11 records of run 00000000 are in memory only, and are lost when this process ends" in caplog.text
    assert "kept" not in caplog.text


def test_a_loss_behind_the_last_record_is_part_of_the_stream(stub, root):
    """Else a stream whose end is a loss would count as arrived before anybody was told of it."""
    stream = spooled(root, range(3), url=stub.url, is_ended=False)
    with pytest.raises(TypeError):
        stream.append(metric(0)._replace() if False else type(metric(0))(0, 0.0, {"n": object()}))
    stream.end(1)
    [folder] = stream_folders(root)
    folder.acknowledge(4, "first")

    assert not has_arrived(folder)


def test_the_end_of_a_job_says_how_many_are_stored_rejected_and_left(stub, tmp_path, caplog):
    refusal = json.dumps({"type": "/errors/invalid-input", "detail": "step: must be smaller"}).encode()
    config = Config(url=stub.url, folders=(tmp_path / "own",))
    box = Outbox("1" * 8, config, lambda: RunRecord({"project": "demo"}, {}), lambda fault: None)
    box.send(metric(0))
    assert box.flush(5)
    stub.answers.append((422, {}, refusal))

    box.send(metric(1))
    box.close(5.0)

    assert "1 of 3 records of run 11111111 are lost: refused by the server one by one" in caplog.text
    assert "step: must be smaller" in caplog.text


def test_a_torn_record_at_the_end_of_a_killed_job_is_no_loss(stub, root):
    kill_after(root, stub.url, range(5))
    [folder] = stream_folders(root)
    with folder.segment_paths()[0].open("ab") as file:
        file.write(encode(7, metric(5))[:-3])
    server = HttpServer(stub.url, None, "noisescale/test")
    folder.try_lock()

    outcome = deliver(folder, server, lambda acked, logged: None, 5.0)

    folder.release()
    server.close()
    assert (outcome.num_lost, outcome.num_left, outcome.is_cut_off) == (0, 0, True)
