"""Records whose stream turns out to be somebody else's go on in a new folder: all of them, or nothing has changed."""

import contextlib
import errno
import os
import time
from types import SimpleNamespace

import pytest

from full_disk import FullDisk
from noisescale.transport.limits import Limits
from noisescale.transport.spool import segment, stream_folder
from noisescale.transport.spool.disk_spool import DiskSpool
from noisescale.transport.spool.frames import decode
from noisescale.transport.spool.stream_folder import StreamFolder
from noisescale.transport.upload import late_delivery, uploader
from noisescale.transport.upload.http import HttpServer
from noisescale.transport.upload.late_delivery import KEPT_SECONDS, adopt
from noisescale.transport.upload.left_behind import ended_at, open_stream, stream_folders
from noisescale.transport.upload.stream import Stream
from noisescale.transport.upload.uploader import Uploader
from noisescale.transport.wire import LostRange, RunRecord
from noisescale_core.errors import TransportError
from spooled_streams import deliver, make_stream, metric, numbers, spooled
from stub_server import FakeServer, Ledger, answering, http_stub

SMALL = Limits(segment_bytes=300, free_share=0.0)


@pytest.fixture
def disk(monkeypatch):
    """Full as soon as `num_free` is 0."""
    disk = FullDisk(1 << 30)
    monkeypatch.setattr(segment, "os", disk)
    monkeypatch.setattr(stream_folder, "os", disk)
    return disk


@pytest.fixture
def stub(monkeypatch, tmp_path):
    monkeypatch.setattr(late_delivery, "PATIENCE_SECONDS", 0.3)
    with http_stub() as running:
        yield running


@pytest.fixture
def server(stub):
    opened = HttpServer(stub.url, None, "noisescale/test")
    yield opened
    opened.close()


def in_conflict(root, *, url="http://any", limits=SMALL):
    """A stream of the numbers 0 to 9, of which 0 to 2 have arrived and 3 to 6 are on their way, with its ledger."""
    spool = DiskSpool([root], {"url": url}, limits=limits, durability="direct")
    stream, ledger = Stream("run", spool, lambda: RunRecord({"project": "demo"}, {})), Ledger()
    for number in range(10):
        stream.append(metric(number))
    deliver(stream, ledger, max_records=4, max_batches=1)
    stream.next_batch(max_records=4, max_bytes=1 << 20)
    return stream, ledger


def values_in(root):
    """The numbers that somebody may still send, of each folder that counts."""
    streams = [open_stream(folder) for folder in stream_folders(root) if not folder.has_moved]
    held = [spool.oldest(0, 1 << 40, max_records=1 << 40, max_bytes=1 << 40).frames for _, spool in streams]
    return [[int(record.values["n"]) for _, record in map(decode, frames[1:])] for frames in held]


def test_without_room_on_the_disk_all_stays_as_it_is_until_there_is_some(tmp_path, disk):
    stream, ledger = in_conflict(tmp_path)
    before, on_its_way = stream.stream_id, stream.next_batch(max_records=4, max_bytes=1 << 20)
    disk.num_free = 0

    assert not stream.start_anew()

    again = stream.next_batch(max_records=4, max_bytes=1 << 20)
    assert (stream.stream_id, again.first_seq, again.last_seq) == (before, on_its_way.first_seq, on_its_way.last_seq)
    assert [path.name for path in tmp_path.glob("run/*")] == [before]
    disk.num_free = 1 << 30
    assert stream.start_anew()
    deliver(stream, ledger)
    assert numbers(ledger, stream) == list(range(3, 10))
    stream.end(5)
    assert values_in(tmp_path) == [list(range(3, 10))]
    ledger.check()


@pytest.mark.parametrize("num_free", [0, 1, 150, 300, 400, 500, 700, 17_500])
def test_however_little_room_there_is_a_new_folder_has_all_or_is_none(tmp_path, disk, num_free):
    stream, _ = in_conflict(tmp_path)
    disk.num_free = num_free

    is_new = stream.start_anew()

    assert values_in(tmp_path) == [list(range(3 if is_new else 0, 10))]
    assert stream.delivery().num_lost == 0
    assert len([*tmp_path.glob("run/*")]) == 1 + is_new
    disk.num_free = 1 << 30
    stream.end(5)


