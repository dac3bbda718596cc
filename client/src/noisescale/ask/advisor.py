"""Answers `run.recommendation()`: the server first, the job's own measurements where there is none."""

from collections.abc import Mapping
from dataclasses import replace

from noisescale.ask.asking import NoAnswer, RecommendingServer
from noisescale.ask.in_job import course_of, recommend_in_job
from noisescale.ask.printed import parts
from noisescale.ask.recommendation import Recommendation
from noisescale.config import Config
from noisescale.guard import Faults, never_raises
from noisescale.shown.card import run_card
from noisescale.track.recorder import Recorder
from noisescale_core.advice.question import Question
from noisescale_core.errors import ConfigError, DomainError

FAILED = (
    "The recommendation failed because of an error inside noisescale; the log has the details, and training goes on."
)
NOT_ASKED = "no server was asked"
DISABLED = "The client is disabled (mode='disabled'), so nothing is measured."


class Advisor:
    """Of one run; it never raises.

    Args:
        config: Settings of the client.
        faults: Told about errors of ours.
        server: Stands in for the server.

    Attributes:
        faults: Errors of ours.
        is_recording: True: advice is also given after the end.
    """

    is_recording = True

    def __init__(self, config: Config, faults: Faults, server: RecommendingServer | None = None) -> None:
        self.faults = faults
        self._config = config
        self._server = server or RecommendingServer(config)

    def leave_out(self, call: str) -> None:
        """Leave no call out."""

    def recommend(self, recorder: Recorder, asked: Mapping[str, object], *, is_of_job: bool = False) -> Recommendation:
        """The advice for what a recorder has measured.

        Args:
            recorder: Of one optimizer.
            asked: Keywords as of `Question`.
            is_of_job: No server is asked.
        """
        try:
            question = Question.of(asked)
        except ConfigError as error:
            return refused(str(error))
        return self._recommend(recorder, question, is_of_job) or Recommendation(reason=FAILED)

    @never_raises
    def _recommend(self, recorder: Recorder, question: Question, is_of_job: bool) -> Recommendation:
        if self._config.mode == "disabled":
            return Recommendation(reason=DISABLED, next_step="Say mode='online', or leave NOISESCALE_MODE out.")
        asked = NoAnswer(NOT_ASKED) if is_of_job else self._ask(recorder, question)
        if isinstance(asked, Recommendation):
            return replace(_with_delay(asked, recorder.newest_step), course=course_of(recorder.measured()))
        if asked.is_refusal:
            return refused(asked.why)
        try:
            return recommend_in_job(recorder.measured(), question, run_id=recorder.run_id, note=asked.why)
        except DomainError as error:
            return refused(str(error))

    @never_raises
    def card(self, recorder: Recorder) -> str:
        """What a recorder has measured as a notebook shows it; no server is asked.

        Args:
            recorder: Of one optimizer.
        """
        described = recorder.description
        name = "" if described.name is None else f" · {described.name}"
        title = f"{described.project}/{described.task}{name} · step {recorder.newest_step:,}"
        found = self.recommend(recorder, {}, is_of_job=True)
        return run_card(title, str(recorder.noise_scale("simple")), found, parts(found))

    def _ask(self, recorder: Recorder, question: Question) -> Recommendation | NoAnswer:
        if self._config.mode != "online":
            return NoAnswer(f"mode {self._config.mode!r} asks no server")
        return self._server.of_run(recorder.run_id, question)


def refused(why: str) -> Recommendation:
    """What a question gets that cannot be answered as it was asked."""
    return Recommendation(headline="The question was refused", reason=why)


def _with_delay(found: Recommendation, newest_step: int) -> Recommendation:
    """The server's answer, with how far it is behind: records travel for a moment."""
    if found.step is None or found.step >= newest_step:
        return found
    return replace(found, note=f"this job is at step {newest_step:,}")
