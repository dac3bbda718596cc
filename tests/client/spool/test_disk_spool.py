"""Records on disk: what append returned for is there, whatever happens next; the ledger stays true."""

import json
import os
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from noisescale.transport.limits import Limits
from noisescale.transport.spool.disk_spool import DiskSpool
from noisescale.transport.spool.frames import LOSS, encode, frames_in
from noisescale.transport.spool.segment import Segment
from noisescale.transport.upload.left_behind import open_stream, sealed_at, stream_folders
from noisescale.transport.upload.stream import Stream
from noisescale.transport.wire import MetricRecord, RunRecord
from spooled_streams import deliver, make_stream, metric, numbers
from stub_server import Ledger

SMALL = Limits(segment_bytes=1000, run_bytes=8000, free_share=0.0)


def test_what_append_returned_for_is_read_by_another_process_at_once(tmp_path):
    stream, ledger = make_stream(tmp_path), Ledger()
    for number in range(100):
        stream.append(metric(number))

    [folder] = stream_folders(tmp_path)
    found, _ = open_stream(folder)
    deliver(found, ledger)

    assert (found.run_id, found.stream_id) == ("run", stream.stream_id)
    assert numbers(ledger, found) == list(range(100))
    assert ledger.stored[stream.stream_id][1][1]["run"] == {"project": "demo"}
    ledger.check()


def test_a_stream_that_follows_waits_a_second_at_most_for_the_disk_of_the_one_before(tmp_path, monkeypatch):
    waited = []
    monkeypatch.setattr(DiskSpool, "end", lambda spool, timeout_seconds: waited.append(timeout_seconds))

    DiskSpool([tmp_path]).begin("run", "stream")

    assert waited == [1.0]


def test_a_record_is_one_system_call(tmp_path, monkeypatch):
    stream = make_stream(tmp_path)
    stream.append(metric(0))
    written = []
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: written.append(len(data)) or write(descriptor, data))

    for number in range(10):
        stream.append(metric(number))

    assert written == [len(encode(2, metric(0)))] * 10


def test_folders_and_files_are_for_the_user_alone_and_hold_no_key(tmp_path):
    stream = make_stream(tmp_path, limits=SMALL)
    for number in range(50):
        stream.append(metric(number))
    deliver(stream, Ledger())

    paths = [*tmp_path.rglob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_dir()} == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_file()} == {0o600}
    meta = json.loads((tmp_path / "run" / stream.stream_id / "meta.json").read_text())
    assert set(meta) == {"run_id", "stream_id", "pid", "start_ticks", "boot_id", "inode"}
    assert meta["pid"] == os.getpid()


def test_files_end_with_a_seal_and_begin_with_the_run(tmp_path):
    stream = make_stream(tmp_path, limits=SMALL)
    for number in range(50):
        stream.append(metric(number))
    stream.end(5)

    [folder] = stream_folders(tmp_path)
    paths = folder.segment_paths()
    found, spool = open_stream(folder)
    assert len(paths) > 3
    assert all(path.stat().st_size < 1100 for path in paths)
    assert all(b'"project":"demo"' in path.read_bytes() for path in paths)
    assert found.delivery().num_logged == 51
    assert spool.first_held(1) <= 2


def test_what_has_arrived_is_kept_for_a_server_that_goes_back(tmp_path):
    stream, ledger = make_stream(tmp_path, limits=SMALL), Ledger()
    for number in range(50):
        stream.append(metric(number))
    deliver(stream, ledger, max_records=7)
    restored = Ledger()

    assert stream.rewind(1)
    deliver(stream, restored)

    assert numbers(restored, stream) == list(range(50))
    assert restored.lost[stream.stream_id] == {}
    restored.check()


