"""The small files of a stream's folder, its lock, and what kind of disk it lies on."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from noisescale.transport.spool.frames import encode, encode_loss, encode_seal
from noisescale.transport.spool.segment import Segment
from noisescale.transport.spool.stream_folder import GIVEN_UP, GIVEN_UP_BYTES, StreamFolder
from noisescale.transport.spool.write_speed import is_on_a_network
from noisescale.transport.upload.left_behind import ended_at, is_cut_off, open_stream, stream_folders
from noisescale.transport.wire import LostRange, RunRecord
from spooled_streams import metric


@pytest.fixture
def folder(tmp_path):
    made = StreamFolder(tmp_path / "spool" / "run" / "stream")
    made.create({"url": "http://any"})
    yield made
    made.release()


class TestNotes:
    def test_a_new_folder_knows_nothing(self, folder):
        assert (folder.acked_seq(), folder.epoch(), folder.settled_at()) == (0, None, None)
        assert (folder.is_refused, folder.has_moved, folder.num_quarantined()) == (False, False, 0)
        assert (folder.segment_paths(), folder.num_bytes(), folder.newest_change()) == ([], 0, 0.0)

    @pytest.mark.parametrize(
        ("content", "acked_seq", "epoch"),
        [(b"12 first", 12, "first"), (b"12 ", 12, None), (b"-3 x", 0, "x"), (b"", 0, None), (b"x y", 0, "y")],
    )
    def test_the_hint_of_what_has_arrived(self, folder, content, acked_seq, epoch):
        (folder.path / ".ack").write_bytes(content)

        assert (folder.acked_seq(), folder.epoch()) == (acked_seq, epoch)

    def test_an_acknowledgement_is_read_back(self, folder):
        folder.acknowledge(7, "first")
        first = (folder.acked_seq(), folder.epoch())
        folder.acknowledge(5, None)

        assert first == (7, "first")
        assert (folder.acked_seq(), folder.epoch()) == (5, None)

    def test_a_settled_stream_is_none_where_something_was_written_since(self, folder):
        (folder.path / "00000001.seg").write_bytes(b"12345")
        folder.settle(3)
        settled = folder.settled_at()
        with (folder.path / "00000001.seg").open("ab") as file:
            file.write(b"6")

        assert (settled, folder.settled_at()) == (3, None)

    def test_what_the_writer_says_of_itself(self, folder):
        found = folder.meta()

        assert (found["url"], found["pid"], found["inode"]) == ("http://any", os.getpid(), os.stat(folder.path).st_ino)
        ticks = found["start_ticks"] / os.sysconf("SC_CLK_TCK")
        uptime = float(Path("/proc/uptime").read_text().split()[0])
        assert 0 < uptime - ticks < 24 * 3600 * 365
        assert found["start_ticks"] == int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])

    @pytest.mark.parametrize("content", [b"[1]", b"{", b"7"])
    def test_what_cannot_be_read_of_it_is_nothing(self, folder, content):
        (folder.path / "meta.json").write_bytes(content)

        assert folder.meta() == {}

    def test_refused_moved_and_put_aside(self, folder):
        folder.refuse("the run was deleted")
        folder.move_to(StreamFolder(folder.path.with_name("another")))
        folder.quarantine(7, b"frame")
        folder.quarantine(8, b"frame")

        assert (folder.is_refused, folder.has_moved, folder.num_quarantined()) == (True, True, 2)
        assert (folder.path / ".refused").read_text() == "/errors/run-deleted the run was deleted"
        assert (folder.path / ".moved").read_text() == "another"
        assert (folder.path / "quarantine" / "000000000007.frame").read_bytes() == b"frame"

    def test_what_is_given_up_fills_the_room_that_was_set_aside_to_its_last_byte_and_no_further(self, folder):
        half = bytes([1]) * (GIVEN_UP_BYTES // 2)

        is_whole = folder.write_given_up([half, half])
        found = folder.given_up()
        is_cut = not folder.write_given_up([half, half, b"2"])

        assert (is_whole, found, is_cut, folder.given_up()) == (True, half + half, True, half + half)

    def test_a_small_file_is_in_place_whole_or_not_at_all(self, folder, monkeypatch):
        folder.write("a", b"before")
        write = os.write
        monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:2]))

        with pytest.raises(OSError, match="wrote 2 of 5 bytes"):
            folder.write("a", b"after")

        assert folder.read("a") == b"before"


class TestFiles:
    def test_its_files_of_records_are_the_numbered_ones_in_order(self, folder):
        for name in ("00000010.seg", "00000002.seg", "x.seg", "00000003.txt"):
            (folder.path / name).write_bytes(b"123")

        assert [path.name for path in folder.segment_paths()] == ["00000002.seg", "00000010.seg"]
        assert folder.num_bytes() == 6

    def test_what_other_streams_of_the_run_have(self, folder):
        other = StreamFolder(folder.path.parent / "other")
        other.create({})
        (other.path / "00000001.seg").write_bytes(b"12345")
        (folder.path / "00000001.seg").write_bytes(b"123")
        other.release()

        assert (folder.num_bytes_beside(), folder.num_bytes()) == (5, 3)

    def test_the_newest_change_is_of_records_and_acknowledgements(self, folder):
        for name, seconds in (("00000001.seg", 100), ("00000002.seg", 300), (".ack", 200), (".refused", 900)):
            (folder.path / name).write_bytes(b"1")
            os.utime(folder.path / name, (seconds, seconds))
        of_records = folder.newest_change()
        os.utime(folder.path / ".ack", (400, 400))

        assert (of_records, folder.newest_change()) == (300, 400)

    def test_a_sync_brings_names_to_the_disk_and_leaves_nothing_open(self, folder, monkeypatch):
        synced = []
        fsync = os.fsync

        def note(descriptor):
            synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", note)
        before = os.listdir("/proc/self/fd")

        folder.sync()

        assert synced == [str(folder.path.resolve())]
        assert os.listdir("/proc/self/fd") == before


class TestLock:
    def test_one_process_at_a_time_holds_it(self, folder):
        assert folder.is_ours
        code = (
            "import sys; from pathlib import Path; from noisescale.transport.spool.stream_folder import StreamFolder;"
            "folder = StreamFolder(Path(sys.argv[1])); print(folder.is_free(), folder.try_lock(), folder.is_ours)"
        )
        command = [sys.executable, "-c", code, str(folder.path)]

        while_ours = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        folder.release()
        afterwards = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

        assert not folder.is_ours
        assert while_ours == ["False", "False", "False"]
        assert afterwards == ["True", "True", "True"]

    def test_to_look_whether_it_is_free_does_not_take_it(self, folder):
        folder.release()

        assert folder.is_free()
        assert not folder.is_ours

    def test_its_descriptor_has_a_high_number_and_is_closed_on_exec(self, folder):
        assert folder._lock >= 512
        assert not os.get_inheritable(folder._lock)


MOUNTS = """\
nonsense
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw
30 22 0:40 / /home rw shared:9 - nfs4 server:/home rw
31 30 8:2 / /home/local rw - xfs /dev/sdb rw
32 22 0:41 / /mnt/with\\040space rw - lustre x rw
33 22 0:42 / /homestead rw - cifs x rw
34 22 0:43 / /data rw - ext4 x rw
35 22 0:43 / /data rw - fuse.sshfs x rw
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/tmp/spool", False),
        ("/home/ada/spool", True),
        ("/home", True),
        ("/home/local/spool", False),
        ("/homes/ada", False),
        ("/homestead/x", True),
        ("/mnt/with space/x", True),
        ("/mnt/other", False),
        ("/data/x", True),
    ],
)
def test_on_which_file_systems_a_write_may_take_seconds(monkeypatch, path, expected):
    monkeypatch.setattr(Path, "read_text", lambda self: MOUNTS)
    monkeypatch.setattr(os.path, "realpath", lambda given: str(given))

    assert is_on_a_network(Path(path)) == expected


