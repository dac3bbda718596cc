"""Create projects, tasks and runs.

Revision ID: 5a1c0e7d2b01
Revises:
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "5a1c0e7d2b01"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.create_table(
        "project",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project")),
        sa.UniqueConstraint("name", name=op.f("uq_project_name")),
    )
    op.create_table(
        "task",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=True),
        sa.Column("family", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_task_project_id_project"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_task")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_task_project_id_name")),
    )
    op.create_table(
        "run",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("task_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("tags", sa.ARRAY(sa.Text()), server_default="{}", nullable=False),
        sa.Column("config", postgresql.JSONB(astext_type=sa.Text()), server_default="{}", nullable=False),
        sa.Column("unit", sa.Text(), server_default="examples", nullable=False),
        sa.Column("example", sa.Text(), nullable=True),
        sa.Column("units_per_example", sa.Double(), server_default="1", nullable=False),
        sa.Column("num_devices", sa.BigInteger(), nullable=True),
        sa.Column("device", sa.Text(), nullable=True),
        sa.Column("usd_per_device_hour", sa.Double(), nullable=True),
        sa.Column("family", sa.Text(), nullable=True),
        sa.Column("planned_steps", sa.BigInteger(), nullable=True),
        sa.Column("archived", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finish_status", sa.Text(), nullable=True),
        sa.Column("optimizer", sa.Text(), nullable=True),
        sa.Column("estimator", sa.Text(), nullable=True),
        sa.Column("loss_reduction", sa.Text(), nullable=True),
        sa.Column("first_step", sa.BigInteger(), nullable=True),
        sa.Column("latest_step", sa.BigInteger(), nullable=True),
        sa.Column("latest_examples", sa.BigInteger(), nullable=True),
        sa.Column("latest_loss", sa.Double(), nullable=True),
        sa.Column("latest_lr", sa.Double(), nullable=True),
        sa.Column("latest_global_batch", sa.Double(), nullable=True),
        sa.Column("latest_num_micro_batches", sa.BigInteger(), nullable=True),
        sa.Column("latest_flags", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("latest_refreshed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("noise_scale_state", sa.Text(), nullable=True),
        sa.Column("noise_scale_value", sa.Double(), nullable=True),
        sa.Column("noise_scale_low", sa.Double(), nullable=True),
        sa.Column("noise_scale_high", sa.Double(), nullable=True),
        sa.Column("noise_scale_z", sa.Double(), nullable=True),
        sa.Column("noise_scale_reason", sa.Text(), nullable=True),
        sa.Column("noise_scale_updates_needed", sa.BigInteger(), nullable=True),
        sa.Column("noise_scale_num_updates", sa.BigInteger(), nullable=True),
        sa.Column("noise_scale_num_blocks", sa.BigInteger(), nullable=True),
        sa.Column("example_efficiency", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_run_project_id_project"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_run_task_id_task")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
        postgresql_with={"fillfactor": 70},
    )
    op.create_index(op.f("ix_run_project_id"), "run", ["project_id"])
    op.create_index(op.f("ix_run_task_id"), "run", ["task_id"])


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_table("run")
    op.drop_table("task")
    op.drop_table("project")
