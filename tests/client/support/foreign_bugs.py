"""Planted bugs: what a client does that believes a proxy, or deletes what nobody has."""

import dataclasses
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from unittest import mock

from noisescale import outbox
from noisescale.transport import late_delivery, uploader
from noisescale.transport.answers import Action, Answer, Decision, cursor_in, decide
from noisescale.transport.stream_folder import StreamFolder
from noisescale.transport.uploader import Uploader


def _deciding(changed: Callable[[Answer], Action | None]) -> AbstractContextManager[object]:
    def decided(answer: Answer) -> Decision:
        action = changed(answer)
        return decide(answer) if action is None else Decision(action)

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

    def credulous(self: Uploader, batch: object, answer: Answer) -> Decision:
        if answer.status == 200:
            return Decision(Action.ADVANCE, seq=batch.last_seq)  # type: ignore[attr-defined]
        return believed(self, batch, answer)  # type: ignore[arg-type]

    with mock.patch.object(Uploader, "_believed", credulous):
        yield


@contextmanager
def any_cursor_is_believed() -> Iterator[None]:
    """A cursor counts without the stream that it is of, and "not found" means that nothing is there."""

    def credulous(answer: Answer, stream_id: str) -> int | None:
        seq = answer.body.get("acked_seq")
        return int(seq) if answer.status == 200 and isinstance(seq, int) else cursor_in(answer, stream_id)

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


BUGS: Mapping[str, Callable[[], AbstractContextManager[None]]] = {
    "any 410 stops": any_410_stops,
    "any 413 rejects": any_413_rejects,
    "any 200 acknowledges": any_200_acknowledges,
    "any cursor is believed": any_cursor_is_believed,
    "refused folders go unseen": refused_folders_go_unseen,
    "the end is always good": the_end_is_always_good,
}