@pytest.mark.parametrize("line", ["40 24 8:1 / - nfs4 server:/x rw", "41 24 8:1 / /home rw,relatime"])
def test_a_line_about_a_file_system_that_lacks_something_says_nothing(monkeypatch, line):
    monkeypatch.setattr(Path, "read_text", lambda self: line)

    assert not is_on_a_network(Path("/home"))


def test_where_nobody_says_it_is_not_on_a_network(monkeypatch):
    def refuse(path):
        raise PermissionError(path)

    monkeypatch.setattr(Path, "read_text", refuse)

    assert not is_on_a_network(Path("/home"))


def test_a_folder_of_somebody_else_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 12345)

    with pytest.raises(PermissionError, match="belongs to somebody else"):
        StreamFolder(tmp_path / "run" / "stream").create({})


def test_ages_are_told_by_the_clock(folder):
    folder.acknowledge(1, None)

    assert abs(time.time() - folder.newest_change()) < 60


class TestLinks:
    """Somebody who may write beside our files must not lead us to others: no link is followed."""

    @pytest.fixture
    def victim(self, tmp_path):
        made = tmp_path / "victim"
        made.write_bytes(b"precious")
        return made

    def test_a_small_file_is_not_written_through_one(self, folder, victim):
        (folder.path / "a.new").symlink_to(victim)

        with pytest.raises(OSError):  # noqa: PT011
            folder.write("a", b"x")

        assert victim.read_bytes() == b"precious"

    def test_a_small_file_is_not_read_through_one(self, folder, victim):
        (folder.path / "a").symlink_to(victim)

        with pytest.raises(OSError):  # noqa: PT011
            folder.read("a")

    def test_a_lock_is_not_taken_through_one(self, tmp_path, victim):
        other = StreamFolder(tmp_path / "other")
        other.path.mkdir()
        (other.path / "lock").symlink_to(victim)

        with pytest.raises(OSError):  # noqa: PT011
            other.try_lock()

    def test_a_file_of_records_is_neither_made_nor_read_through_one(self, folder, victim, tmp_path):
        path = folder.path / "00000001.seg"
        path.symlink_to(victim)

        with pytest.raises(OSError):  # noqa: PT011
            Segment(path).create()
        with pytest.raises(OSError):  # noqa: PT011
            Segment(path).read(0, 10)
        for look in (open_stream, ended_at):
            with pytest.raises(OSError):  # noqa: PT011
                look(folder)


