"""Create sweeps and their runs.

Revision ID: 5a1c0e7d2b07
Revises: 5a1c0e7d2b06
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "5a1c0e7d2b07"
down_revision = "5a1c0e7d2b06"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.create_table(
        "sweep",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("task_id", sa.Uuid(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=True),
        sa.Column("kind", sa.Text(), server_default="sweep", nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=True),
        sa.Column("goal", sa.Text(), server_default="min", nullable=False),
        sa.Column("targets", sa.ARRAY(sa.Double()), server_default="{}", nullable=False),
        sa.Column("unit", sa.Text(), server_default="examples", nullable=False),
        sa.Column("optimizer", sa.Text(), nullable=True),
        sa.Column("details", postgresql.JSONB(astext_type=sa.Text()), server_default="{}", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_sweep_project_id_project"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_sweep_task_id_task")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sweep")),
    )
    op.create_index(op.f("ix_sweep_project_id"), "sweep", ["project_id"])
    op.create_index(op.f("ix_sweep_run_id"), "sweep", ["run_id"])
    op.create_index(op.f("ix_sweep_task_id"), "sweep", ["task_id"])
    op.create_table(
        "sweep_run",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("sweep_id", sa.Uuid(), nullable=False),
        sa.Column("is_stored", sa.Boolean(), nullable=False),
        sa.Column("batch_size", sa.Double(), nullable=False),
        sa.Column("lr", sa.Double(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("curve_steps", sa.ARRAY(sa.BigInteger()), server_default="{}", nullable=False),
        sa.Column("curve_values", sa.ARRAY(sa.Double()), server_default="{}", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["sweep_id"], ["sweep.id"], name=op.f("fk_sweep_run_sweep_id_sweep"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "sweep_id", name=op.f("pk_sweep_run")),
    )
    op.create_index(op.f("ix_sweep_run_sweep_id"), "sweep_run", ["sweep_id"])


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_table("sweep_run")
    op.drop_table("sweep")
