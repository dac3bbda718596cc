"""Create streams, their records and the pyramid.

Revision ID: 5a1c0e7d2b02
Revises: 5a1c0e7d2b01
"""

import sqlalchemy as sa
from alembic import op

revision = "5a1c0e7d2b02"
down_revision = "5a1c0e7d2b01"
branch_labels = None
depends_on = None

NUM_PARTITIONS = 16


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.create_table(
        "stream",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("next_seq", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("last_first_seq", sa.BigInteger(), nullable=True),
        sa.Column("last_crc", sa.BigInteger(), nullable=True),
        sa.Column("num_stored", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("num_lost", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("num_rejected", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("num_measurements", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("num_estimates", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("first_step", sa.BigInteger(), nullable=True),
        sa.Column("last_step", sa.BigInteger(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("estimator", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), server_default="simple", nullable=False),
        sa.Column("unit", sa.Text(), nullable=True),
        sa.Column("units_per_example", sa.Double(), nullable=True),
        sa.Column("loss_reduction", sa.Text(), nullable=True),
        sa.Column("optimizer", sa.Text(), nullable=True),
        sa.Column("batch_size_source", sa.Text(), nullable=True),
        sa.Column("rank", sa.BigInteger(), nullable=True),
        sa.Column("host", sa.Text(), nullable=True),
        sa.Column("client_version", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_stream_run_id_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "id", name=op.f("pk_stream")),
        sa.UniqueConstraint("id", name=op.f("uq_stream_id")),
        postgresql_with={"fillfactor": 70},
    )
    op.create_table(
        "stream_loss",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("stream_id", sa.Uuid(), nullable=False),
        sa.Column("from_seq", sa.BigInteger(), nullable=False),
        sa.Column("to_seq", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "stream_id", "from_seq", name=op.f("pk_stream_loss")),
    )
    op.create_table(
        "measurement",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("stream_id", sa.Uuid(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("num_updates", sa.BigInteger(), nullable=False),
        sa.Column("wall_time", sa.Double(), nullable=False),
        sa.Column("examples", sa.BigInteger(), nullable=True),
        sa.Column("micro_batch_size", sa.Double(), nullable=True),
        sa.Column("num_micro_batches", sa.BigInteger(), nullable=False),
        sa.Column("global_batch", sa.Double(), nullable=True),
        sa.Column("sum_trace_cov", sa.Double(), nullable=True),
        sa.Column("sum_grad_sq_norm", sa.Double(), nullable=True),
        sa.Column("sum_trace_cov_sq", sa.Double(), nullable=True),
        sa.Column("sum_grad_sq_norm_sq", sa.Double(), nullable=True),
        sa.Column("sum_trace_cov_grad_sq_norm", sa.Double(), nullable=True),
        sa.Column("sum_loss", sa.Double(), nullable=True),
        sa.Column("num_loss", sa.BigInteger(), nullable=False),
        sa.Column("lr", sa.Double(), nullable=True),
        sa.Column("flags", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "stream_id", "seq", name=op.f("pk_measurement")),
        postgresql_partition_by="HASH (run_id)",
    )
    op.create_index(op.f("ix_measurement_run_id_stream_id_step"), "measurement", ["run_id", "stream_id", "step"])
    for remainder in range(NUM_PARTITIONS):
        op.execute(
            f"CREATE TABLE measurement_p{remainder:02d} PARTITION OF measurement"
            f" FOR VALUES WITH (MODULUS {NUM_PARTITIONS}, REMAINDER {remainder})"
        )
    op.create_table(
        "rollup",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("stream_id", sa.Uuid(), nullable=False),
        sa.Column("series", sa.Text(), nullable=False),
        sa.Column("level", sa.BigInteger(), nullable=False),
        sa.Column("bucket", sa.BigInteger(), nullable=False),
        sa.Column("num_rows", sa.BigInteger(), nullable=False),
        sa.Column("num_updates", sa.BigInteger(), nullable=False),
        sa.Column("num_estimates", sa.BigInteger(), nullable=False),
        sa.Column("sum_trace_cov", sa.Double(), nullable=False),
        sa.Column("sum_grad_sq_norm", sa.Double(), nullable=False),
        sa.Column("sum_trace_cov_sq", sa.Double(), nullable=False),
        sa.Column("sum_grad_sq_norm_sq", sa.Double(), nullable=False),
        sa.Column("sum_trace_cov_grad_sq_norm", sa.Double(), nullable=False),
        sa.Column("trace_cov_min", sa.Double(), nullable=True),
        sa.Column("trace_cov_max", sa.Double(), nullable=True),
        sa.Column("grad_sq_norm_min", sa.Double(), nullable=True),
        sa.Column("grad_sq_norm_max", sa.Double(), nullable=True),
        sa.Column("sum_loss", sa.Double(), nullable=False),
        sa.Column("num_loss", sa.BigInteger(), nullable=False),
        sa.Column("loss_min", sa.Double(), nullable=True),
        sa.Column("loss_max", sa.Double(), nullable=True),
        sa.Column("sum_global_batch", sa.Double(), nullable=False),
        sa.Column("num_global_batch", sa.BigInteger(), nullable=False),
        sa.Column("global_batch_min", sa.Double(), nullable=True),
        sa.Column("global_batch_max", sa.Double(), nullable=True),
        sa.Column("step_first", sa.BigInteger(), nullable=False),
        sa.Column("step_last", sa.BigInteger(), nullable=False),
        sa.Column("lr_last", sa.Double(), nullable=True),
        sa.Column("examples_last", sa.BigInteger(), nullable=True),
        sa.Column("wall_time_last", sa.Double(), nullable=True),
        sa.Column("flags", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "stream_id", "series", "level", "bucket", name=op.f("pk_rollup")),
        postgresql_with={"fillfactor": 80},
    )
    op.create_table(
        "metric",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("stream_id", sa.Uuid(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("wall_time", sa.Double(), nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("run_id", "stream_id", "seq", "name", name=op.f("pk_metric")),
    )
    op.create_index(op.f("ix_metric_run_id_name_stream_id_step"), "metric", ["run_id", "name", "stream_id", "step"])
    op.create_table(
        "group_measurement",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("stream_id", sa.Uuid(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("wall_time", sa.Double(), nullable=False),
        sa.Column("names", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("num_updates", sa.ARRAY(sa.BigInteger()), nullable=False),
        sa.Column("sum_trace_cov", sa.ARRAY(sa.Double()), nullable=False),
        sa.Column("sum_grad_sq_norm", sa.ARRAY(sa.Double()), nullable=False),
        sa.Column("sum_trace_cov_sq", sa.ARRAY(sa.Double()), nullable=False),
        sa.Column("sum_grad_sq_norm_sq", sa.ARRAY(sa.Double()), nullable=False),
        sa.Column("sum_trace_cov_grad_sq_norm", sa.ARRAY(sa.Double()), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "stream_id", "seq", name=op.f("pk_group_measurement")),
    )
    op.create_index(
        op.f("ix_group_measurement_run_id_stream_id_step"), "group_measurement", ["run_id", "stream_id", "step"]
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_table("group_measurement")
    op.drop_table("metric")
    op.drop_table("rollup")
    op.drop_table("measurement")
    op.drop_table("stream_loss")
    op.drop_table("stream")
