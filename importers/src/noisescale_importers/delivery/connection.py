"""The server as an import needs it: asked until it answers, and every refusal a sentence."""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from noisescale.transport.upload.answers import Action, Answer, decide
from noisescale.transport.upload.http import HttpServer
from noisescale.transport.wire import Batch, to_json
from noisescale_core.errors import ConfigError, NoiseScaleError, TransportError

PATIENCE_SECONDS = 300.0
FIRST_BACKOFF_SECONDS = 0.5
LAST_BACKOFF_SECONDS = 30.0


class NotImported(NoiseScaleError):
    """Why a run, or the rest of it, is not on the server."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where the server stands with a stream.

    Attributes:
        num_acked: Records of which it has an account.
        is_finished: Whether the stream has ended.
        started_at: When the stream began, Unix seconds; None: there is none.
    """

    num_acked: int
    is_finished: bool
    started_at: float | None


class Connection:
    """Asks a server, again and again while nobody answers.

    Args:
        server: Where.
        patience_seconds: How long a question is asked.
        on_trouble: Told once of a question that is not answered at once.
        sleep: Waits.
    """

    def __init__(
        self,
        server: HttpServer,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
        on_trouble: Callable[[str], None] = lambda trouble: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._server = server
        self._patience_seconds = patience_seconds
        self._on_trouble = on_trouble
        self._sleep = sleep

    def cursor(self, stream_id: str) -> Cursor:
        """Where the server stands with a stream; nowhere, where it has none.

        Raises:
            TransportError: Without an answer.
            ConfigError: Where the key may not.
        """
        answer = self._asked(lambda: self._server.request("GET", f"/api/v1/streams/{stream_id}"), _is_about_a_stream)
        if answer.problem == "stream-not-found":
            return Cursor(0, False, None)
        body = answer.body
        started_at = body.get("started_at")
        return Cursor(
            answer.acked_seq or 0,
            body.get("finished_at") is not None,
            float(started_at) if isinstance(started_at, int | float) else None,
        )

    def post(self, stream_id: str, batch: Batch) -> list[Mapping[str, object]]:
        """The records that the server rejects of a batch, once it has an account of all of them.

        Raises:
            NotImported: Where the source begins otherwise than what was imported, the run was deleted, or refused.
            TransportError: Without an answer.
            ConfigError: Where the key may not.
        """
        body = to_json(batch)
        answer = self._asked(lambda: self._server.post_batch(stream_id, body), _is_about_a_batch)
        match decide(answer).action:
            case Action.ADVANCE:
                rejected = answer.body.get("rejected")
                return [one for one in rejected if isinstance(one, dict)] if isinstance(rejected, list) else []
            case Action.NEW_STREAM:
                raise NotImported(
                    "its first rows are others than those that were imported before, by their content or the flags: "
                    "delete the run on the server, or import the source under another name with --as"
                )
            case Action.STOP:
                raise NotImported("it was deleted on the server: import the source under another name with --as")
        raise NotImported(f"the server {answer}")

    def request(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Answer:
        """The server's own answer to a request outside the streams.

        Raises:
            TransportError: Without one.
            ConfigError: Where the key may not.
        """
        return self._asked(lambda: self._server.request(method, path, body), lambda one: one.status < 500)

    def _asked(self, ask: Callable[[], Answer], is_answer: Callable[[Answer], bool]) -> Answer:
        deadline = time.monotonic() + self._patience_seconds
        backoff = FIRST_BACKOFF_SECONDS
        while True:
            wait, trouble = random.uniform(0, backoff), ""  # noqa: S311  # jitter
            try:
                answer = ask()
            except TransportError as error:
                trouble = str(error)
            else:
                if answer.status in (401, 403) and answer.problem is not None:
                    raise ConfigError(f"{self._server.url} {answer}: set NOISESCALE_API_KEY to a key that may")
                if is_answer(answer):
                    return answer
                trouble = f"{self._server.url} {answer}"
                wait = max(wait, decide(answer).wait_seconds)
            if time.monotonic() + wait > deadline:
                raise TransportError(trouble)
            if backoff == FIRST_BACKOFF_SECONDS:
                self._on_trouble(trouble)
            self._sleep(wait)
            backoff = min(2 * backoff, LAST_BACKOFF_SECONDS)


def _is_about_a_stream(answer: Answer) -> bool:
    return answer.acked_seq is not None or answer.problem == "stream-not-found"


def _is_about_a_batch(answer: Answer) -> bool:
    is_refusal = answer.problem is not None and answer.status < 500 and answer.status != 429
    return answer.acked_seq is not None or is_refusal