def test_what_has_arrived_is_deleted_beyond_the_trim_window(tmp_path):
    limits = Limits(segment_bytes=1000, free_share=0.0, acked_bytes=2000)
    stream, ledger = make_stream(tmp_path, limits=limits), Ledger()
    for number in range(200):
        stream.append(metric(number))
    num_before = len([*tmp_path.rglob("*.seg")])

    deliver(stream, ledger)
    restored = Ledger()
    assert stream.rewind(1)
    deliver(stream, restored)

    assert num_before > 10
    assert len([*tmp_path.rglob("*.seg")]) <= 3
    lost = restored.lost[stream.stream_id]
    assert set(lost.values()) == {"trimmed"}
    assert len(lost) + len(restored.stored[stream.stream_id]) == 201
    restored.check()


def test_a_full_spool_gives_up_its_oldest_file_whole_and_says_so(tmp_path, caplog):
    stream, ledger = make_stream(tmp_path, limits=SMALL), Ledger()

    for number in range(500):
        stream.append(metric(number))
    deliver(stream, ledger)

    lost = ledger.lost[stream.stream_id]
    assert set(lost.values()) == {"spool_full"}
    assert numbers(ledger, stream) == list(range(500 - len(numbers(ledger, stream)), 500))
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.seg")) < 9000
    assert "the spool is full" in caplog.text
    ledger.check()


def test_a_full_spool_may_keep_the_oldest_and_give_up_what_comes(tmp_path, caplog):
    limits = Limits(segment_bytes=1000, run_bytes=4000, acked_bytes=0, free_share=0.0, overflow="drop_newest")
    stream, ledger = make_stream(tmp_path, limits=limits), Ledger()
    for number in range(500):
        stream.append(metric(number))
    wait_until(lambda: not stream._spool._waiting.listed())
    deliver(stream, ledger)
    num_kept = len(numbers(ledger, stream))

    for number in range(500, 510):
        stream.append(metric(number))
    deliver(stream, ledger)

    assert 10 < num_kept < 60
    assert numbers(ledger, stream) == [*range(num_kept), *range(500, 510)]
    assert set(ledger.lost[stream.stream_id].values()) == {"spool_full"}
    assert caplog.text.count("the spool is full") == 1
    ledger.check()
    stream.end(5)
    [folder] = stream_folders(tmp_path)
    assert sum(frame.kind == LOSS for frame in frames_of(folder)) <= 2, "one range, not one for each record"


def test_what_other_processes_of_the_run_have_on_disk_counts(tmp_path):
    other, own = make_stream(tmp_path, limits=SMALL), make_stream(tmp_path, limits=SMALL)
    own.append(metric(0))
    for number in range(40):
        other.append(metric(number))
    other._spool.sync()
    wait_until(lambda: not own._spool._is_dirty)  # its own thread has looked, and does so every ten seconds
    own._spool._room.look_at_the_disk(own._spool.folder)

    for number in range(1, 200):
        own.append(metric(number))

    sizes = [sum(path.stat().st_size for path in tmp_path.glob(f"run/{one.stream_id}/*.seg")) for one in (other, own)]
    assert sum(sizes) <= SMALL.run_bytes + SMALL.segment_bytes
    assert own.delivery().num_lost > 0
    for one in (other, own):
        one.end(5)


def frames_of(folder):
    return [found for path in folder.segment_paths() for found in frames_in(path.read_bytes())]


def test_who_finds_the_folder_later_knows_the_reasons_of_losses(tmp_path):
    stream, ledger = make_stream(tmp_path, limits=SMALL), Ledger()
    for number in range(500):
        stream.append(metric(number))
    with pytest.raises(ValueError, match="JSON compliant"):
        stream.append(MetricRecord(0, 0.0, {"n": float("nan")}))
    stream.append(metric(500))
    stream.end(5)

    [folder] = stream_folders(tmp_path)
    found, _ = open_stream(folder)
    deliver(found, ledger)

    assert set(ledger.lost[stream.stream_id].values()) == {"spool_full", "not_encodable"}
    assert ledger.acked[stream.stream_id] == 503
    assert numbers(ledger, found)[-1] == 500
    ledger.check()


