"""The folder of one stream: `<state>/spool/<run>/<stream>/` with its segments, lock, cursor and quarantine."""

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

# closed on exec, as all that Python opens is (PEP 446)
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW
OPEN_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW

TAKES_OVER = "takes_over"
"""In `meta.json` the stream, beside this one, whose records go on here after a conflict."""

MOVED = ".moved"
CONFLICT = ".conflict-"

GIVEN_UP = ".given-up"
GIVEN_UP_BYTES = 16 << 10
"""Room for what is given up because the disk is full, taken while it is not: what is overwritten needs none."""

REFUSED = "/errors/run-deleted"
"""What `.refused` begins with. Older clients wrote that file for any refusal, a proxy's, too: those count as none."""

FAULTS = (OSError, MemoryError)
"""What a system call may raise."""

HIGH_DESCRIPTOR = 512
"""Above what a program's own files get: of a daemon that closes all descriptors none other may be written to."""


class StreamFolder:
    """Where a stream lies on disk. Folders are 0700, files 0600, and nothing in them is secret.

    Args:
        path: Of the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None
        self._is_in_conflict = False

    def create(self, meta: dict[str, object]) -> None:
        """Make the folder and take its lock; one that is there stays.

        Args:
            meta: Facts about the writer, to be read by whoever finds the folder.

        Raises:
            OSError: Where that is not possible.
        """
        for folder in (self.path.parent.parent, self.path.parent, self.path):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.stat(self.path).st_uid != os.geteuid():
            raise PermissionError(f"{self.path} belongs to somebody else")
        self.release()
        self.try_lock()
        inode = os.stat(self.path).st_ino
        self.write("meta.json", json.dumps({**meta, **_this_process(), "inode": inode}).encode())
        with contextlib.suppress(*FAULTS):
            self.write(GIVEN_UP, bytes(GIVEN_UP_BYTES))

    def try_lock(self) -> bool:
        """Whether nobody else writes here; from then on we do. Where a file system has no locks, nobody does."""
        descriptor = os.open(self.path / "lock", OPEN_FLAGS, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError:
            os.close(descriptor)
            return True
        self._lock = out_of_the_way(descriptor)
        return True

    def is_free(self) -> bool:
        """Whether nobody writes here now.

        Raises:
            OSError: Where the folder cannot be read.
        """
        if not self.try_lock():
            return False
        self.release()
        return True

    @property
    def is_others(self) -> bool:
        """Whether somebody else writes here now.

        Raises:
            OSError: Where the folder cannot be read.
        """
        return not self.is_ours and not self.is_free()

    def release(self) -> None:
        """Give the lock back; in a forked child this leaves the parent's as it is."""
        descriptor, self._lock = self._lock, None
        if descriptor is not None:
            with contextlib.suppress(*FAULTS):
                os.close(descriptor)

    def meta(self) -> dict[str, object]:
        """What the writer said of itself; empty where nothing can be read."""
        try:
            found = json.loads(self.read("meta.json"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def acked_seq(self) -> int:
        """Up to which record the server had an account when somebody last asked; 0 where nobody knows."""
        try:
            return max(0, int(self.read(".ack").split()[0]))
        except (OSError, ValueError, IndexError):
            return 0

    def epoch(self) -> str | None:
        """In which life of its data the server had that account; None where nobody said."""
        try:
            return self.read(".ack").split()[1].decode()
        except (OSError, ValueError, IndexError):
            return None

    def acknowledge(self, seq: int, epoch: str | None) -> None:
        """Remember what the server, in this epoch, has an account of: a hint, the server knows better."""
        with contextlib.suppress(*FAULTS):
            self.write(".ack", f"{seq} {epoch or ''}".encode())
        with contextlib.suppress(*FAULTS):
            # it takes what was called a conflict: somebody else had answered in its place
            for path in self.path.glob(f"{CONFLICT}*") if self._is_in_conflict else ():
                path.unlink()

    def note_database(self, database_id: str) -> None:
        """Remember which database has taken records of the stream."""
        with contextlib.suppress(*FAULTS):
            self.write(".database", database_id.encode())

    def database_id(self) -> str | None:
        """Which database has taken records of the stream; None where none has, or none says which it is."""
        found = self._text(".database") or self.meta().get("database_id")
        return found if isinstance(found, str) and found else None

    def settle(self, last_seq: int) -> None:
        """Note that its writer is dead, that this was its last record, and that the server has an account of it."""
        with contextlib.suppress(*FAULTS):
            self.write(".settled", b"%d %d" % (last_seq, self.num_bytes()))

    def settled_at(self) -> int | None:
        """The last record of a dead writer; None where nobody said, or where something was written since then."""
        try:
            last_seq, num_bytes = map(int, self.read(".settled").split())
            return last_seq if num_bytes == self.num_bytes() else None
        except (OSError, ValueError):
            return None

    def num_bytes(self) -> int:
        """Of all files of records.

        Raises:
            OSError: Where the folder cannot be read.
        """
        return sum(os.stat(path).st_size for path in self.segment_paths())

    def num_bytes_beside(self) -> int:
        """Of the files of records of the run's other streams.

        Raises:
            OSError: Where the folder cannot be read.
        """
        others = (path for path in self.path.parent.glob("*/*.seg") if path.parent != self.path)
        others = (path for path in others if not (path.parent / MOVED).exists())
        return sum(os.stat(path).st_size for path in others)

    def write_given_up(self, frames: Sequence[bytes]) -> bool:
        """Write down which records never reached this folder, over the room that was set aside for it.

        Args:
            frames: The run's own record, a seal and losses, the most important first; what has no room is left out.

        Returns:
            Whether all of them are there.
        """
        fitting = b""
        for frame in frames:
            fitting += frame if len(fitting) + len(frame) <= GIVEN_UP_BYTES else b""
        try:
            descriptor = os.open(self.path / GIVEN_UP, os.O_WRONLY | os.O_NOFOLLOW)
            try:
                num_written = os.pwrite(descriptor, fitting, 0)
                os.fdatasync(descriptor)
            finally:
                os.close(descriptor)
        except FAULTS:
            return False
        return num_written == sum(map(len, frames))

    def given_up(self) -> bytes:
        """Frames of what never reached this folder; empty where nobody knows of any."""
        try:
            return self.read(GIVEN_UP)
        except OSError:
            return b""

    def refuse(self, reason: str) -> None:
        """Note that the server has deleted the run, and takes nothing of it any more."""
        with contextlib.suppress(*FAULTS):
            self.write(".refused", f"{REFUSED} {reason}".encode())

    @property
    def is_refused(self) -> bool:
        """Whether the server takes nothing of it for good: its run was deleted."""
        return self._text(".refused").startswith(REFUSED)

    def tell(self) -> None:
        """Note that a person was told of the refusal now, unless one was before."""
        if self.told_at() is None:
            with contextlib.suppress(*FAULTS):
                self.write(".told", str(time.time()).encode())

    def told_at(self) -> float | None:
        """When a person was first told of the refusal, Unix seconds; None: nobody was."""
        try:
            return float(self.read(".told"))
        except (OSError, ValueError):
            return None

    def leave(self, reason: str) -> None:
        """Note why its records were not delivered when somebody last tried; "" where they were."""
        with contextlib.suppress(*FAULTS):
            if reason:
                self.write(".left", reason.encode())
                return
            for name in (".left", ".refused", ".told"):
                (self.path / name).unlink(missing_ok=True)

    def left_because(self) -> str:
        """Why its records were not delivered when somebody last tried; empty where they were, or nobody has."""
        return self._text(".left") or self._text(".refused").removeprefix(REFUSED).strip()

    def _text(self, name: str) -> str:
        try:
            return self.read(name).decode(errors="replace")
        except OSError:
            return ""

    @property
    def is_ours(self) -> bool:
        """Whether we hold the lock: nobody writes here any more."""
        return self._lock is not None

    def note_conflict(self, acked_seq: int) -> None:
        """Note that others write under its id, and up to which record the server has an account of this one's.

        By a name alone, for which a full disk has room.
        """
        self._is_in_conflict = True
        with contextlib.suppress(*FAULTS):
            os.close(os.open(self.path / f"{CONFLICT}{acked_seq}", NEW_FLAGS, 0o600))

    def conflict_at(self) -> int | None:
        """Up to which record the server had an account when others were found to write under its id; None: none do."""
        numbers = [path.name.removeprefix(CONFLICT) for path in self.path.glob(f"{CONFLICT}*")]
        return max((int(number) for number in numbers if number.isdigit()), default=None)

    def move_to(self, other: "StreamFolder") -> None:
        """All of it is in the other folder: in one step that one counts, and this one no more.

        Raises:
            OSError: Where that is not possible; then nothing has changed.
        """
        self.write(MOVED, other.path.name.encode())

    @property
    def has_moved(self) -> bool:
        """Whether what was left here goes on in another stream."""
        return (self.path / MOVED).exists()

    @property
    def goes_on_in(self) -> "StreamFolder":
        """Where what was left here went: beside it, or elsewhere."""
        return StreamFolder(self.path.parent / self._text(MOVED))

    @property
    def is_unfinished(self) -> bool:
        """Whether its writer has not copied, or died before it had, all that another folder holds still."""
        old = self.meta().get(TAKES_OVER)
        before = StreamFolder(self.path.parent / old) if isinstance(old, str) else None
        return before is not None and before.path.is_dir() and before._text(MOVED) != self.path.name

    def remove(self) -> None:
        """Delete it, as far as that is possible, and first the copies of it that were never finished."""
        self.release()
        with contextlib.suppress(*FAULTS):
            for path in self.path.parent.glob("*/meta.json"):
                beside = StreamFolder(path.parent)
                if beside.meta().get(TAKES_OVER) == self.path.name and beside.is_unfinished:
                    beside.remove()
            if os.stat(self.path).st_uid == os.geteuid():
                shutil.rmtree(self.path, ignore_errors=True)

    def quarantine(self, seq: int, frame: bytes) -> None:
        """Keep a record that the server refused."""
        with contextlib.suppress(*FAULTS):
            (self.path / "quarantine").mkdir(mode=0o700, exist_ok=True)
            self.write(f"quarantine/{seq:012d}.frame", frame)

    def num_quarantined(self) -> int:
        """How many records were put aside: refused by the server, or damaged."""
        return sum(1 for _ in (self.path / "quarantine").glob("*.frame"))

    def segment_paths(self) -> list[Path]:
        """Its segments, in order.

        Raises:
            OSError: Where the folder cannot be read.
        """
        return sorted(path for path in self.path.iterdir() if path.suffix == ".seg" and path.stem.isdigit())

    def newest_change(self) -> float:
        """When a record was last written or acknowledged, Unix seconds; 0 where there is none.

        Raises:
            OSError: Where the folder cannot be read.
        """
        paths = [*self.segment_paths(), *self.path.glob(".ack")]
        return max((os.stat(path).st_mtime for path in paths), default=0.0)

    def sync(self) -> None:
        """Put the names of new files on the disk.

        Raises:
            OSError: Where the folder is gone or does not know how.
        """
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def read(self, name: str) -> bytes:
        """The content of a small file.

        Raises:
            OSError: Where it cannot be read.
        """
        descriptor = os.open(self.path / name, READ_FLAGS)
        with os.fdopen(descriptor, "rb") as file:
            return file.read()

    def write(self, name: str, content: bytes) -> None:
        """Put a small file in place, whole or not at all.

        Raises:
            OSError: Where that is not possible; what was there before is still there.
        """
        path = self.path / name
        aside = path.with_name(path.name + ".new")
        descriptor = os.open(aside, NEW_FLAGS, 0o600)
        try:
            num_written = os.write(descriptor, content)
        finally:
            os.close(descriptor)
        if num_written != len(content):
            raise OSError(f"wrote {num_written} of {len(content)} bytes to {aside}")
        os.rename(aside, path)


def out_of_the_way(descriptor: int) -> int:
    """The same file under a high number, where the process may have so many; the old number is free."""
    try:
        high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR)
    except OSError:
        return descriptor
    os.close(descriptor)
    return high


def _this_process() -> dict[str, object]:
    """Which process of which boot of this machine this is."""
    facts: dict[str, object] = {"pid": os.getpid()}
    with contextlib.suppress(OSError, IndexError):
        after_name = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        facts["start_ticks"] = int(after_name[19])
    with contextlib.suppress(*FAULTS):
        facts["boot_id"] = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return facts
