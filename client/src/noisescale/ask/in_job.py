"""Advice computed in the job: the same mathematics and the same sentences as the server's, from what the job knows."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import get_args

from noisescale.ask.recommendation import Recommendation, Writer
from noisescale.track.measured_run import MeasuredRun
from noisescale.window.run_history import Moment
from noisescale_core.advice.answer import Recommendation as AdviceOfTheory
from noisescale_core.advice.parts.flags import reason_without_estimate
from noisescale_core.advice.parts.known_noise_scale import known_noise_scale
from noisescale_core.advice.parts.parts import RunSoFar, SpentPoint
from noisescale_core.advice.question import Question
from noisescale_core.advice.recommendation import recommend
from noisescale_core.advice.trainer_flags import Trainer, as_flags
from noisescale_core.estimators.uncertainty import Reason, State

NOT_CALIBRATED = "Whether sweeps or branches have calibrated this task: a server knows."
OF_ONE_RANK = "Rank 0 of the job has the numbers: ask there."

SECONDS_PER_HOUR = 3_600


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