def test_a_record_that_is_too_large_is_declared_lost(tmp_path):
    stream, ledger = make_stream(tmp_path), Ledger()

    stream.append(MetricRecord(0, 0.0, {"x" * 600_000: 1.0}))
    stream.append(metric(1))
    deliver(stream, ledger)

    assert ledger.lost[stream.stream_id] == {2: "too_large"}
    ledger.check()


def test_a_folder_that_is_deleted_takes_nothing_and_is_made_again(tmp_path, caplog):
    stream, ledger = make_stream(tmp_path), Ledger()
    for number in range(10):
        stream.append(metric(number))
    [folder] = stream_folders(tmp_path)
    for path in sorted(folder.path.rglob("*"), reverse=True):
        path.unlink()
    folder.path.rmdir()

    stream.append(metric(10))
    stream._spool.sync()
    stream.append(metric(11))

    [again] = stream_folders(tmp_path)
    found, _ = open_stream(again)
    deliver(found, ledger)
    assert numbers(ledger, found) == list(range(12))
    assert "was deleted while the run goes on" in caplog.text
    stream.end(5)


def test_a_sync_that_fails_is_not_trusted_and_the_records_are_written_again(tmp_path, monkeypatch, caplog):
    stream, ledger = make_stream(tmp_path), Ledger()
    for number in range(10):
        stream.append(metric(number))
    deliver(stream, ledger, max_records=4, max_batches=1)
    faults = [OSError(5, "Input/output error")]
    sync = os.fdatasync

    def fails_here_once(file):
        """The thread of the spool syncs, too, when it comes to it."""
        return raise_(faults.pop()) if faults and threading.current_thread() is threading.main_thread() else sync(file)

    monkeypatch.setattr(os, "fdatasync", fails_here_once)

    stream.append(metric(10))
    stream._spool.sync()

    assert stream._spool.num_failed_syncs == 1
    assert [path.name for path in tmp_path.rglob("*.seg")] == ["00000002.seg"]
    assert "written again" in caplog.text
    [path] = tmp_path.rglob("*.seg")
    assert seqs_in(path) == [1, *range(5, 13)], "the run's own record and what is not delivered"
    deliver(stream, ledger)
    assert numbers(ledger, stream) == list(range(11))
    ledger.check()
    stream.end(5)


def test_threads_that_sync_at_once_write_what_is_doubtful_again_once(tmp_path):
    """The spool's own thread may come to it while somebody else does."""
    stream = make_stream(tmp_path)
    stream.append(metric(0))
    spool = stream._spool
    for number in range(1, 60):
        stream.append(metric(number))
        spool._segments.newest.is_doubtful = True
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: spool.sync(), range(8)))

        assert [path.name for path in tmp_path.rglob("*.seg")] == [f"{number + 1:08d}.seg"]

    [path] = tmp_path.rglob("*.seg")
    assert seqs_in(path) == list(range(1, 62)), "each once, the run's own record, too"
    ledger = Ledger()
    deliver(stream, ledger)
    assert numbers(ledger, stream) == list(range(60))
    stream.end(5)


@pytest.mark.parametrize("num_reads_before", [0, 1, 2])
def test_a_delivery_during_which_files_are_written_again_misses_nothing(tmp_path, monkeypatch, num_reads_before):
    """The files that it has begun with are gone before it has come to their ends."""
    stream, ledger = make_stream(tmp_path, limits=SMALL), Ledger()
    for number in range(40):
        stream.append(metric(number))
    spool = stream._spool
    first = spool._segments.listed()[0]
    assert len(spool._segments.listed()) > 3
    read, num_reads = Segment.read, 0

    def read_meanwhile(segment, offset, length):
        nonlocal num_reads
        num_reads += 1
        if num_reads == num_reads_before + 1:
            first.is_doubtful = True
            with ThreadPoolExecutor(1) as other:
                other.submit(spool.sync).result()
        return read(segment, offset, length)

    monkeypatch.setattr(Segment, "read", read_meanwhile)
    deliver(stream, ledger)

    assert not first.path.exists()
    assert numbers(ledger, stream) == list(range(40))
    assert ledger.lost[stream.stream_id] == {}
    ledger.check()
    stream.end(5)


