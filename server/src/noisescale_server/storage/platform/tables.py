"""Projects, tasks, runs, streams and sweeps as mapped classes; the migrations create exactly these.

Columns carry the names of the wire format. Sums add, so a rollup row is a bigger measurement. `run_id` leads every key
but those of project, task, sweep and its calibration, of a stream's place, of deleted runs and the epoch: a distributed
Postgres places all that belongs to a run together. Only run, stream and sweeps carry foreign keys: a check per
measurement would cost more than the insert. Measured rows are in `row_tables.py`.
"""

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    DateTime,
    Double,
    ForeignKey,
    Index,
    MetaData,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

NAMING_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class Table(DeclarativeBase):
    """Naming convention and the mapping from Python types to columns."""

    metadata = MetaData(naming_convention=NAMING_CONVENTION)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: Text,
        int: BigInteger,
        float: Double,
        datetime: DateTime(timezone=True),
        list[str]: ARRAY(Text),
        list[int]: ARRAY(BigInteger),
        list[float]: ARRAY(Double),
        dict[str, Any]: JSONB,
    }


class Project(Table):
    """A group of runs that one team compares."""

    __tablename__ = "project"

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    name: Mapped[str] = mapped_column(unique=True)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Task(Table):
    """What is trained: data, model family and loss, within one project."""

    __tablename__ = "task"
    __table_args__ = (UniqueConstraint("project_id", "name"),)

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    name: Mapped[str]
    unit: Mapped[str | None]
    family: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


def _name_parts() -> str:
    texts = ('lower(name COLLATE "C")', 'substr(lower(name COLLATE "C"), 2)', 'substr(lower(name COLLATE "C"), 3)')
    return " || ".join(f"string_to_array(regexp_replace({one}, '(...)', '\\1|', 'g'), '|')" for one in texts)


NAME_PARTS = _name_parts()
"""All that a run's name has of three letters in a row, ASCII ones small, as SQL: cut up from its first, second and
third letter on. A part that holds the bar may be missing. ix_run_name_parts is of it, which the migration alone names:
Postgres tells an expression back in other words."""


class Run(Table):
    """One training run; `latest_*` and `noise_scale_*` repeat its newest measurements, for lists and sorting."""

    __tablename__ = "run"
    # no index on what every batch changes: an update then stays on its page
    __table_args__ = (
        Index("ix_run_project", "project_id", "archived", "heard_at"),
        Index(None, "task_id"),
        # an update leaves its page only when a run enters or leaves it
        Index("ix_run_stale", "id", postgresql_where=text("window_is_stale")),
        Index("ix_run_undecided", "id", postgresql_where=text("decision_is_stale")),
        Index("ix_run_unfinished", "created_at", postgresql_where=text("finish_status IS NULL AND NOT archived")),
        # what lists go along, `storage/runs/listing.py`
        Index("ix_run_heard", "archived", "heard_at"),
        Index("ix_run_misfit", "archived", "misfit", postgresql_where=text("trial_of IS NULL")),
        Index("ix_run_saving", "archived", "decision_saving", postgresql_where=text("trial_of IS NULL")),
        Index("ix_run_trial", "trial_of", postgresql_where=text("trial_of IS NOT NULL")),
        {"postgresql_with": {"fillfactor": 70}},
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    task_id: Mapped[UUID] = mapped_column(ForeignKey("task.id"))
    name: Mapped[str]
    tags: Mapped[list[str]] = mapped_column(server_default="{}")
    # what people write about the run; `notes` are what the client says of the measurement
    remarks: Mapped[str] = mapped_column(server_default="")
    config: Mapped[dict[str, Any]] = mapped_column(server_default="{}")
    unit: Mapped[str] = mapped_column(server_default="examples")
    example: Mapped[str | None]
    units_per_example: Mapped[float] = mapped_column(server_default="1")
    num_devices: Mapped[int | None]
    device: Mapped[str | None]
    usd_per_device_hour: Mapped[float | None]
    family: Mapped[str | None]
    planned_steps: Mapped[int | None]
    archived: Mapped[bool] = mapped_column(server_default="false")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    # server clock of the last data: a wrong clock on a training host must not make a run look silent
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())
    # the same up to a minute ago, never later: an index can hold it, as few batches change it
    heard_at: Mapped[datetime] = mapped_column(server_default=func.now())
    finished_at: Mapped[datetime | None]
    finish_status: Mapped[str | None]
    # when its rows were last folded into the pyramid; data that come later are folded once more
    folded_at: Mapped[datetime | None]

    # the stream of kind simple that started last: what an older one says does not overwrite what this one said
    newest_stream_id: Mapped[UUID | None]
    newest_started_at: Mapped[datetime | None]
    optimizer: Mapped[str | None]
    estimator: Mapped[str | None]
    measure_every: Mapped[int | None]
    num_ranks: Mapped[int | None]
    notes: Mapped[list[str]] = mapped_column(server_default="{}")
    kinds: Mapped[list[str]] = mapped_column(server_default="{}")
    loss_reduction: Mapped[str | None]
    first_step: Mapped[int | None]
    latest_step: Mapped[int | None]
    latest_examples: Mapped[int | None]
    latest_loss: Mapped[float | None]
    latest_lr: Mapped[float | None]
    latest_global_batch: Mapped[float | None]
    latest_num_micro_batches: Mapped[int | None]
    latest_flags: Mapped[int] = mapped_column(server_default="0")

    # when `noise_scale_*` were last computed, and whether rows have come that are not in them
    latest_refreshed_at: Mapped[datetime | None]
    window_is_stale: Mapped[bool] = mapped_column(server_default="true")
    noise_scale_state: Mapped[str | None]
    noise_scale_value: Mapped[float | None]
    noise_scale_low: Mapped[float | None]
    noise_scale_high: Mapped[float | None]
    noise_scale_z: Mapped[float | None]
    noise_scale_reason: Mapped[str | None]
    noise_scale_updates_needed: Mapped[int | None]
    noise_scale_num_updates: Mapped[int | None]
    noise_scale_num_blocks: Mapped[int | None]
    noise_scale_flags: Mapped[int] = mapped_column(server_default="0")
    noise_scale_step: Mapped[int | None]
    # since which step in a row, up to the newest, none was finite
    loss_broken_since: Mapped[int | None]
    gradients_broken_since: Mapped[int | None]
    example_efficiency: Mapped[float | None]
    # |ln(batch / noise scale)| to 0.02, likewise for an index; null where not resolved
    misfit: Mapped[float | None]
    # the sweep behind whose row lists keep it, or the task where a reproduction has trained it
    trial_of: Mapped[UUID | None]

    # what to do with the batch, for a reader who says no price; null until it was looked at
    decision: Mapped[str | None]
    decision_batch_size: Mapped[int | None]
    decision_low: Mapped[float | None]
    decision_high: Mapped[float | None]
    decision_reason: Mapped[str | None]
    decision_probability: Mapped[float | None]
    decision_saving: Mapped[float | None]
    # from this step on there is more to judge by
    decision_due_step: Mapped[int | None]
    decision_is_stale: Mapped[bool] = mapped_column(server_default="true")


