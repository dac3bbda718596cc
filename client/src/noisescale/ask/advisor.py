"""Answers `run.recommendation()` and `run.learning_rate()`: the server first, the job's own measurements without it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import get_args

from noisescale.ask.asking import NoAnswer, RecommendingServer
from noisescale.ask.recommendation import Recommendation, Writer, parts
from noisescale.config import Config
from noisescale.guard import Faults, never_raises
from noisescale.shown import run_card
from noisescale.track.recorder import Recorder
from noisescale.track.results import MeasuredRun
from noisescale.window.run_history import Moment
from noisescale_core.advice.answer import Recommendation as AdviceOfTheory
from noisescale_core.advice.learning_rate.rate_verdict import RateVerdict
from noisescale_core.advice.parts.flags import reason_without_estimate
from noisescale_core.advice.parts.known_noise_scale import known_noise_scale
from noisescale_core.advice.parts.parts import Caution, RunSoFar, SpentPoint
from noisescale_core.advice.question import Question
from noisescale_core.advice.recommendation import recommend
from noisescale_core.advice.trainer_flags import Trainer, as_flags
from noisescale_core.advice.words import of_the_rate
from noisescale_core.errors import ConfigError, DomainError
from noisescale_core.estimators.uncertainty import Reason, State

NOT_CALIBRATED = "Whether sweeps or branches have calibrated this task: a server knows."
OF_ONE_RANK = "Rank 0 of the job has the numbers: ask there."

SECONDS_PER_HOUR = 3_600

FAILED = (
    "The recommendation failed because of an error inside noisescale; the log has the details, and training goes on."
)
NOT_ASKED = "no server was asked"
MOST_OF_A_PATH = 0.9
"""Of updates that job and server have to share: the rest is on its way, and with many more it is an older path."""

DISABLED = "The client is disabled (mode='disabled'), so nothing is measured."


# Advice computed in the job: the same mathematics and the same sentences as the server's, from what the job knows.


def recommend_in_job(measured: MeasuredRun, question: Question, *, run_id: str, note: str | None) -> Recommendation:
    """The recommendation from what this job has measured.

    Args:
        measured: The run so far.
        question: What its caller values and has.
        run_id: Of the run.
        note: Why no server answered.

    Raises:
        DomainError: If a price or a limit is out of range.
    """
    run = replace(_so_far(measured, question), run_id=run_id)
    found = recommend(run, asked=question)
    missing, writer = tuple(_missing(measured)), _writer(found, question, run)
    course = tuple(point.value for point in run.spent)
    return Recommendation.of(found, source="job", note=note, missing=missing, course=course, writer=writer)


def course_of(measured: MeasuredRun) -> tuple[float | None, ...]:
    """Noise scales along the run, oldest first; None where nothing was known.

    Args:
        measured: The run so far.
    """
    return tuple(one.noise_scale.value for one in measured.history.moments(has_signal=measured.has_signal))


def _so_far(measured: MeasuredRun, question: Question) -> RunSoFar:
    history, described = measured.history, measured.description
    price = described.usd_per_device_hour if question.usd_per_device_hour is None else question.usd_per_device_hour
    return RunSoFar(
        noise_scale=measured.noise_scale,
        batch_size=measured.batch_size,
        optimizer=measured.optimizer,
        momentum=measured.momentum,
        learning_rate=history.learning_rate,
        example=described.example,
        unit=described.unit,
        family=described.family,
        spent=_spent(history.moments(has_signal=measured.has_signal)),
        usd_spent=_usd_spent(measured),
        reason=_reason(measured),
        flags=history.flags,
        units_per_example=float(described.units_per_example),
        steps_done=measured.newest_step + 1 if history.num_updates else 0,
        planned_steps=described.planned_steps,
        has_ended=measured.has_ended,
        num_devices=described.num_devices,
        usd_per_device_hour=price,
        config=described.config,
        step=measured.newest_step if history.num_updates else None,
        noise_scale_step=measured.noise_scale_step,
        divergence=measured.divergence,
        known=known_noise_scale(history.looks),
        rate_off=measured.rate_off,
    )


def _spent(moments: Iterator[Moment]) -> Sequence[SpentPoint]:
    return [
        SpentPoint(
            examples=moment.examples,
            batch_size=moment.batch_size,
            value=moment.noise_scale.value,
            low=moment.noise_scale.low,
            high=moment.noise_scale.high,
            num_steps=moment.num_steps,
            seconds=moment.seconds,
            learning_rate=moment.learning_rate,
            is_resolved=moment.noise_scale.state is State.RESOLVED,
        )
        for moment in moments
    ]


def _usd_spent(measured: MeasuredRun) -> float | None:
    price, seconds = measured.description.usd_per_device_hour, measured.history.seconds
    if price is None or seconds is None:
        return None
    return price * measured.description.num_devices * seconds / SECONDS_PER_HOUR


def _reason(measured: MeasuredRun) -> str | None:
    """Why there is no value: the flags of the updates say more than that there are no estimates."""
    reason, history = measured.noise_scale.reason, measured.history
    if history.newest is None:
        return None
    if reason is not Reason.NO_ESTIMATES:
        return reason
    return reason_without_estimate(history.newest.flags) or reason_without_estimate(history.flags) or reason


def _missing(measured: MeasuredRun) -> Iterator[str]:
    if measured.is_silent:
        yield OF_ONE_RANK
    yield NOT_CALIBRATED


def _writer(advice: AdviceOfTheory, asked: Question, run: RunSoFar) -> Writer | None:
    schedule, rate, batch = advice.schedule, advice.exchange_rate, run.batch_size
    if schedule is None or rate is None or batch is None:
        return None

    def write(trainer: str) -> str:
        trainers: tuple[Trainer, ...] = get_args(Trainer)
        known = next((one for one in trainers if one == trainer), None)
        if known is None:
            return f"# no flags for {trainer}: known are {', '.join(trainers)}\n"
        return as_flags(
            schedule,
            known,
            asked,
            batch_now=batch,
            units_per_example=run.units_per_example,
            num_devices=run.num_devices,
            examples_per_step=rate.examples_per_step,
        )

    return write


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
            found = replace(_with_delay(asked, recorder.newest_step), course=course_of(recorder.measured()))
            return beside_the_rate(found, lambda: self.learning_rate(recorder, recorder.learning_rate()))
        if asked.is_refusal:
            return refused(asked.why)
        try:
            found = recommend_in_job(recorder.measured(), question, run_id=recorder.run_id, note=asked.why)
        except DomainError as error:
            return refused(str(error))
        return beside_the_rate(found, recorder.learning_rate)

    def learning_rate(self, recorder: Recorder, own: RateVerdict) -> RateVerdict:
        """The server's verdict where it reads this path against runs of one's own and holds most of it, else the job's.

        Args:
            recorder: Of one optimizer.
            own: What the job says.
        """
        return self._learning_rate(recorder, own) or own

    @never_raises
    def _learning_rate(self, recorder: Recorder, own: RateVerdict) -> RateVerdict | None:
        if self._config.mode != "online" or own.verdict is None:
            return None
        found = self._server.learning_rate_of(recorder.run_id)
        if isinstance(found, NoAnswer):
            return None
        fewer, more = sorted((found.num_updates, own.num_updates))
        return found if fewer >= MOST_OF_A_PATH * more else None

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


def beside_the_rate(found: Recommendation, said: Callable[[], RateVerdict]) -> Recommendation:
    """The answer, with a caution where its learning rate starts from one that is too low or too high.

    Args:
        found: The answer.
        said: Gives the verdict on the present rate.
    """
    if found.learning_rate is None:
        return found
    now = said()
    factor, low, high = now.factor, now.factor_low, now.factor_high
    if now.verdict not in ("too_low", "too_high") or factor is None or low is None or high is None:
        return found
    text = of_the_rate.beside_the_batch(now.verdict.replace("_", " "), factor, low, high, now.probability)
    return replace(found, warnings=(*found.warnings, Caution("learning_rate_off", text)))


def refused(why: str) -> Recommendation:
    """What a question gets that cannot be answered as it was asked."""
    return Recommendation(headline="The question was refused", reason=why)


def _with_delay(found: Recommendation, newest_step: int) -> Recommendation:
    """The server's answer, with how far it is behind: records travel for a moment."""
    if found.step is None or found.step >= newest_step:
        return found
    return replace(found, note=f"this job is at step {newest_step:,}")
