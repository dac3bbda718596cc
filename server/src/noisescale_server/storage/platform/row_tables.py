"""What runs have measured as mapped classes: rows as they came, and rollups of them."""

from uuid import UUID

from sqlalchemy import (
    Index,
)
from sqlalchemy.orm import Mapped, mapped_column

from noisescale_server.storage.platform.tables import Table

NUM_MEASUREMENT_PARTITIONS = 16


class Measurement(Table):
    """The updates since the previous row of the stream, as sums."""

    __tablename__ = "measurement"
    __table_args__ = (
        Index(None, "run_id", "stream_id", "step"),
        {"postgresql_partition_by": "HASH (run_id)"},
    )

    run_id: Mapped[UUID] = mapped_column(primary_key=True)
    stream_id: Mapped[UUID] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    step: Mapped[int]
    num_updates: Mapped[int]
    wall_time: Mapped[float]
    examples: Mapped[int | None]
    micro_batch_size: Mapped[float | None]
    num_micro_batches: Mapped[int]
    global_batch: Mapped[float | None]
    sum_trace_cov: Mapped[float | None]
    sum_grad_sq_norm: Mapped[float | None]
    sum_trace_cov_sq: Mapped[float | None]
    sum_grad_sq_norm_sq: Mapped[float | None]
    sum_trace_cov_grad_sq_norm: Mapped[float | None]
    sum_loss: Mapped[float | None]
    num_loss: Mapped[int]
    lr: Mapped[float | None]
    flags: Mapped[int]
    # the path of the parameters: sums over updates, and of the last of them how far it has led from which step on
    num_path_updates: Mapped[int] = mapped_column(server_default="0")
    sum_update_sq_norm: Mapped[float | None]
    update_sq_norm_variance: Mapped[float | None]
    path_sq_distance: Mapped[float | None]
    path_start: Mapped[int | None]
    momentum: Mapped[float | None]
    # the fall of the loss that updates promised
    num_promised_updates: Mapped[int] = mapped_column(server_default="0")
    sum_promised_fall: Mapped[float | None]
    promised_fall_variance: Mapped[float | None]


class Metric(Table):
    """Evaluation loss, accuracy, score: one value of one `log_metrics` call, which may hold several names."""

    __tablename__ = "metric"
    __table_args__ = (Index(None, "run_id", "name", "stream_id", "step"),)

    run_id: Mapped[UUID] = mapped_column(primary_key=True)
    stream_id: Mapped[UUID] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    step: Mapped[int]
    wall_time: Mapped[float]
    value: Mapped[float | None]


class GroupMeasurement(Table):
    """The five sums per layer since the stream's last group record; arrays with one element a layer, network order."""

    __tablename__ = "group_measurement"
    __table_args__ = (Index(None, "run_id", "stream_id", "step"),)

    run_id: Mapped[UUID] = mapped_column(primary_key=True)
    stream_id: Mapped[UUID] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    step: Mapped[int]
    wall_time: Mapped[float]
    names: Mapped[list[str]]
    num_updates: Mapped[list[int]]
    sum_trace_cov: Mapped[list[float]]
    sum_grad_sq_norm: Mapped[list[float]]
    sum_trace_cov_sq: Mapped[list[float]]
    sum_grad_sq_norm_sq: Mapped[list[float]]
    sum_trace_cov_grad_sq_norm: Mapped[list[float]]