class Stream(Table):
    """One process incarnation writing to one run: its cursor, its ledger and how it measures.

    Always next_seq - 1 = num_stored + num_lost + num_rejected.
    """

    __tablename__ = "stream"
    __table_args__ = ({"postgresql_with": {"fillfactor": 70}},)

    run_id: Mapped[UUID] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"), primary_key=True)
    id: Mapped[UUID] = mapped_column(primary_key=True)
    next_seq: Mapped[int] = mapped_column(server_default="1")
    last_first_seq: Mapped[int | None]
    last_crc: Mapped[int | None]
    num_stored: Mapped[int] = mapped_column(server_default="0")
    num_lost: Mapped[int] = mapped_column(server_default="0")
    num_rejected: Mapped[int] = mapped_column(server_default="0")
    # how far apart the rows are: a read sizes its windows by it
    num_measurements: Mapped[int] = mapped_column(server_default="0")
    num_estimates: Mapped[int] = mapped_column(server_default="0")
    # of the rows those that the pyramid alone holds, and first and last of each range of 1,024 steps they were of
    num_folded: Mapped[int] = mapped_column(server_default="0")
    folded: Mapped[list[int]] = mapped_column(server_default="{}")
    folded_groups: Mapped[list[int]] = mapped_column(server_default="{}")
    first_step: Mapped[int | None]
    last_step: Mapped[int | None]
    started_at: Mapped[datetime]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())
    finished_at: Mapped[datetime | None]

    estimator: Mapped[str | None]
    kind: Mapped[str] = mapped_column(server_default="simple")
    measure_every: Mapped[int | None]
    num_ranks: Mapped[int | None]
    notes: Mapped[list[str]] = mapped_column(server_default="{}")
    unit: Mapped[str | None]
    units_per_example: Mapped[float | None]
    loss_reduction: Mapped[str | None]
    optimizer: Mapped[str | None]
    batch_size_source: Mapped[str | None]
    rank: Mapped[int | None]
    host: Mapped[str | None]
    client_version: Mapped[str | None]


class StreamPlace(Table):
    """Which run a stream writes to: no id is given twice, and a stream is found where only its id is known."""

    __tablename__ = "stream_place"

    stream_id: Mapped[UUID] = mapped_column(primary_key=True)
    run_id: Mapped[UUID]


