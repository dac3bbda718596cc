"""Advice computed in the job: the same mathematics and the same sentences as the server's, from what the job knows."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import get_args

from noisescale.estimators.uncertainty import NoiseScaleEstimate, Reason, State
from noisescale.recommending.measured_run import MeasuredRun
from noisescale.recommending.question import Question
from noisescale.recommending.reading import recommendation_from
from noisescale.recommending.recommendation import Recommendation, Writer
from noisescale.theory.advice.answer import Recommendation as Advice
from noisescale.theory.advice.measurement_flags import reason_without_estimate
from noisescale.theory.advice.parts import Constraints, Preference, RunSoFar, SpentPoint
from noisescale.theory.advice.recommendation import recommend
from noisescale.theory.advice.trainer_flags import Trainer, as_flags

NOT_CALIBRATED = "Whether sweeps or branches have calibrated this task: a server knows."
ONLY_SERVER = "{names} asked for: only a server answers that."
OF_ONE_RANK = "Rank 0 of the job has the numbers: ask there."

ONLY_OF_SERVER = ("usd_per_hour_sooner", "max_hours", "max_usd", "batch_sizes")
"""What a question may hold that is not computed here."""

SECONDS_PER_HOUR = 3_600


def recommend_in_job(measured: MeasuredRun, question: Question, *, run_id: str, note: str | None) -> Recommendation:
    """The recommendation from what this job has measured.

    Args:
        measured: The run so far.
        question: What its caller values and has.
        run_id: Of the run.
        note: Why no server answered.

    Raises:
        ValueError: If the preference or the price is out of range.
    """
    so_far = _so_far(measured)
    given = Constraints(
        max_steps=question.max_steps,
        max_examples=question.max_examples,
        max_hours=question.max_hours,
        max_usd=question.max_usd,
        examples_per_device=question.examples_per_device,
        num_devices=question.num_devices,
        max_micro_batches=question.max_micro_batches,
    )
    wish = Preference(question.preference, question.examples_per_step, question.usd_per_hour_sooner)
    advice = recommend(so_far, wish, given=given, batches=question.batch_sizes)
    answer = asdict(advice) | {
        "run_id": run_id,
        "step": measured.newest_step if measured.history.num_updates else None,
        "unit": measured.description.unit,
        "example": measured.description.example,
        "units_per_example": measured.description.units_per_example,
        "noise_scale": _estimate(so_far),
    }
    missing = tuple(_missing(measured, question))
    return recommendation_from(
        answer, "job", note=note, missing=missing, writer=_writer(advice, given, so_far, measured)
    )


def _so_far(measured: MeasuredRun) -> RunSoFar:
    history, described = measured.history, measured.description
    return RunSoFar(
        noise_scale=measured.noise_scale,
        batch_size=history.batch_size,
        optimizer=measured.optimizer,
        learning_rate=history.learning_rate,
        example=described.example,
        unit=described.unit,
        family=described.family,
        units_per_example=described.units_per_example,
        steps_done=measured.newest_step + 1 if history.num_updates else 0,
        planned_steps=described.planned_steps,
        num_devices=described.num_devices,
        usd_per_device_hour=described.usd_per_device_hour,
        config=described.config,
        spent=[
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
            for moment in history.moments(has_signal=measured.has_signal)
        ],
        usd_spent=_usd_spent(measured),
        reason=_reason(measured),
        flags=history.flags,
    )


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


def _estimate(so_far: RunSoFar) -> Mapping[str, object]:
    found: NoiseScaleEstimate = so_far.noise_scale
    return {
        "state": str(found.state),
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "level": found.level,
        "z": found.z,
        "reason": so_far.reason,
        "num_updates": found.num_updates,
        "num_blocks": found.num_blocks,
        "updates_needed": found.updates_needed,
    }


def _missing(measured: MeasuredRun, question: Question) -> Iterator[str]:
    if measured.is_silent:
        yield OF_ONE_RANK
    yield NOT_CALIBRATED
    asked = [name for name in ONLY_OF_SERVER if getattr(question, name)]
    if asked:
        yield ONLY_SERVER.format(names=", ".join(asked))


def _writer(advice: Advice, given: Constraints, so_far: RunSoFar, measured: MeasuredRun) -> Writer | None:
    schedule, batch = advice.schedule, so_far.batch_size
    if schedule is None or batch is None:
        return None

    def write(trainer: str) -> str:
        trainers: tuple[Trainer, ...] = get_args(Trainer)
        known = next((one for one in trainers if one == trainer), None)
        if known is None:
            return f"# no flags for {trainer}: known are {', '.join(trainers)}\n"
        units = measured.description.units_per_example
        return as_flags(schedule, known, given, batch_now=batch, units_per_example=units)

    return write
