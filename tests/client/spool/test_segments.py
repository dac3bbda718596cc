"""Files of frames by themselves: what is appended, read, kept and given up."""

import errno
import os
import random
import time
from types import SimpleNamespace

import pytest

from noisescale.transport.limits import Limits
from noisescale.transport.spool.frames import SEAL, encode, encode_loss, encode_seal, frames_in, seq_of
from noisescale.transport.spool.loss_book import LossBook
from noisescale.transport.spool.segment import ClosedByOthers, Segment
from noisescale.transport.spool.segments import MAX_FAILED_READS, NoRoom, Room, Segments
from noisescale.transport.spool.stream_folder import StreamFolder
from noisescale.transport.wire import LostRange, RunRecord
from spooled_streams import metric

FRAME_BYTES = len(encode(2, metric(2)))
HEAD = encode(1, RunRecord({"project": "demo"}, {}))


def frame(seq):
    return encode(seq, metric(2))


def seqs(frames):
    return [seq_of(one) for one in frames]


@pytest.fixture
def folder(tmp_path):
    made = StreamFolder(tmp_path / "run" / "stream")
    made.create({})
    yield made
    made.release()


@pytest.fixture
def make(folder):
    """Makes files of so many frames each, numbered on from 2."""
    made = []

    def files(*counts, head=b"", segment_bytes=10_000):
        segments = Segments(segment_bytes)
        made.append(segments)
        seq = 2
        for count in counts:
            segments.start(folder, head)
            for _ in range(count):
                segments.newest.append(frame(seq), seq)
                seq += 1
        return segments

    yield files
    for segments in made:
        segments.close()


class TestFramesInBytes:
    def test_damage_of_any_byte_costs_the_frames_that_it_is_in_and_no_other(self):
        data = b"".join(map(frame, range(2, 7)))
        rng = random.Random(3)
        for at in range(len(data)):
            damaged = bytearray(data)
            damaged[at] ^= 1 << rng.randrange(8)

            found = [one.seq for one in frames_in(bytes(damaged))]

            lost = 2 + at // FRAME_BYTES
            assert found == [seq for seq in range(2, 7) if seq != lost], at

    def test_what_lies_between_frames_is_passed_over(self):
        data = b"noise" + frame(2) + b"\xf5\xb1MS" + frame(3) + b"noise" + frame(4)[:-1]

        found = list(frames_in(data))

        assert [one.seq for one in found] == [2, 3]
        assert [data[: one.end].endswith(one.frame) for one in found] == [True, True]
        assert found[0].frame == frame(2)

    def test_losses_and_seals_are_no_records(self):
        data = frame(2) + encode_loss(LostRange(3, 4, "a")) + encode_seal(4)

        assert [(one.seq, one.is_record) for one in frames_in(data)] == [(2, True), (3, False), (4, False)]


