"""Answers about what training costs, version 1; see docs/rest.md. Hours, USD and PF-days; days as dates."""

from collections.abc import Sequence
from datetime import date
from uuid import UUID

from noisescale_server.analysis.cost.decomposition import Decomposition, DeviceRatio, Part
from noisescale_server.analysis.cost.records import Improvement, Record, SameHardware
from noisescale_server.analysis.cost.techniques import Technique
from noisescale_server.analysis.cost.trainings import Origin, Training
from noisescale_server.api.platform.schemas import Answer
from noisescale_server.services.cost.board_rows import BoardRow, OnSpot
from noisescale_server.services.cost.leaderboard import Board
from noisescale_server.services.cost.submissions import Factor, Submissions


class TrainingAnswer(Answer):
    """A training to the target; `origin` says whose prices these are."""

    key: str
    name: str
    origin: Origin
    day: date
    hours: float
    usd: float | None
    price_said: str
    device: str | None
    num_devices: int | None
    device_hours: float | None
    batch_size: float | None
    passes: float | None
    software: str
    model: str
    hardware: str
    is_on_front: bool
    is_record: bool
    excluded: str | None


class BoardRowAnswer(TrainingAnswer):
    """A run of one's own; `hours` hold `paused_hours` between its processes, `device_hours` and `usd` do not."""

    run_id: UUID
    project: str
    task: str
    step: int
    value: float
    paused_hours: float
    on_spot: OnSpot | None
    techniques: tuple[Technique, ...]
    engineering_hours: float | None
    change: str | None


class RecordAnswer(Answer):
    """A training that was faster than all before it."""

    key: str
    name: str
    day: date
    value: float
    of_baseline: float
    of_previous: float


class ImprovementAnswer(Answer):
    """From the best of the first day to the best of all, in hours or USD."""

    baseline: str
    best: str
    before: float
    after: float
    times: float


class SameHardwareAnswer(Answer):
    """The line of records on as many devices of one kind."""

    device: str
    num_devices: int
    times: float
    records: list[RecordAnswer]


class RecordStepAnswer(Answer):
    """What the way from one record to the next consists of; the parts multiply to `times`."""

    before: str
    after: str
    times: float
    parts: tuple[Part, ...]


class BoardAnswer(Answer):
    """Common to both boards."""

    metric: str
    target: float
    front: tuple[str, ...]
    records: list[RecordAnswer]
    improvement: ImprovementAnswer | None
    improvement_usd: ImprovementAnswer | None
    same_hardware: list[SameHardwareAnswer]
    steps: list[RecordStepAnswer]


class LeaderboardAnswer(BoardAnswer):
    """Runs of one's own that reached a target."""

    goal: str
    rows: list[BoardRowAnswer]
    num_runs: int
    num_reached: int
    num_unpriced: int
    why_unpriced: str
    assumptions: tuple[str, ...]


class SubmissionsAnswer(BoardAnswer):
    """DAWNBench's submissions of a task."""

    task: str
    until: date | None
    rows: list[TrainingAnswer]
    device_ratios: tuple[DeviceRatio, ...]
    factors: tuple[Factor, ...]
    source: str


OWN_ASSUMPTIONS = (
    "Hours by the clock, from the start of the first process to the first value at or past the target; pauses between "
    "processes count.",
    "Device-hours and USD are of the hours in which processes ran, times the devices that the run says.",
    "The price is the run's own, else its project's default, else the one asked with; on demand.",
    "Search, failed runs, storage and people are not in it.",
)


def leaderboard_answer(found: Board, *, metric: str, target: float, goal: str) -> LeaderboardAnswer:
    """The board of one's own runs as it is sent."""
    return LeaderboardAnswer(
        **_common(found),
        metric=metric,
        target=target,
        goal=goal,
        rows=[_row(row, found.why_unpriced) for row in found.rows],
        num_runs=found.num_runs,
        num_reached=found.num_reached,
        num_unpriced=found.num_unpriced,
        why_unpriced=found.why_unpriced,
        assumptions=OWN_ASSUMPTIONS,
    )


def submissions_answer(found: Submissions, until: date | None) -> SubmissionsAnswer:
    """DAWNBench's entries as they are sent."""
    on_front, broke = set(found.front), {one.training.key for one in found.records}
    return SubmissionsAnswer(
        **_common(found),
        metric=found.target.metric,
        target=found.target.at_least,
        task=found.target.task,
        until=until,
        rows=[
            TrainingAnswer(
                **_fields(one),
                device_hours=one.device_hours,
                is_on_front=one.key in on_front,
                is_record=one.key in broke,
                excluded=found.excluded.get(one.key),
            )
            for one in found.rows
        ],
        device_ratios=found.device_ratios,
        factors=found.factors,
        source=found.source,
    )


def _common(found: Board | Submissions) -> dict[str, object]:
    return {
        "front": found.front,
        "records": _records(found.records),
        "improvement": _improvement(found.improvement),
        "improvement_usd": _improvement(found.improvement_usd),
        "same_hardware": [_same_hardware(one) for one in found.same_hardware],
        "steps": [_step(one) for one in found.steps],
    }


def _fields(one: Training) -> dict[str, object]:
    return {name: getattr(one, name) for name in Training.__slots__}


def _row(row: BoardRow, why_unpriced: str) -> BoardRowAnswer:
    return BoardRowAnswer(
        **_fields(row.training),
        device_hours=row.device_hours,
        is_on_front=row.is_on_front,
        is_record=row.is_record,
        excluded=why_unpriced if row.training.usd is None else None,
        run_id=row.run.run_id,
        project=row.run.project,
        task=row.run.task,
        step=row.reached.step,
        value=row.reached.value,
        paused_hours=row.paused_hours,
        on_spot=row.on_spot,
        techniques=row.techniques,
        engineering_hours=row.engineering_hours,
        change=row.change,
    )


def _records(found: Sequence[Record]) -> list[RecordAnswer]:
    return [
        RecordAnswer(
            key=one.training.key,
            name=one.training.name,
            day=one.training.day,
            value=one.value,
            of_baseline=one.of_baseline,
            of_previous=one.of_previous,
        )
        for one in found
    ]


def _improvement(found: Improvement | None) -> ImprovementAnswer | None:
    if found is None:
        return None
    return ImprovementAnswer(
        baseline=found.baseline.name,
        best=found.best.name,
        before=found.before,
        after=found.after,
        times=found.times,
    )


def _same_hardware(one: SameHardware) -> SameHardwareAnswer:
    return SameHardwareAnswer(
        device=one.device, num_devices=one.num_devices, times=one.times, records=_records(one.records)
    )


def _step(one: Decomposition) -> RecordStepAnswer:
    return RecordStepAnswer(before=one.before.name, after=one.after.name, times=one.times, parts=one.parts)