def test_while_a_thread_writes_memory_is_no_limit_to_what_goes_on(tmp_path):
    limits = Limits(free_share=0.0, memory_records=5)
    stream, ledger = make_stream(tmp_path, limits=limits, durability="async"), Ledger()
    for number in range(50):
        stream.append(metric(number))
        while stream._spool.num_in_memory:
            time.sleep(0.001)

    assert stream.start_anew()

    deliver(stream, ledger)
    assert numbers(ledger, stream) == list(range(50))
    stream.end(5)


def test_losses_go_on_as_well(tmp_path):
    stream, _ = in_conflict(tmp_path)
    stream.reject(6)

    stream.start_anew()
    stream.end(5)

    [new] = [folder for folder in stream_folders(tmp_path) if not folder.has_moved]
    assert values_in(tmp_path) == [[3, 5, 6, 7, 8, 9]]
    assert open_stream(new)[0]._lost == [LostRange(3, 3, "rejected")]


def test_what_stayed_without_room_is_sent_later_under_a_new_id_whatever_the_server_has_under_the_old_one(
    tmp_path, disk, stub, server, caplog
):
    """A job that ends on the full disk; under its id the server has 9 records, of which 6 are somebody else's."""
    stream, _ = in_conflict(tmp_path, url=stub.url)
    stub.ledger.acked[stream.stream_id] = 10
    stub.ledger.stored[stream.stream_id] = {seq: ("metrics", {"value": -1.0}) for seq in range(1, 11)}
    disk.num_free = 0
    stream.start_anew()
    stream.end(5)

    [waits] = adopt(tmp_path, server, "first")
    assert waits.num_left == 7
    assert "there is no room for a new one" in waits.reason
    assert values_in(tmp_path) == [list(range(10))]

    disk.num_free = 1 << 30
    [sent] = adopt(tmp_path, server, "first")
    assert (sent.num_left, sent.num_delivered) == (0, 8)
    [new] = stub.ledger.stored.keys() - {stream.stream_id}
    found = [row["value"] for kind, row in stub.ledger.stored[new].values() if kind == "metrics"]
    assert found == list(range(3, 10))
    assert [*adopt(tmp_path, server, "first")] == []


def test_a_conflict_that_the_server_knows_nothing_of_is_forgotten_when_it_takes_the_records(
    tmp_path, disk, stub, server
):
    """Somebody had answered in its place; who finds the folder goes on where the server stands."""
    stream, _ = in_conflict(tmp_path, url=stub.url)
    disk.num_free = 0
    assert not stream.start_anew()
    disk.num_free = 1 << 30

    deliver(stream, stub.ledger, max_records=4)
    stream.append(metric(10))
    stream.end(5)

    [sent] = adopt(tmp_path, server, "first")
    assert (sent.num_there, sent.num_delivered) == (11, 1)
    assert [*stub.ledger.stored] == [stream.stream_id]


@pytest.mark.parametrize("is_noted", [True, False])
def test_who_sends_for_a_process_that_lives_leaves_a_conflict_to_it(tmp_path, stub, server, monkeypatch, is_noted):
    stream, _ = in_conflict(tmp_path, url=stub.url)
    [folder] = stream_folders(tmp_path)
    if is_noted:
        folder.note_conflict(4)
    conflict = (409, {}, b'{"type": "/errors/stream-conflict"}')
    stub.answers += [(404, {}, b'{"type": "/errors/stream-not-found"}'), *[conflict] * 100]

    try:
        reason = late_delivery.deliver(folder, server, lambda acked, logged: None, 0.3).reason
    except TransportError as error:
        reason = str(error)

    assert ("its process is still running" if is_noted else "this stream is not ours") in reason
    assert [one.path for one in stream_folders(tmp_path)] == [folder.path]
    assert not folder.has_moved
    stream.end(5)


