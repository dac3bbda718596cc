"""Asks the server for advice: one request of a few seconds at most, and never an exception."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import quote, urlencode

from noisescale.ask.recommendation import Recommendation, Writer
from noisescale.config import Config
from noisescale.transport.upload.http import HttpServer
from noisescale.version import __version__
from noisescale_core.advice.answer import as_part
from noisescale_core.advice.learning_rate.rate_verdict import RateVerdict
from noisescale_core.advice.question import Question
from noisescale_core.errors import TransportError

ANSWER_SECONDS = 3.0
"""A recommendation takes the server milliseconds; a training job waits for no more than this."""

QUIET_SECONDS = 60.0
"""A server that did not answer is asked again after so long: a hung one costs a job 3 s a minute at most."""

RUN_NOT_FOUND = "/errors/run-not-found"
"""What a server says of a run whose first record is still on its way."""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Why there is no advice from a server.

    Attributes:
        why: In a clause.
        was_there: A server answered, but not this.
        is_refusal: It did not like the question.
    """

    why: str
    was_there: bool = False
    is_refusal: bool = False


class RecommendingServer:
    """The server of a run, asked for recommendations and for what it says of a learning rate.

    Args:
        config: Address and key.
        open_server: Stands in for the connection.
        now: Seconds of a clock that never jumps.
    """

    def __init__(
        self,
        config: Config,
        open_server: Callable[[], HttpServer] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._open_server = open_server or self._connect
        self._now = now
        self._quiet_until = -float("inf")
        self._quiet_because = ""

    def of_run(self, run_id: str, question: Question) -> Recommendation | NoAnswer:
        """The recommendation for a stored run."""
        return self._ask(f"/api/v1/runs/{quote(run_id, safe='')}/recommendation", question)

    def of_task(
        self, project: str, task: str, question: Question, *, optimizer: str | None = None
    ) -> Recommendation | NoAnswer:
        """The recommendation for the next run of a task."""
        path = f"/api/v1/projects/{quote(project, safe='')}/tasks/{quote(task, safe='')}/recommendation"
        return self._ask(path, question, optimizer=optimizer)

    def learning_rate_of(self, run_id: str) -> RateVerdict | NoAnswer:
        """The verdict on a stored run's learning rate, read against one's own runs; no answer where there are none."""
        found = self._get(f"/api/v1/runs/{quote(run_id, safe='')}/learning-rate?points=1")
        if isinstance(found, NoAnswer):
            return found
        answer = _json_object(found)
        texts = {name: answer.get(name) for name in ("headline", "reason", "calibration")}
        if not all(isinstance(text, str) for text in texts.values()):
            return NoAnswer(f"{self._config.url} knows no run to read it against", was_there=True)
        path = answer.get("path")
        num_updates = path.get("num_updates") if isinstance(path, dict) else None
        known = {"verdict": answer.get("verdict"), "num_updates": num_updates if isinstance(num_updates, int) else 0}
        return as_part(RateVerdict, answer, **texts, **known)

    def _ask(self, path: str, question: Question, **more: str | None) -> Recommendation | NoAnswer:
        found = self._get(with_query(path, question, **more))
        if isinstance(found, NoAnswer):
            return found
        answer = _json_object(found)
        if "decision" not in answer:
            return NoAnswer(f"{self._config.url} answered something else than a recommendation", was_there=True)

        def write(trainer: str) -> str:
            text = self._get(with_query(path, question, **more, format=trainer))
            return f"# no flags for {trainer}: {text.why}\n" if isinstance(text, NoAnswer) else text

        return recommendation_from(answer, write)

    def _get(self, address: str) -> str | NoAnswer:
        """The text of an answer."""
        if self._now() < self._quiet_until:
            return NoAnswer(self._quiet_because)
        server = self._open_server()
        try:
            status, text = server.read(address)
        except TransportError as error:
            self._quiet_until, self._quiet_because = self._now() + QUIET_SECONDS, str(error)
            return NoAnswer(str(error))
        finally:
            server.close()
        if status == HTTPStatus.OK:
            return text
        problem = _json_object(text)
        if problem.get("type") == RUN_NOT_FOUND:
            return NoAnswer(f"{self._config.url} holds no record of this run yet", was_there=True)
        why = problem.get("detail") or problem.get("title") or f"HTTP {status}"
        is_refusal = status == HTTPStatus.UNPROCESSABLE_ENTITY
        return NoAnswer(f"{self._config.url} says: {why}", was_there=True, is_refusal=is_refusal)

    def _connect(self) -> HttpServer:
        agent = f"noisescale/{__version__}"
        return HttpServer(self._config.url, self._config.api_key, agent, answer_seconds=ANSWER_SECONDS)


def with_query(path: str, question: Question, **more: str | None) -> str:
    """The path with what was said as its query, by the names of `docs/rest.md`.

    Args:
        path: Of the server.
        question: What was asked.
        more: Further names and values; None: not said.
    """
    said = [(name, value) for name, value in question.said.items() if name != "batch_sizes"]
    query = [(name, _text(value)) for name, value in [*said, *more.items()] if value is not None]
    query += [("batch_size", str(size)) for size in question.batch_sizes]
    return f"{path}?{urlencode(query)}" if query else path


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def recommendation_from(answer: Mapping[str, object], writer: Writer | None = None) -> Recommendation:
    """The recommendation in a server's JSON, as far as this version knows its fields; all of it is in `answer`.

    Args:
        answer: With a decision; without a reason it is an answer still.
        writer: Writes the schedule in a trainer's words.
    """
    reason = answer.get("reason")
    known = {"reason": reason if isinstance(reason, str) else "", "source": "server", "said": answer, "writer": writer}
    return as_part(Recommendation, answer, **known)


def _json_object(text: str) -> Mapping[str, object]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