@pytest.mark.thorough
def test_a_disk_that_is_full_leaves_records_in_memory_and_gets_them_later(tmp_path, monkeypatch, caplog):
    stream, ledger = make_stream(tmp_path), Ledger()
    stream.append(metric(0))
    is_full = True
    write = os.write

    def write_half(descriptor, data):
        return write(descriptor, data[: len(data) // 2]) if is_full and len(data) > 60 else write(descriptor, data)

    monkeypatch.setattr(os, "write", write_half)
    for number in range(1, 20):
        stream.append(metric(number))
    deliver(stream, ledger, max_records=5, max_batches=2)
    is_full = False
    wait_until(lambda: not stream._spool._waiting.listed())
    stream.append(metric(20))

    [folder] = stream_folders(tmp_path)
    found, _ = open_stream(folder, acked_seq=ledger.acked[stream.stream_id])
    deliver(found, ledger)
    assert numbers(ledger, found) == list(range(21))
    assert found.delivery().num_lost == 0
    assert "the disk is full" in caplog.text
    ledger.check()
    stream.end(5)


def test_a_disk_that_stays_full_costs_the_oldest_records_and_says_so(tmp_path, monkeypatch):
    limits = Limits(free_share=0.0, memory_records=10)
    stream, ledger = make_stream(tmp_path, limits=limits), Ledger()
    stream.append(metric(0))
    monkeypatch.setattr(os, "write", lambda descriptor, data: raise_(OSError(28, "No space left on device")))

    for number in range(1, 40):
        stream.append(metric(number))
    deliver(stream, ledger)

    assert numbers(ledger, stream) == [0, *range(30, 40)]
    assert set(ledger.lost[stream.stream_id].values()) == {"disk_full"}
    ledger.check()
    stream.end(0.1)


def test_without_any_folder_records_wait_in_memory_and_the_run_says_so(tmp_path, caplog):
    (tmp_path / "file").write_text("no folder")
    stream, ledger = Stream("run", DiskSpool([tmp_path / "file"]), lambda: RunRecord({}, {"notes": ["one"]})), Ledger()

    for number in range(10):
        stream.append(metric(number))
    deliver(stream, ledger)

    assert numbers(ledger, stream) == list(range(10))
    assert ledger.stored[stream.stream_id][1][1]["stream"]["notes"] == [
        "one", "records waited in memory: no folder could be written to"
    ]  # fmt: skip
    assert caplog.text.count("wait in memory only") == 1
    stream.end(1)


def test_the_second_folder_takes_records_where_the_first_cannot(tmp_path):
    (tmp_path / "file").write_text("no folder")
    stream = Stream("run", DiskSpool([tmp_path / "file", tmp_path / "home"]), lambda: RunRecord({}, {}))

    stream.append(metric(0))

    assert len([*(tmp_path / "home").rglob("*.seg")]) == 1
    stream.end(1)


def test_a_slow_write_moves_the_writing_to_a_thread_until_writes_are_quick_again(tmp_path, monkeypatch):
    stream, ledger = make_stream(tmp_path, durability="auto"), Ledger()
    stream.append(metric(0))
    write = os.write
    writers = []

    def slow_once(descriptor, data):
        writers.append(threading_name())
        if len(writers) == 1:
            time.sleep(0.06)
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", slow_once)
    for number in range(1, 130):
        stream.append(metric(number))
        wait_until(lambda: not stream._spool._waiting.listed())

    assert writers[0] == "MainThread"
    assert writers[1:101] == ["noisescale-spool"] * 100
    assert writers[-1] == "MainThread"
    deliver(stream, ledger)
    assert numbers(ledger, stream) == list(range(130))
    stream.end(5)


def test_with_durability_async_a_thread_writes_and_the_end_waits_for_it(tmp_path):
    stream, ledger = make_stream(tmp_path, durability="async"), Ledger()
    for number in range(1000):
        stream.append(metric(number))
    stream.end(10)

    [folder] = stream_folders(tmp_path)
    found, _ = open_stream(folder)
    deliver(found, ledger)

    assert numbers(ledger, found) == list(range(1000))


@pytest.mark.parametrize(
    ("durability", "is_on_a_network", "is_async"),
    [("auto", True, True), ("auto", False, False), ("async", False, True), ("sync", True, False)],
)
def test_a_thread_writes_from_the_start_where_that_is_asked_for_or_the_folder_is_far(
    tmp_path, monkeypatch, durability, is_on_a_network, is_async
):
    monkeypatch.setattr("noisescale.transport.spool.disk_spool.is_on_a_network", lambda path: is_on_a_network)
    writers, append = [], Segment.append
    monkeypatch.setattr(
        Segment, "append", lambda *given: (writers.append(threading.current_thread()), append(*given))[1]
    )
    spool = DiskSpool([tmp_path], limits=SMALL, durability=durability)

    spool.begin("run", "stream")
    spool.append(encode(2, metric(2)))
    spool.end(5)

    assert (threading.current_thread() not in writers) == is_async


def test_a_new_stream_has_lost_nothing_that_is_unknown(tmp_path):
    spool = DiskSpool([tmp_path], limits=SMALL)
    spool.begin("run", "stream")
    spool.end(5)

    assert not spool.is_loss_unknown


def test_a_refused_record_is_kept_aside(tmp_path):
    stream, ledger = make_stream(tmp_path), Ledger()
    for number in range(3):
        stream.append(metric(number))
    deliver(stream, ledger, max_records=2, max_batches=1)
    stream.next_batch(max_records=1, max_bytes=1 << 20)

    stream.reject(3)
    deliver(stream, ledger)

    assert ledger.lost[stream.stream_id] == {3: "rejected"}
    [kept] = tmp_path.rglob("*.frame")
    assert kept.read_bytes() == encode(3, metric(1))
    stream.end(1)


def test_a_conflict_goes_on_in_a_new_folder_and_the_old_one_is_left_alone(tmp_path):
    stream, ledger = make_stream(tmp_path), Ledger()
    for number in range(10):
        stream.append(metric(number))
    deliver(stream, ledger, max_records=4, max_batches=1)
    old_id = stream.stream_id

    stream.start_anew()
    stream.append(metric(10))
    deliver(stream, ledger)

    assert numbers(ledger, stream) == list(range(3, 11))
    [old] = [folder for folder in stream_folders(tmp_path) if folder.path.name == old_id]
    assert old.has_moved
    ledger.check()
    stream.end(1)


@pytest.mark.processes
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("at", [*range(1, 9), None])
def test_a_process_that_is_killed_while_it_goes_on_in_a_new_folder_loses_and_doubles_nothing(tmp_path, at):
    """At the first to the last record that it copies, or after all of them."""
    child = os.fork()
    if child == 0:
        stream = make_stream(tmp_path)
        for number in range(7):
            stream.append(metric(number))
        copied = iter(range(1, 100))
        append = Segment.append
        Segment.append = lambda *arguments: os._exit(0) if next(copied) == at else append(*arguments)
        stream.start_anew()
        os._exit(0)
    os.waitpid(child, 0)

    ledger = Ledger()
    streams = [open_stream(folder)[0] for folder in stream_folders(tmp_path) if not folder.has_moved]
    for stream in streams:
        deliver(stream, ledger)
    found = [number for stream in streams for number in numbers(ledger, stream)]
    assert (found, len(list(tmp_path.glob("run/*")))) == (list(range(7)), 2)


def test_nobody_else_sends_a_folder_while_its_records_are_copied(tmp_path, monkeypatch):
    stream = make_stream(tmp_path)
    for number in range(3):
        stream.append(metric(number))
    [old] = stream_folders(tmp_path)
    free = []
    append = Segment.append
    monkeypatch.setattr(Segment, "append", lambda *arguments: free.append(old.is_free()) or append(*arguments))

    stream.start_anew()

    assert free == [False] * 4
    assert (old.has_moved, old.is_free()) == (True, True)
    stream.end(1)


def seqs_in(path):
    return [found.seq for found in frames_in(path.read_bytes()) if found.is_record]


def raise_(error):
    raise error


def threading_name():
    return threading.current_thread().name


def wait_until(is_so, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_a_spool_that_holds_nothing_yet_may_be_forked(tmp_path):
    spool = DiskSpool([tmp_path])

    spool.restart_after_fork()

    assert spool.folder is None


@pytest.mark.processes
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_keeps_nothing_of_its_parents_folder_open(tmp_path):
    stream = make_stream(tmp_path)
    stream.append(metric(0))
    folder = str(tmp_path)
    time.sleep(0.2)  # the spool's own thread may be asking the disk to confirm, and what it has open goes with a fork

    child = os.fork()
    if child == 0:
        stream.restart_after_fork()
        opened = [path for path in map(opened_as, os.listdir("/proc/self/fd")) if path.startswith(folder)]
        os._exit(len(opened))

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [path for path in map(opened_as, os.listdir("/proc/self/fd")) if path.startswith(folder)] != []


@pytest.mark.processes
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_that_logs_leaves_the_parents_folder_to_be_sent_as_it_was(tmp_path):
    stream = make_stream(tmp_path)
    stream.append(metric(0))
    time.sleep(0.2)  # as above

    child = os.fork()
    if child == 0:
        stream.restart_after_fork()
        stream.append(metric(1))
        stream.end(5)
        os._exit(0)
    os.waitpid(child, 0)
    stream.append(metric(2))
    stream.end(5)

    found = {folder.path.name: open_stream(folder)[0] for folder in stream_folders(tmp_path)}
    ledger = Ledger()
    for one in found.values():
        deliver(one, ledger)
    own = found.pop(stream.stream_id)
    [childs] = found.values()
    assert (numbers(ledger, own), numbers(ledger, childs)) == ([0, 2], [1])
    assert [folder.path.name for folder in stream_folders(tmp_path) if folder.has_moved] == []


def opened_as(descriptor):
    """The path behind a descriptor; empty where it is closed by now."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except FileNotFoundError:
        return ""


def deleted_but_open(folder):
    opened = [opened_as(descriptor) for descriptor in os.listdir("/proc/self/fd")]
    return [path for path in opened if path.startswith(str(folder)) and path.endswith("(deleted)")]


def test_files_that_were_given_up_take_no_descriptor_when_the_disk_was_asked_to_confirm(tmp_path):
    stream = make_stream(tmp_path, limits=SMALL)
    for number in range(500):
        stream.append(metric(number))

    with stream._spool._io:  # the spool's own thread gives no other file up meanwhile
        stream._spool.sync()
        wait_until(lambda: not deleted_but_open(tmp_path))

    assert len([*tmp_path.rglob("*.seg")]) < 20
    stream.end(5)


def test_a_new_stream_ends_the_one_before_it(tmp_path):
    spool = DiskSpool([tmp_path], limits=Limits(free_share=0.0), durability="direct")
    for name in ("a", "b"):
        spool.begin("run", name)
        spool.append(encode(1, RunRecord({}, {})))
        spool.append(encode(2, metric(2)))

    [first, second] = sorted(stream_folders(tmp_path), key=lambda folder: folder.path)

    assert [sealed_at(folder.segment_paths()[-1]) for folder in (first, second)] == [2, 0]
    spool.end(5)
