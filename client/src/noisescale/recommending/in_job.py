"""Advice computed in the job: the same mathematics and the same sentences as the server's, from what the job knows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from typing import get_args

from noisescale.recommending.measured_run import MeasuredRun
from noisescale.recommending.question import Question
from noisescale.recommending.reading import recommendation_from
from noisescale.recommending.recommendation import Recommendation, Writer
from noisescale.run_history import Moment
from noisescale_core.advice.answer import Recommendation as AdviceOfTheory
from noisescale_core.advice.measurement_flags import reason_without_estimate
from noisescale_core.advice.parts import Constraints, Preference, RunSoFar, SpentPoint
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
        ValueError: If a price or a limit is out of range.
    """
    run, given = _so_far(measured, question), _constraints(question)
    wish = Preference(
        question.preference,
        question.examples_per_step,
        question.usd_per_hour_sooner,
        fixed_hardware=bool(question.fixed_hardware),
    )
    advice = recommend(run, wish, given=given, batches=question.batch_sizes)
    answer = asdict(advice) | {
        "run_id": run_id,
        "step": measured.newest_step if measured.history.num_updates else None,
        "unit": run.unit,
        "example": run.example,
        "units_per_example": run.units_per_example,
        "noise_scale": _noise_scale(run),
    }
    missing = tuple(_missing(measured))
    return recommendation_from(answer, "job", note=note, missing=missing, writer=_writer(advice, given, run))


def _constraints(question: Question) -> Constraints:
    said = {one.name: getattr(question, one.name) for one in fields(Constraints)}
    return Constraints(**{name: value for name, value in said.items() if value is not None})


def _so_far(measured: MeasuredRun, question: Question) -> RunSoFar:
    history, described = measured.history, measured.description
    price = described.usd_per_device_hour if question.usd_per_device_hour is None else question.usd_per_device_hour
    return RunSoFar(
        noise_scale=measured.noise_scale,
        batch_size=history.batch_size,
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
        num_devices=described.num_devices,
        usd_per_device_hour=price,
        config=described.config,
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


def _noise_scale(run: RunSoFar) -> Mapping[str, object]:
    found = run.noise_scale
    return {
        "state": str(found.state),
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "level": found.level,
        "z": found.z,
        "reason": run.reason,
        "num_updates": found.num_updates,
        "num_blocks": found.num_blocks,
        "updates_needed": found.updates_needed,
    }


def _missing(measured: MeasuredRun) -> Iterator[str]:
    if measured.is_silent:
        yield OF_ONE_RANK
    yield NOT_CALIBRATED


def _writer(advice: AdviceOfTheory, given: Constraints, run: RunSoFar) -> Writer | None:
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
            given,
            batch_now=batch,
            units_per_example=run.units_per_example,
            num_devices=run.num_devices,
            examples_per_step=rate.examples_per_step,
        )

    return write