class TestSegment:
    def test_it_knows_its_records_and_its_bytes(self, tmp_path):
        segment = Segment(tmp_path / "1.seg")
        segment.create()
        segment.append(HEAD, 0)
        first = (segment.first_seq, segment.last_seq, segment.size)
        segment.append(frame(5), 5)
        segment.append(frame(6), 6)

        assert first == (0, 0, len(HEAD))
        assert (segment.first_seq, segment.last_seq, segment.size) == (5, 6, len(HEAD) + 2 * FRAME_BYTES)
        assert segment.is_dirty
        segment.sync()
        assert not segment.is_dirty
        assert abs(segment.created_at - time.time()) < 60
        segment.close()

    def test_a_torn_write_leaves_the_file_as_it_was_and_open(self, tmp_path, monkeypatch):
        segment = Segment(tmp_path / "1.seg")
        segment.create()
        segment.append(frame(2), 2)
        write = os.write
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:10]))
            with pytest.raises(OSError, match=f"wrote 10 of {FRAME_BYTES} bytes"):
                segment.append(frame(3), 3)

        assert not segment.is_sealed
        assert (segment.size, segment.last_seq) == (FRAME_BYTES, 2)
        assert segment.path.read_bytes() == frame(2)
        segment.close()

    def test_a_seal_ends_it_once(self, tmp_path):
        segment = Segment(tmp_path / "1.seg")
        segment.create()
        segment.append(frame(2), 2)
        segment.sync()

        segment.seal()
        segment.seal()

        assert segment.is_sealed
        assert segment.is_dirty
        assert segment.path.read_bytes() == frame(2) + encode_seal(2)
        segment.close()

    def test_what_the_program_has_closed_is_sealed_and_read_by_its_path(self, tmp_path):
        segment = Segment(tmp_path / "1.seg")
        segment.create()
        segment.append(frame(2), 2)
        os.close(segment._descriptor)

        with pytest.raises(ClosedByOthers):
            segment.append(frame(3), 3)
        with pytest.raises(ClosedByOthers):
            segment.append(frame(3), 3)

        assert segment.is_sealed
        assert segment.read(0, 10_000) == frame(2)
        segment.sync()

    @pytest.mark.parametrize("how", ["read", "sync"])
    def test_closed_by_others_is_noticed_by_whoever_comes_first(self, tmp_path, how):
        segment = Segment(tmp_path / "1.seg")
        segment.create()
        segment.append(frame(2), 2)
        os.close(segment._descriptor)

        if how == "read":
            assert segment.read(5, 7) == frame(2)[5:12]
        else:
            segment.sync()

        assert segment.is_sealed

    @pytest.mark.parametrize(("how", "call"), [("read", "pread"), ("sync", "fdatasync")])
    def test_a_fault_of_the_disk_is_told(self, tmp_path, monkeypatch, how, call):
        segment = Segment(tmp_path / "1.seg")
        segment.create()

        faults, made = [OSError(errno.EIO, "input/output error")], getattr(os, call)

        def fail_once(*arguments):
            if faults:
                raise faults.pop()
            return made(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(os, call, fail_once)
            with pytest.raises(OSError, match="input/output"):
                segment.read(0, 1) if how == "read" else segment.sync()

        assert not segment.is_sealed, "and no second descriptor is asked, which may know nothing of it"
        segment.close()

    @pytest.mark.parametrize("how", ["read", "sync"])
    def test_who_comes_by_its_path_gives_the_descriptor_back(self, tmp_path, monkeypatch, how):
        segment = Segment(tmp_path / "1.seg")
        segment.create()
        segment.close()
        opened, closed, close, made = [], [], os.close, os.open
        monkeypatch.setattr(os, "open", lambda *arguments: opened.append(made(*arguments)) or opened[-1])
        monkeypatch.setattr(os, "close", lambda descriptor: closed.append(descriptor) or close(descriptor))

        segment.read(0, 1) if how == "read" else segment.sync()

        assert len(opened) == 1
        assert closed == opened

    def test_its_descriptor_has_a_high_number_and_reads_when_its_name_is_gone(self, tmp_path):
        segment = Segment(tmp_path / "1.seg")
        segment.create()
        segment.append(frame(2), 2)
        in_place = segment.is_in_place()
        segment.remove()

        assert in_place
        assert segment._descriptor >= 512
        assert not segment.is_in_place()
        assert segment.read(0, 10_000) == frame(2)
        segment.close()
        segment.sync()
        with pytest.raises(FileNotFoundError):
            segment.read(0, 1)

    def test_another_file_under_its_name_is_not_it(self, tmp_path):
        segment = Segment(tmp_path / "1.seg")
        segment.create()
        segment.remove()
        (tmp_path / "1.seg").write_bytes(b"")

        assert not segment.is_in_place()
        segment.close()
        assert segment.is_in_place(), "without a descriptor nobody can tell"

    def test_there_is_never_one_before(self, tmp_path):
        (tmp_path / "1.seg").write_bytes(b"x")

        with pytest.raises(FileExistsError):
            Segment(tmp_path / "1.seg").create()


class TestSegments:
    def test_a_file_takes_frames_up_to_its_size(self, make):
        segments = make(2, segment_bytes=3 * FRAME_BYTES)

        assert segments.with_room(FRAME_BYTES) is not None
        assert segments.with_room(FRAME_BYTES + 1) is None
        assert segments.with_room(0) is not None
        segments.seal(3)
        assert segments.with_room(0) is None

    def test_an_empty_file_takes_any_frame(self, make):
        assert make(0, segment_bytes=10).with_room(10_000) is not None

    def test_files_are_numbered_and_each_but_the_newest_ends_with_a_seal(self, make, folder):
        segments = make(2, 1, 3, head=HEAD)

        assert [path.name for path in folder.segment_paths()] == ["00000001.seg", "00000002.seg", "00000003.seg"]
        ends = [[one.kind for one in frames_in(path.read_bytes())][-1] == SEAL for path in folder.segment_paths()]
        assert ends == [True, True, False]
        assert all(path.read_bytes().startswith(HEAD) for path in folder.segment_paths())
        sizes = [one.size for one in segments.listed()]
        assert segments.num_bytes == sum(sizes) == 3 * len(HEAD) + 6 * FRAME_BYTES

    def test_a_file_of_another_process_counts_and_numbers_go_on_behind_it(self, make, folder):
        segments = make()
        for number in (7, 3):
            found = Segment(folder.path / f"{number:08d}.seg", size=5, first_seq=2, last_seq=3)
            segments.add(found.path, found)

        segments.start(folder, b"")

        assert segments.newest.path.name == "00000008.seg"

    def test_a_file_that_cannot_take_its_head_is_not_there(self, make, folder, monkeypatch):
        segments = make(1)

        def fail(*_):
            raise OSError(errno.ENOSPC, "full")

        with monkeypatch.context() as patch:
            patch.setattr(Segment, "append", fail)
            with pytest.raises(OSError, match="full"):
                segments.start(folder, HEAD)

        assert [path.name for path in folder.segment_paths()] == ["00000001.seg"]
        assert not segments.newest.is_sealed

    def test_records_are_read_on_from_any_number(self, make):
        segments = make(3, 2, 4, head=HEAD)

        for after in range(12):
            found = seqs(segments.records_after(after))
            assert [seq for seq in found if seq > 1] == [seq for seq in range(2, 11) if seq > after]
            assert found.count(1) == (3 if after == 0 else 0), "each file is headed by the run's own record"
        assert seqs(segments.records(segments.listed()[1:], after=5)) == [6, 7, 8, 9, 10]
        assert segments.first_seq() == 2

    def test_reading_goes_on_where_the_last_delivery_ended(self, make):
        segments = make(3, 2, 4)
        list(segments.records_after(0))
        segments.trim(6, max_bytes=1 << 20, max_seconds=1e9)
        reads = []
        for segment in segments.listed():
            read = segment.read
            segment.read = lambda offset, length, read=read, path=segment.path: (
                reads.append((path.stem[-1], offset)) or read(offset, length)
            )

        assert seqs(segments.records_after(6)) == [7, 8, 9, 10]
        assert reads == [("3", 0)] or reads == [("2", 2 * FRAME_BYTES), ("3", 0)]
        assert seqs(segments.records_after(3)) == [4, 5, 6, 7, 8, 9, 10], "a server may go back"

    def test_reading_goes_on_in_the_middle_of_a_file(self, make, monkeypatch):
        segments = make(3, 2, 4)
        list(segments.records_after(0))
        segments.trim(5, max_bytes=1 << 20, max_seconds=1e9)
        reads = []
        for segment in segments.listed():
            monkeypatch.setattr(
                segment,
                "read",
                lambda offset, length, read=segment.read, path=segment.path: (
                    reads.append((path.stem[-1], offset)) or read(offset, length)
                ),
            )

        assert seqs(segments.records_after(5)) == [6, 7, 8, 9, 10]
        assert reads[0][0] == "2"
        assert reads[0][1] > 0

    def test_a_file_whose_last_record_is_the_last_that_has_arrived_goes_too(self, make):
        segments = make(2, 2, 2)

        segments.trim(5, max_bytes=0, max_seconds=60)

        assert [one.first_seq for one in segments.listed()] == [6]

    def test_what_has_arrived_whole_goes_when_there_is_too_much_of_it(self, make):
        segments = make(2, 2, 2, 2)
        sizes = [one.size for one in segments.listed()]

        segments.trim(6, max_bytes=1 << 20, max_seconds=60)
        all_kept = len(segments.listed())
        segments.trim(6, max_bytes=sizes[1] + sizes[0], max_seconds=60)
        kept_at_the_limit = len(segments.listed())
        segments.trim(6, max_bytes=sizes[1], max_seconds=60)
        first = segments.listed()[0].first_seq
        segments.trim(9, max_bytes=0, max_seconds=60)

        assert (all_kept, kept_at_the_limit, first) == (4, 4, 4)
        assert [one.first_seq for one in segments.listed()] == [8], "the newest takes frames"

    def test_what_has_arrived_whole_goes_when_it_is_too_old(self, make):
        segments = make(2, 2, 2)
        segments.listed()[0].created_at -= 61
        segments.listed()[1].created_at -= 59

        segments.trim(9, max_bytes=1 << 20, max_seconds=60)

        assert [one.first_seq for one in segments.listed()] == [4, 6]
        assert segments.num_drops == 1

    def test_a_file_that_has_not_arrived_whole_stays_however_old(self, make):
        segments = make(2, 2, 2)
        for one in segments.listed():
            one.created_at -= 1e6

        segments.trim(4, max_bytes=0, max_seconds=1)

        assert [one.first_seq for one in segments.listed()] == [4, 6]

    def test_a_file_that_fails_is_tried_for_minutes_and_then_passed_over(self, make, monkeypatch):
        segments = make(2, 2)
        bad = segments.listed()[0]

        def fail(*_):
            raise OSError(errno.EIO, "input/output error")

        monkeypatch.setattr(bad, "read", fail)
        for _ in range(MAX_FAILED_READS):
            with pytest.raises(OSError, match="input/output"):
                list(segments.records_after(0))

        assert MAX_FAILED_READS == 20
        assert seqs(segments.records_after(0)) == [4, 5]

    def test_a_read_that_succeeds_counts_failures_anew(self, make, monkeypatch):
        segments = make(2)
        segments.newest.num_failed_reads = MAX_FAILED_READS - 1

        assert seqs(segments.records_after(0)) == [2, 3]
        assert segments.newest.num_failed_reads == 0

    def test_a_file_that_is_gone_is_passed_over(self, make, folder):
        segments = make(2, 2)
        segments.close()
        folder.segment_paths()[0].unlink()

        assert seqs(segments.records_after(0)) == [4, 5]

    @pytest.mark.parametrize("chunk_bytes", [40, 64, 100, 1 << 20])
    def test_frames_are_whole_however_a_file_is_cut_into_pieces(self, make, folder, monkeypatch, chunk_bytes):
        monkeypatch.setattr("noisescale.transport.spool.segments.CHUNK_BYTES", chunk_bytes)
        segments = make(5)
        large = encode(7, RunRecord({"config": "x" * 500}, {}))
        segments.newest.append(large, 7)
        segments.newest.append(frame(8), 8)
        with segments.newest.path.open("r+b") as file:
            file.seek(2 * FRAME_BYTES + 30)
            file.write(b"\0")

        assert seqs(segments.records_after(0)) == [2, 3, 5, 6, 7, 8]

    def test_what_lies_behind_the_last_whole_write_is_not_read(self, make, monkeypatch):
        monkeypatch.setattr("noisescale.transport.spool.segments.CHUNK_BYTES", 2 * FRAME_BYTES)
        segments = make(5)
        with segments.newest.path.open("ab") as file:
            file.write(frame(7))

        assert seqs(segments.records_after(0)) == [2, 3, 4, 5, 6]

    def test_what_is_in_doubt_or_gone_is_written_again(self, make, folder):
        segments = make(2, 2, 2)
        assert segments.first_to_write_again(0) is None
        folder.segment_paths()[1].unlink()
        assert segments.first_to_write_again(0) is None, "as long as the newest is in place the folder is"
        folder.segment_paths()[1].unlink()
        assert segments.first_to_write_again(0) is segments.listed()[1]
        assert segments.first_to_write_again(6) is segments.listed()[1]
        assert segments.first_to_write_again(7) is None, "all has arrived: no name is missed"
        segments.listed()[0].is_doubtful = True
        assert segments.first_to_write_again(7) is segments.listed()[0]

    def test_files_after_some_that_stay_can_go(self, make):
        segments = make(1, 1, 1, 1)
        kept = segments.listed()[:2]

        segments.drop_after(kept)

        assert segments.listed() == kept
        assert segments.newest is kept[-1], "and takes frames, or says that it is sealed"

    def test_files_go_all_at_once(self, make, folder):
        segments = make(1, 1, 1, 1)
        first, second, third, newest = segments.listed()

        assert segments.oldest_but_newest() is first
        assert list(segments.from_on(third)) == [third, newest]
        segments.drop(first, third)
        assert list(segments.from_on(third)) == []
        segments.drop_after([second])

        assert list(segments.listed()) == [second]
        assert segments.oldest_but_newest() is None
        assert [path.name for path in folder.segment_paths()] == ["00000002.seg"]
        assert first.read(0, FRAME_BYTES) == frame(2), "who has it open reads on"
        segments.close_dropped()
        with pytest.raises(FileNotFoundError):
            first.read(0, 100)

    @pytest.mark.parametrize("way", ["close", "forget"])
    def test_the_end_gives_all_descriptors_back_those_of_deleted_files_too(self, make, way):
        segments = make(1, 1)
        first, newest = segments.listed()
        segments.drop(first)

        getattr(segments, way)()

        assert (first._descriptor, newest._descriptor) == (None, None)


class TestRoom:
    def room(self, segments, **limits):
        losses, said = LossBook(), []
        room = Room(Limits(**{"segment_bytes": 0, "free_share": 0.0} | limits), segments, losses, said.append)
        return room, losses, said

    def test_within_the_limit_nothing_goes(self, make):
        segments = make(2, 2, 2)
        room, losses, said = self.room(segments, run_bytes=segments.num_bytes)

        room.make(0)

        assert (len(segments.listed()), losses.take_unsaid(), said) == (3, (), [])

    def test_beyond_it_the_oldest_goes_whole_and_is_declared(self, make):
        segments = make(2, 2, 2)
        room, losses, said = self.room(segments, run_bytes=segments.num_bytes - 1)

        room.make(0)

        assert [one.first_seq for one in segments.listed()] == [4, 6]
        assert list(losses.take_unsaid()) == [LostRange(2, 3, "spool_full")]
        assert said == ["the spool is full: records 2 to 3 are given up"]

    @pytest.mark.parametrize(("acked_seq", "lost"), [(2, [LostRange(3, 3, "spool_full")]), (3, [])])
    def test_what_has_arrived_is_not_lost_with_it(self, make, acked_seq, lost):
        segments = make(2, 2, 2)
        room, losses, _ = self.room(segments, run_bytes=segments.num_bytes - 1)

        room.make(acked_seq)

        assert [one.first_seq for one in segments.listed()] == [4, 6]
        assert list(losses.take_unsaid()) == lost

    def test_room_for_the_next_file_and_what_others_have_counts(self, make, folder):
        segments = make(2, 2, 2)
        other = StreamFolder(folder.path.parent / "other")
        other.create({})
        (other.path / "00000001.seg").write_bytes(bytes(10))
        other.release()
        room, losses, _ = self.room(segments, segment_bytes=7, run_bytes=segments.num_bytes + 17)
        room.look_at_the_disk(folder)
        room.make(0)
        exact = len(segments.listed())
        tight, losses, _ = self.room(segments, segment_bytes=7, run_bytes=segments.num_bytes + 16)
        tight.look_at_the_disk(folder)
        tight.make(0)

        assert (exact, len(segments.listed())) == (3, 2)
        assert list(losses.take_unsaid()) == [LostRange(2, 3, "spool_full")]

    def test_a_disk_that_is_low_costs_one_undelivered_file_until_it_is_looked_at_again(self, make, folder):
        segments = make(2, 2, 2)
        room, losses, _ = self.room(segments, free_share=2.0)
        room.look_at_the_disk(folder)

        room.make(0)
        once = len(segments.listed())
        room.make(0)

        assert (once, len(segments.listed())) == (2, 2)
        room.look_at_the_disk(folder)
        room.make(0)
        assert len(segments.listed()) == 1
        assert list(losses.take_unsaid()) == [LostRange(2, 3, "spool_full"), LostRange(4, 5, "spool_full")]

    @pytest.mark.parametrize(("num_free", "num_kept"), [(50, 2), (49, 1)])
    def test_a_disk_is_low_where_less_than_the_share_that_stays_free_is_free(
        self, make, folder, monkeypatch, num_free, num_kept
    ):
        segments = make(2, 2)
        room, _, _ = self.room(segments, free_share=0.05)
        monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_bavail=num_free, f_blocks=1_000))

        room.look_at_the_disk(folder)
        room.make(0)

        assert len(segments.listed()) == num_kept

    @pytest.mark.parametrize(("acked_seq", "is_room"), [(0, False), (3, True)])
    def test_who_keeps_the_oldest_gives_up_only_what_has_arrived(self, make, acked_seq, is_room):
        segments = make(2, 2, 2)
        limits = {"run_bytes": segments.num_bytes - 1, "overflow": "drop_newest"}
        room, losses, _ = self.room(segments, **limits)

        if is_room:
            room.make(acked_seq)
        else:
            with pytest.raises(NoRoom):
                room.make(acked_seq)

        assert len(segments.listed()) == (2 if is_room else 3)
        assert list(losses.take_unsaid()) == []

    def test_the_file_that_takes_frames_stays_whatever_the_limit(self, make):
        segments = make(2)
        room, _, _ = self.room(segments, run_bytes=0)

        room.make(0)

        assert len(segments.listed()) == 1
        keeping, _, _ = self.room(segments, run_bytes=0, overflow="drop_newest")
        with pytest.raises(NoRoom):
            keeping.make(0)

    def test_losses_that_a_deleted_file_knew_are_written_again(self, make):
        segments = make(2, 2, 2)
        room, losses, _ = self.room(segments, run_bytes=segments.num_bytes - 1)
        losses.remember(LostRange(50, 50, "too_large"))
        losses.take_unwritten()

        room.make(3)

        assert losses.take_unwritten() == LostRange(50, 50, "too_large")
