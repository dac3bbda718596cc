"""The oldest frames of a spool, wherever they are: in files, or in memory where the disk cannot have them now."""

from collections.abc import Iterator, Sequence

from noisescale.transport.spool.frames import seq_of
from noisescale.transport.spool.segments import Segments
from noisescale.transport.spool.spool import Held
from noisescale.transport.spool.waiting_frames import WaitingFrames


def held_frames(
    segments: Segments, waiting: WaitingFrames, after: int, until: int, *, max_records: int, max_bytes: int
) -> Held:
    """Frames after one number and up to another, the oldest first; read again where files went meanwhile.

    Args:
        segments: Files, read before what waits.
        waiting: What they do not have yet.
        after: The number before the first.
        until: The last number that is asked for.
        max_records: At most so many.
        max_bytes: At most so much, but one frame where any is held.

    Raises:
        OSError: Where a file cannot be read now.
    """
    while True:
        num_drops = segments.num_drops
        held = _read(segments, waiting, after, until, max_records=max_records, max_bytes=max_bytes)
        if segments.num_drops == num_drops:
            return held


def first_held(segments: Segments, waiting: WaitingFrames) -> int | None:
    """The first number that is held; None where nothing is."""
    in_memory = waiting.listed()
    return segments.first_seq() or (seq_of(in_memory[0]) if in_memory else None)


def _read(
    segments: Segments, waiting: WaitingFrames, after: int, until: int, *, max_records: int, max_bytes: int
) -> Held:
    # before the files: what is written in between is found twice, never not at all
    in_memory = waiting.listed()
    frames: list[bytes] = []
    size = 0
    for frame in _in_order(segments, in_memory, after, until):
        size += len(frame)
        if frames and (len(frames) >= max_records or size > max_bytes):
            return Held(frames, is_all=False)
        frames.append(frame)
    return Held(frames, is_all=True)


def _in_order(segments: Segments, waiting: Sequence[bytes], after: int, until: int) -> Iterator[bytes]:
    last = after
    for frames in (segments.records_after(after), iter(waiting)):
        for frame in frames:
            if last < seq_of(frame) <= until:
                last = seq_of(frame)
                yield frame
