"""Planted bugs: each of them the torture must catch, or it proves nothing."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import foreign_bugs
from noisescale.commands import sync
from noisescale.transport.spool import frames, segments
from noisescale.transport.spool.disk_spool import DiskSpool
from noisescale.transport.spool.frames import Found
from noisescale.transport.spool.stream_folder import StreamFolder
from noisescale.transport.upload import left_behind, stream
from noisescale.transport.upload.left_behind import open_stream, stream_folders
from noisescale.transport.upload.stream import Stream

COMMIT_SECONDS = 0.3


def apply_to_client(name: str) -> None:
    """Put a client's bug into this process; nothing for another's."""
    bugs: dict[str, Callable[[], None]] = {
        "buffers_16": buffers_16,
        "ack_file_first": ack_file_first,
        "resumes_stream": resumes_stream,
        "any_200_acknowledges": lambda: for_good(foreign_bugs.any_200_acknowledges()),
        "any_413_rejects": lambda: for_good(foreign_bugs.any_413_rejects()),
        "silent_on_a_full_disk": silent_on_a_full_disk,
    }
    bugs.get(name, lambda: None)()


def for_good(bug: contextlib.AbstractContextManager[None]) -> None:
    """Plant a bug until the process ends."""
    _planted.enter_context(bug)


_planted = contextlib.ExitStack()


def apply_to_server(name: str) -> None:
    """Put a server's bug into this process; nothing for another's."""
    bugs: dict[str, Callable[[], None]] = {
        "no_dedupe": no_dedupe,
        "ack_before_commit": ack_before_commit,
        "ends_every_stream": ends_every_stream,
    }
    bugs.get(name, lambda: None)()


# ---- the client


def buffers_16() -> None:
    """Records are handed to the spool sixteen at a time, when the calls have returned long since."""
    append = Stream.append
    kept: list[Any] = []

    def buffered(self: Stream, record: Any) -> int:
        kept.append(record)
        if len(kept) >= 16 or type(record).__name__ == "FinishRecord":
            for one in kept:
                append(self, one)
            kept.clear()
        return self.delivery().num_waiting

    Stream.append = buffered  # type: ignore[method-assign]


def ack_file_first() -> None:
    """The cursor's file is written before the server has answered."""
    next_batch = Stream.next_batch

    def acknowledged(self: Stream, **limits: int) -> Any:
        batch = next_batch(self, **limits)
        folder = getattr(self._spool, "folder", None)
        if batch is not None and folder is not None:
            folder.acknowledge(batch.last_seq, self.epoch)
        return batch

    Stream.next_batch = acknowledged  # type: ignore[method-assign]


def silent_on_a_full_disk() -> None:
    """What is in memory when the job ends and the disk is full is forgotten, and the stream ends before it."""

    def forgotten(self: DiskSpool, folder: StreamFolder) -> None:
        self._drain()
        self._waiting.drop_all()

    DiskSpool._give_up_what_waits = forgotten  # type: ignore[method-assign]


def resumes_stream() -> None:
    """A job that starts again goes on with the stream that its disk remembers, wherever the server is by now."""
    begin = Stream._open

    def resumed(self: Stream, stream_id: str) -> None:
        remembered = os.environ.get("TORTURE_RESUMED_DIR")
        for folder in stream_folders(Path(remembered)) if remembered else ():
            left, _ = open_stream(folder)
            self._run_frame, self._last_seq = left._run_frame, left.delivery().num_logged
            self._acked_seq = self._last_seq
            self._spool.begin(self.run_id, folder.path.name)
            self._id = folder.path.name
            return
        begin(self, stream_id)

    Stream._open = resumed  # type: ignore[method-assign]


@contextlib.contextmanager
def sending(name: str) -> Iterator[None]:
    """The block sends whatever it finds to whomever it knows, if that is the bug."""

    def everybodys(folders: Any, _server: object, _url: str) -> Any:
        return folders, []

    with contextlib.ExitStack() as patches:
        if name == "sends_everybodys":
            patches.enter_context(patch.object(sync, "_meant_for", everybodys))
        yield


# ---- the reader of what dead processes have left


@contextlib.contextmanager
def reading(name: str) -> Iterator[None]:
    """The block reads spools with a bug; without one where no reader has this name."""
    readers: dict[str, Callable[[bytes], Iterator[Found]]] = {
        "reader_without_crc": frames_without_crc,
        "reader_stops_at_damage": frames_until_damage,
    }
    with contextlib.ExitStack() as patches:
        if name in readers:
            for module in (frames, left_behind, segments):
                patches.enter_context(patch.object(module, "frames_in", readers[name]))
        if name == "reader_without_crc":
            patches.enter_context(patch.object(stream, "decode", decode_without_crc))
        yield


def frames_without_crc(data: bytes) -> Iterator[Found]:
    """Whatever begins with the magic and is as long as it says."""
    at = data.find(frames.MAGIC)
    while at >= 0 and len(data) - at >= frames.HEADER_BYTES:
        _, _, kind, _, length, seq = frames._HEADER.unpack_from(data, at)
        end = at + frames.HEADER_BYTES + length
        if end <= len(data):
            yield Found(kind, seq, data[at:end], end)
        at = data.find(frames.MAGIC, min(end, len(data)))


def decode_without_crc(frame: bytes) -> tuple[int, Any]:
    """The record of a frame, however damaged."""
    _, _, kind, _, length, seq = frames._HEADER.unpack_from(frame)
    return seq, frames._record(kind, frame[frames.HEADER_BYTES : frames.HEADER_BYTES + length])


_whole_frames = frames.frames_in


def frames_until_damage(data: bytes) -> Iterator[Found]:
    """The frames of a file up to the first that does not hold."""
    end = 0
    for found in _whole_frames(data):
        if found.end - len(found.frame) != end:
            return
        end = found.end
        yield found


# ---- the server


def no_dedupe() -> None:
    """Every batch is stored as it comes; the tables' keys, the second wall, are taken away by the world."""
    from noisescale_server.services.ingest import ingestion
    from noisescale_server.services.ingest.ingestion import Accepted, Batch

    async def accept(session: Any, batch: Batch, *_: Any) -> Accepted:
        cursor = await ingestion.streams.lock(session, batch.run_id, batch.stream_id) or await ingestion._create(
            session, batch
        )
        if batch.first_seq > cursor.next_seq:
            raise ingestion.StreamGap(
                batch.stream_id,
                expected_seq=cursor.next_seq,
                first_seq=batch.first_seq,
                epoch=cursor.epoch,
                database_id=cursor.database_id,
            )
        await ingestion._store(session, batch, cursor)
        return Accepted(batch.last_seq, cursor.epoch, cursor.database_id)

    ingestion.accept = accept


def ack_before_commit() -> None:
    """The answer leaves while the transaction is still open."""
    from noisescale_server.api.ingest import streams as routes

    async def answered_first(sessions: Any, work: Any, **_: Any) -> Any:
        session = sessions()
        transaction = await session.begin()
        result = await work(session)

        async def commit_later() -> None:
            await asyncio.sleep(COMMIT_SECONDS)
            await transaction.commit()
            await session.close()

        _later.add(asyncio.ensure_future(commit_later()))
        return result

    routes.commit_with_retry = answered_first


_later: set[Any] = set()


def ends_every_stream() -> None:
    """A stream is said to be whole with whatever has come last."""
    from noisescale_server.services.ingest import ingestion

    advance = ingestion.advance_of

    def ended(new: Any, cursor: Any) -> Any:
        return replace(advance(new, cursor), finished_at=datetime.now(UTC))

    ingestion.advance_of = ended