class TestWhatWasLeft:
    def test_a_stream_without_a_record_is_empty(self, folder):
        stream, _ = open_stream(folder)

        assert (stream.delivery().num_logged, stream.delivery().num_acked, stream.delivery().num_lost) == (0, 0, 0)
        assert ended_at(folder) is None
        assert stream.next_batch(max_records=9, max_bytes=1 << 20) is None

    def test_a_stream_whose_file_is_damaged_throughout_has_no_record(self, folder):
        (folder.path / "00000001.seg").write_bytes(b"nothing that is a frame")

        stream, _ = open_stream(folder)

        assert (stream.delivery().num_logged, stream.delivery().num_lost) == (0, 0)

    @pytest.mark.parametrize(
        ("frames", "expected"),
        [([], None), ([2, 3], None), ([2, 3, "seal"], 3), (["seal"], 1), ([2, "seal", 3], None)],
    )
    def test_it_has_ended_where_its_last_file_ends_with_a_seal(self, folder, frames, expected):
        head = encode(1, RunRecord({}, {}))
        parts, last = [head], 1
        for one in frames:
            last = last if one == "seal" else one
            parts.append(encode_seal(last) if one == "seal" else encode(one, metric(one)))
        (folder.path / "00000001.seg").write_bytes(head + encode_seal(1))
        (folder.path / "00000002.seg").write_bytes(b"".join(parts))

        assert ended_at(folder) == expected

    @pytest.mark.parametrize(
        ("is_sealed", "expected"),
        [([], False), ([False], True), ([True], False), ([False, False, True], False), ([True, True, False], True)],
    )
    def test_it_is_cut_off_where_its_last_file_has_no_seal(self, folder, is_sealed, expected):
        for number, has_seal in enumerate(is_sealed, start=1):
            frames = encode(1, RunRecord({}, {})) + (encode_seal(1) if has_seal else b"")
            (folder.path / f"{number:08d}.seg").write_bytes(frames)

        assert is_cut_off(folder) == expected

    def test_it_is_not_cut_off_where_its_writer_said_beside_the_files_where_it_ended(self, folder):
        (folder.path / "00000001.seg").write_bytes(encode(1, RunRecord({}, {})))
        folder.write(GIVEN_UP, encode_seal(7))

        assert not is_cut_off(folder)

    def test_records_losses_and_the_seal_say_how_far_it_is_written(self, folder):
        head = encode(1, RunRecord({}, {}))
        first = [head, encode(2, metric(2)), encode_loss(LostRange(3, 4, "disk_full")), encode_seal(4)]
        second = [head, encode(5, metric(5)), encode_loss(LostRange(6, 9, "spool_full"))]
        (folder.path / "00000001.seg").write_bytes(b"".join(first))
        (folder.path / "00000002.seg").write_bytes(b"".join(second))
        folder.acknowledge(2, None)

        stream, spool = open_stream(folder)
        of_server, _ = open_stream(folder, 4)

        found = stream.delivery()
        assert (found.num_logged, found.num_acked, found.num_lost) == (9, 2, 6)
        assert of_server.delivery().num_acked == 4
        assert spool.first_held(1) == 2
        batch = stream.next_batch(max_records=9, max_bytes=1 << 20)
        assert ([seq for seq, _ in batch.records], [(one.first, one.last) for one in batch.lost]) == (
            [5],
            [(3, 4), (6, 9)],
        )

    def test_its_folders_are_found_at_any_depth_and_only_with_a_lock(self, folder, tmp_path):
        (folder.path.parent / "no stream").mkdir()

        for root in (tmp_path, tmp_path / "spool", folder.path.parent, folder.path):
            assert [one.path for one in stream_folders(root)] == [folder.path]
        assert list(stream_folders(tmp_path / "nowhere")) == []