def test_the_job_says_that_there_is_no_room_and_goes_on_when_there_is(tmp_path, disk, monkeypatch, caplog):
    monkeypatch.setattr(uploader, "LAST_BACKOFF_SECONDS", 0.02)
    stream, _ = in_conflict(tmp_path)
    before, server = stream.stream_id, FakeServer()
    conflict = {"type": "/errors/stream-conflict", "detail": "these came before"}
    server.faults = [answering(409, conflict)] * 1000
    disk.num_free = 0
    sender = Uploader(stream, server, lambda fault: None, first_backoff_seconds=0.005, interval_seconds=0.005)

    sender.notify(1)
    wait_until(lambda: len(server.bodies) > 3)

    assert "there is no room for a new one" in sender.trouble
    assert "there is no room for a new one" in caplog.text
    assert {body["last_seq"] for body in server.bodies} == {8}, "the batch that the server knows by its checksum"
    disk.num_free, server.faults = 1 << 30, [answering(409, conflict)]
    wait_until(lambda: not stream.delivery().num_waiting)
    assert stream.stream_id != before
    assert numbers(server.ledger, stream) == list(range(3, 10))
    sender.close()
    stream.end(5)


@pytest.mark.parametrize("call", ["open", "write", "rename", "mkdir", "ftruncate"])
def test_whichever_system_call_fails_a_new_folder_has_all_or_is_none(tmp_path, monkeypatch, call):
    for fails_at in range(1, 40):
        root = tmp_path / str(fails_at)
        stream, _ = in_conflict(root)
        calls = SimpleNamespace(count=0)
        made = getattr(os, call)

        def fail(*arguments, calls=calls, made=made, fails_at=fails_at, **named):
            calls.count += 1
            if calls.count == fails_at:
                raise OSError(errno.EIO, "Input/output error")
            return made(*arguments, **named)

        with monkeypatch.context() as patch:
            patch.setattr(os, call, fail)
            is_new = stream.start_anew()
        assert values_in(root) == [list(range(3 if is_new else 0, 10))]
        assert stream.delivery().num_lost == 0
        stream.end(5)
        if calls.count < fails_at:
            return
    pytest.fail("never without a fault")


def test_a_new_folder_that_failed_keeps_no_descriptor(tmp_path, disk):
    stream, _ = in_conflict(tmp_path)
    disk.num_free = 700

    assert not stream.start_anew()

    def opened():
        paths = [path for path in map(opened_as, os.listdir("/proc/self/fd")) if path.startswith(str(tmp_path))]
        return [path for path in paths if stream.stream_id not in path]

    wait_until(lambda: not opened())  # who brings files to the disk opens the run's folder for a moment
    disk.num_free = 1 << 30
    stream.end(5)


def test_both_streams_end_with_their_last_record_and_go_to_the_disk(tmp_path):
    stream, _ = in_conflict(tmp_path)
    [old] = stream_folders(tmp_path)

    assert stream.start_anew()
    assert stream._spool._thread is not None, "who brings it to the disk"
    stream.end(5)

    [new] = [folder for folder in stream_folders(tmp_path) if not folder.has_moved]
    assert (ended_at(old), ended_at(new)) == (11, 8)


