"""The folder of a new stream: below the first root where that is possible, and after a conflict whole or not at all."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from noisescale.transport.spool.frames import encode_loss, seq_of
from noisescale.transport.spool.segments import Segments
from noisescale.transport.spool.stream_folder import FAULTS, TAKES_OVER, StreamFolder
from noisescale.transport.wire import LostRange

logger = logging.getLogger("noisescale")


def first_usable(
    roots: Sequence[Path], meta: dict[str, object], start: Callable[[StreamFolder], None]
) -> StreamFolder | None:
    """A new folder for a stream below the first root where that is possible; None, with a warning, where none is.

    Args:
        roots: Where to try, in order.
        meta: Facts about the writer, its run and its stream among them.
        start: Begins the first file.
    """
    reasons = []
    for root in roots:
        folder = StreamFolder(root / str(meta["run_id"]) / str(meta["stream_id"]))
        try:
            folder.create(meta)
            start(folder)
        except FAULTS as error:
            reasons.append(str(error))
            folder.remove()
            continue
        return folder
    logger.warning(
        "records of this run wait in memory only, and are gone when the process is killed: %s; "
        "set NOISESCALE_DIR to a folder that can be written to",
        "; ".join(reasons),
    )
    return None


def first_with_room(
    roots: Sequence[Path],
    meta: dict[str, object],
    old: StreamFolder,
    frames: Sequence[bytes],
    losses: Sequence[LostRange],
    segment_bytes: int,
) -> tuple[StreamFolder, Segments] | None:
    """A new folder that has all of a stream after a conflict, and counts from then on in place of the one before.

    Args:
        roots: Where to try, in order.
        meta: Facts about the writer, its run and its new stream among them.
        old: Where the records are until now; it stays as it is where no root has room for them, or its writer lives.
        frames: What goes on, the run's own record first, with new numbers.
        losses: What will never come of it, with new numbers.
        segment_bytes: At most in one file.
    """
    for root in roots if may_move(old) else ():
        folder = StreamFolder(root / str(meta["run_id"]) / str(meta["stream_id"]))
        before = old.path.name if folder.path.parent == old.path.parent else str(old.path.absolute())
        segments = Segments(segment_bytes)
        try:
            folder.create({**meta, TAKES_OVER: before})
            _write(folder, segments, frames, losses)
            old.move_to(folder)
        except FAULTS:
            segments.close()
            folder.remove()
            continue
        return folder, segments
    return None


def may_move(folder: StreamFolder) -> bool:
    """Whether nobody else writes there: who sends what a living process has written so far leaves the rest to it."""
    try:
        return not folder.is_others
    except FAULTS:
        return False


def _write(folder: StreamFolder, segments: Segments, frames: Sequence[bytes], losses: Sequence[LostRange]) -> None:
    """Have the kernel take all of it.

    Raises:
        OSError, MemoryError: Where it does not.
    """
    segments.start(folder, b"")
    for frame in frames:
        if segments.with_room(len(frame)) is None:
            segments.start(folder, frames[0])
        segments.newest.append(frame, seq_of(frame))
    for lost in losses:
        segments.newest.append(encode_loss(lost), 0)