class GroupRollup(Table):
    """All group records of one stream that name the layer and have step // 32**level = bucket, added up.

    A block is one record of n updates with the sums X of tr Σ and Y of |G|². From `num_blocks` to `num_updates_sq`:
    m, Σn, ΣX, ΣY, ΣX², ΣY², ΣXY, ΣnX, ΣnY, Σn² over blocks; `sum_*` are the second moments over updates. `place` is
    step, seq and position of the first record: network order.
    """

    __tablename__ = "group_rollup"
    __table_args__ = ({"postgresql_with": {"fillfactor": 80}},)

    run_id: Mapped[UUID] = mapped_column(primary_key=True)
    stream_id: Mapped[UUID] = mapped_column(primary_key=True)
    level: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    bucket: Mapped[int] = mapped_column(primary_key=True)
    num_blocks: Mapped[int]
    num_updates: Mapped[int]
    trace_cov: Mapped[float]
    grad_sq_norm: Mapped[float]
    trace_cov_sq: Mapped[float]
    grad_sq_norm_sq: Mapped[float]
    trace_cov_grad_sq_norm: Mapped[float]
    weighted_trace_cov: Mapped[float]
    weighted_grad_sq_norm: Mapped[float]
    num_updates_sq: Mapped[float]
    sum_trace_cov_sq: Mapped[float]
    sum_grad_sq_norm_sq: Mapped[float]
    sum_trace_cov_grad_sq_norm: Mapped[float]
    place: Mapped[list[int]]
    trace_cov_min: Mapped[float | None]
    grad_sq_norm_min: Mapped[float | None]
    trace_cov_max: Mapped[float | None]
    grad_sq_norm_max: Mapped[float | None]
    step_last: Mapped[int]
    wall_time_last: Mapped[float]


class Rollup(Table):
    """All measurements of one stream with step // 32**level = bucket, added up.

    `num_estimates` counts the updates inside the five sums, `num_updates` all updates. Minima and maxima are of row
    means. `*_last` belong to the row with the highest step. `sum_global_batch` is weighted by updates, of which
    `num_global_batch` had a known batch.
    """

    __tablename__ = "rollup"
    __table_args__ = ({"postgresql_with": {"fillfactor": 80}},)

    run_id: Mapped[UUID] = mapped_column(primary_key=True)
    stream_id: Mapped[UUID] = mapped_column(primary_key=True)
    series: Mapped[str] = mapped_column(primary_key=True)
    level: Mapped[int] = mapped_column(primary_key=True)
    bucket: Mapped[int] = mapped_column(primary_key=True)
    num_rows: Mapped[int]
    num_updates: Mapped[int]
    num_estimates: Mapped[int]
    sum_trace_cov: Mapped[float]
    sum_grad_sq_norm: Mapped[float]
    sum_trace_cov_sq: Mapped[float]
    sum_grad_sq_norm_sq: Mapped[float]
    sum_trace_cov_grad_sq_norm: Mapped[float]
    trace_cov_min: Mapped[float | None]
    trace_cov_max: Mapped[float | None]
    grad_sq_norm_min: Mapped[float | None]
    grad_sq_norm_max: Mapped[float | None]
    sum_loss: Mapped[float]
    num_loss: Mapped[int]
    loss_min: Mapped[float | None]
    loss_max: Mapped[float | None]
    sum_global_batch: Mapped[float]
    num_global_batch: Mapped[int]
    global_batch_min: Mapped[float | None]
    global_batch_max: Mapped[float | None]
    step_first: Mapped[int]
    step_last: Mapped[int]
    lr_last: Mapped[float | None]
    examples_last: Mapped[int | None]
    wall_time_last: Mapped[float | None]
    flags: Mapped[int]
    num_path_updates: Mapped[int] = mapped_column(server_default="0")
    sum_update_sq_norm: Mapped[float] = mapped_column(server_default="0")
    update_sq_norm_variance: Mapped[float] = mapped_column(server_default="0")
    # of the last row that knows a distance
    path_step_last: Mapped[int | None]
    path_sq_distance_last: Mapped[float | None]
    path_start_last: Mapped[int | None]
    momentum_last: Mapped[float | None]
    num_promised_updates: Mapped[int] = mapped_column(server_default="0")
    sum_promised_fall: Mapped[float] = mapped_column(server_default="0")
    promised_fall_variance: Mapped[float] = mapped_column(server_default="0")


GONE_LATER = {
    table.__tablename__: tuple(column.name for column in table.__table__.primary_key if column.name != "run_id")
    for table in (Measurement, GroupMeasurement, Metric, Rollup, GroupRollup)
}
"""Tables whose rows of a deleted run go in the background, and what of their keys follows the run."""