class DeletedRun(Table):
    """The id of a run that was deleted: what a job still sends of it is refused for good.

    Its measured rows go in the background; `purged_at` says when the last of them went.
    """

    __tablename__ = "deleted_run"
    __table_args__ = (Index("ix_deleted_run_unpurged", "deleted_at", postgresql_where=text("purged_at IS NULL")),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    deleted_at: Mapped[datetime] = mapped_column(server_default=func.now())
    purged_at: Mapped[datetime | None]


class Epoch(Table):
    """One row: which database this is, and which life of its data. A restored backup begins another life."""

    __tablename__ = "epoch"
    __table_args__ = (CheckConstraint("is_current", name="one_row"),)

    is_current: Mapped[bool] = mapped_column(primary_key=True, server_default="true")
    id: Mapped[UUID] = mapped_column(server_default=func.gen_random_uuid())
    began_at: Mapped[datetime] = mapped_column(server_default=func.now())
    database_id: Mapped[UUID] = mapped_column(server_default=func.gen_random_uuid())


class StreamLoss(Table):
    """Records that the client declared lost or rejected, as a range of seq."""

    __tablename__ = "stream_loss"

    run_id: Mapped[UUID] = mapped_column(primary_key=True)
    stream_id: Mapped[UUID] = mapped_column(primary_key=True)
    from_seq: Mapped[int] = mapped_column(primary_key=True)
    to_seq: Mapped[int]
    reason: Mapped[str]


class Sweep(Table):
    """Runs of one task at several batch sizes, or branches of one run: what they are compared by.

    `metric` is the name of a logged metric, null for the training loss; `run_id` the run that branches left. Of kind
    `followed` it is no sweep, but the run `run_id` whose batch changed, held against the sweep that `details` name.
    """

    __tablename__ = "sweep"
    __table_args__ = (Index(None, "project_id"), Index(None, "task_id"), Index(None, "run_id"))

    id: Mapped[UUID] = mapped_column(primary_key=True)
    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    task_id: Mapped[UUID] = mapped_column(ForeignKey("task.id"))
    run_id: Mapped[UUID | None]
    kind: Mapped[str] = mapped_column(server_default="sweep")
    name: Mapped[str]
    metric: Mapped[str | None]
    goal: Mapped[str] = mapped_column(server_default="min")
    targets: Mapped[list[float]] = mapped_column(server_default="{}")
    unit: Mapped[str] = mapped_column(server_default="examples")
    optimizer: Mapped[str | None]
    details: Mapped[dict[str, Any]] = mapped_column(server_default="{}")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class SweepRun(Table):
    """A run of a sweep: one that is stored here, or one of which only the curve was given."""

    __tablename__ = "sweep_run"
    __table_args__ = (Index(None, "sweep_id"),)

    run_id: Mapped[UUID] = mapped_column(primary_key=True)
    # no foreign key: with one, a small table may not change in a transaction that has read runs on several nodes
    sweep_id: Mapped[UUID] = mapped_column(primary_key=True)
    is_stored: Mapped[bool]
    batch_size: Mapped[float]
    lr: Mapped[float]
    seed: Mapped[int | None]
    status: Mapped[str]
    curve_steps: Mapped[list[int]] = mapped_column(server_default="{}")
    curve_values: Mapped[list[float]] = mapped_column(server_default="{}")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Calibration(Table):
    """What a sweep, branch or followed run says of B_crit and κ = B_crit / noise scale; computed when its runs change.

    Batches and noise scale in examples. `log_kappa_*` are one value, or the ends of an interval, null where open; both
    null where no noise scale is known, and `missing` says why. `tuned` lists the best settings: batch_size, lr, steps;
    `curve` the fit: batch_size, steps, low, high. `rates` what its runs say of how paths tell learning rates: run_id,
    family, octaves from the best rate, its error, and schedule and readings at shares of the plan.
    """

    __tablename__ = "calibration"
    __table_args__ = (Index(None, "project_id", "optimizer"),)

    sweep_id: Mapped[UUID] = mapped_column(ForeignKey("sweep.id", ondelete="CASCADE"), primary_key=True)
    project_id: Mapped[UUID]
    task_id: Mapped[UUID]
    optimizer: Mapped[str] = mapped_column(server_default="")
    family: Mapped[str | None]
    target: Mapped[float | None]
    critical_batch: Mapped[float | None]
    critical_batch_low: Mapped[float | None]
    critical_batch_high: Mapped[float | None]
    min_steps: Mapped[float | None]
    tuned: Mapped[list[dict[str, float]]] = mapped_column(JSONB, server_default="[]")
    curve: Mapped[list[dict[str, float]]] = mapped_column(JSONB, server_default="[]")
    rates: Mapped[list[dict[str, Any]]] = mapped_column(JSONB, server_default="[]")
    noise_scale: Mapped[float | None]
    log_kappa_low: Mapped[float | None]
    log_kappa_high: Mapped[float | None]
    error: Mapped[float | None]
    num_runs: Mapped[int] = mapped_column(server_default="0")
    squares: Mapped[float] = mapped_column(server_default="0")
    run_error: Mapped[float] = mapped_column(server_default="0")
    missing: Mapped[str | None]
    measured_at: Mapped[datetime] = mapped_column(server_default=func.now())
