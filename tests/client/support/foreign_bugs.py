"""Planted bugs: what a client does that believes a proxy, or deletes what nobody has."""

import dataclasses
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from unittest import mock

import httpx

from noisescale import outbox
from noisescale.transport.spool.stream_folder import StreamFolder
from noisescale.transport.upload import http, late_delivery, uploader
from noisescale.transport.upload.answers import Action, Answer, NextAction, cursor_in, decide
from noisescale.transport.upload.uploader import Uploader

ALL = 1 << 53


def _deciding(changed: Callable[[Answer], Action | None]) -> AbstractContextManager[object]:
    def decided(answer: Answer) -> NextAction:
        action = changed(answer)
        return decide(answer) if action is None else NextAction(action)

    return mock.patch.object(uploader, "decide", decided)


@contextmanager
def any_410_stops() -> Iterator[None]:
    """Any 410 ends the delivery, and the folder is taken for one of a deleted run."""
    with _deciding(lambda answer: Action.STOP if answer.status == 410 else None):
        yield


@contextmanager
def any_413_rejects() -> Iterator[None]:
    """A record that is refused alone is lost, whoever refuses it."""
    with _deciding(lambda answer: Action.SPLIT if answer.status in (400, 413, 415, 422) else None):
        yield


@contextmanager
def any_200_acknowledges() -> Iterator[None]:
    """200 is 200, whatever comes with it."""
    believed = Uploader._believed

    def credulous(self: Uploader, batch: object, answer: Answer) -> NextAction:
        if answer.status == 200:
            return NextAction(Action.ADVANCE, seq=batch.last_seq)  # type: ignore[attr-defined]
        return believed(self, batch, answer)  # type: ignore[arg-type]

    with mock.patch.object(Uploader, "_believed", credulous):
        yield


@contextmanager
def any_cursor_is_believed() -> Iterator[None]:
    """Any 200 to the question of what a server has of a stream says that it has all of it."""

    def credulous(answer: Answer, stream_id: str) -> int | None:
        seq = cursor_in(answer, stream_id)
        return ALL if seq is None and answer.status == 200 else seq

    with mock.patch.object(late_delivery, "cursor_in", credulous):
        yield


@contextmanager
def refused_folders_go_unseen() -> Iterator[None]:
    """What a deleted run has left is gone at the next start, and nobody hears of it."""

    def silently(folder: StreamFolder) -> None:
        shutil.rmtree(folder.path, ignore_errors=True)

    with (
        mock.patch.object(late_delivery, "_delete", silently),
        mock.patch.object(StreamFolder, "told_at", return_value=0.0),
    ):
        yield


@contextmanager
def the_end_is_always_good() -> Iterator[None]:
    """A job that ends says that it has delivered everything."""
    last_words = outbox.last_words

    def cheerful(run_id: str, url: str, account: object, **facts: object) -> Iterator[str]:
        said = dataclasses.replace(account, num_kept=0, num_lost_by_reason={})  # type: ignore[type-var]
        return last_words(run_id, url, said, **facts)  # type: ignore[arg-type]

    with mock.patch.object(outbox, "last_words", cheerful):
        yield


@contextmanager
def an_odd_header_ends_the_delivery() -> Iterator[None]:
    """What an answer's headers make of its body is no failure of the network, and is not caught."""
    with mock.patch.object(http, "UNANSWERED", (httpx.TransportError,)):
        yield


@dataclass(frozen=True, slots=True)
class Bug:
    """A planted bug.

    Attributes:
        planted: It is there while the block runs.
        statuses: What the proxy has to answer for it to show.
    """

    planted: Callable[[], AbstractContextManager[None]]
    statuses: Sequence[int]


BUGS: Mapping[str, Bug] = {
    "any 410 stops": Bug(any_410_stops, (410, 413)),
    "any 413 rejects": Bug(any_413_rejects, (400, 413, 415, 422)),
    "any 200 acknowledges": Bug(any_200_acknowledges, (200, 204)),
    "any cursor is believed": Bug(any_cursor_is_believed, (200,)),
    "refused folders go unseen": Bug(refused_folders_go_unseen, (410,)),
    "an odd header ends the delivery": Bug(an_odd_header_ends_the_delivery, (502, 503)),
    "the end is always good": Bug(the_end_is_always_good, (413, 503)),
}