class TestTwoRoots:
    @pytest.fixture
    def roots(self, tmp_path, monkeypatch):
        """Two, of which the first takes nothing as soon as it is told so."""
        first, second = tmp_path / "first", tmp_path / "second"
        refusing, create = [], StreamFolder.create

        def created(folder, meta):
            create(folder, meta)
            if refusing and folder.path.is_relative_to(first):
                raise OSError(errno.EROFS, "Read-only file system")

        monkeypatch.setattr(StreamFolder, "create", created)
        return first, second, refusing

    def stream(self, roots):
        spool = DiskSpool(roots[:2], limits=SMALL, durability="direct")
        stream = Stream("run", spool, lambda: RunRecord({"project": "demo"}, {}))
        for number in range(4):
            stream.append(metric(number))
        return stream

    def test_the_second_takes_what_the_first_has_no_room_for(self, roots):
        first, second, refusing = roots
        stream = self.stream(roots)
        refusing.append(True)

        assert stream.start_anew()
        stream.end(5)

        [old], [new] = stream_folders(first), stream_folders(second)
        assert (old.has_moved, values_in(second)) == (True, [[0, 1, 2, 3]])
        assert new.meta()["takes_over"] == str(old.path)
        (old.path / ".moved").unlink()
        assert [*stream_folders(second)] == [], "not before all of it is there"

    def test_a_new_stream_leaves_nothing_where_it_could_not_begin(self, roots):
        first, second, refusing = roots
        refusing.append(True)

        self.stream(roots).end(5)

        assert ([*first.glob("run/*")], values_in(second)) == ([], [[0, 1, 2, 3]])


def make_older(path, seconds):
    then = time.time() - seconds
    for one in path.iterdir():
        os.utime(one, (then, then))


class TestTheFolderBefore:
    def conflict(self, root, stub):
        """The old folder and the new one; nothing of the new one has arrived."""
        stream, _ = in_conflict(root, url=stub.url)
        before = stream.stream_id
        stream.start_anew()
        stream.end(5)
        return StreamFolder(root / "run" / before), StreamFolder(root / "run" / stream.stream_id)

    def test_goes_a_day_after_all_its_records_have_arrived_from_the_new_one(self, tmp_path, stub, server):
        old, new = self.conflict(tmp_path, stub)
        make_older(old.path, KEPT_SECONDS + 3600)
        stub.answers += [(401, {}, b'{"type": "/errors/not-authenticated"}')]

        assert [one.num_left for one in adopt(tmp_path, server, "first")] == [8]
        assert old.path.is_dir(), "the new one has not arrived"
        assert [one.num_left for one in adopt(tmp_path, server, "first")] == [0]

        assert not old.path.exists()
        assert new.path.is_dir(), "kept for a day"

    def test_stays_for_a_day(self, tmp_path, stub, server):
        old, _ = self.conflict(tmp_path, stub)
        make_older(old.path, KEPT_SECONDS - 3600)

        assert [one.num_left for one in adopt(tmp_path, server, "first")] == [0]

        assert old.path.is_dir()

    def test_goes_where_the_new_one_is_gone(self, tmp_path, stub, server):
        old, new = self.conflict(tmp_path, stub)
        new.remove()
        make_older(old.path, KEPT_SECONDS + 3600)

        assert [*adopt(tmp_path, server, "first")] == []

        assert not old.path.exists()

    def test_takes_copies_that_were_never_finished_with_it(self, tmp_path, stub, server):
        """Else they would count as streams as soon as it is gone."""
        spooled(tmp_path, range(5), url=stub.url)
        [old] = stream_folders(tmp_path)
        copy = StreamFolder(old.path.with_name("copy"))
        copy.create({"url": stub.url, stream_folder.TAKES_OVER: old.path.name})
        (copy.path / "00000001.seg").write_bytes(old.segment_paths()[0].read_bytes())
        copy.release()
        assert [one.num_delivered for one in adopt(tmp_path, server, "first")] == [6]
        make_older(old.path, KEPT_SECONDS + 3600)

        assert [*adopt(tmp_path, server, "first")] == []

        assert [*tmp_path.glob("run/*")] == []
        assert len(stub.ledger.stored) == 1

    def test_takes_no_room_from_the_run(self, tmp_path, stub):
        old, new = self.conflict(tmp_path, stub)

        assert old.num_bytes() > 0
        assert new.num_bytes_beside() == 0


def opened_as(descriptor):
    with contextlib.suppress(FileNotFoundError):  # closed by now
        return os.readlink(f"/proc/self/fd/{descriptor}")
    return ""


def wait_until(is_so, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.002)
