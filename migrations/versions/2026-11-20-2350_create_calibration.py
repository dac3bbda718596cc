"""Keep what each sweep or branch says of B_crit and of its ratio to the noise scale.

Revision ID: 5a1c0e7d2b08
Revises: 5a1c0e7d2b07
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "5a1c0e7d2b08"
down_revision = "5a1c0e7d2b07"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.create_table(
        "calibration",
        sa.Column("sweep_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("task_id", sa.Uuid(), nullable=False),
        sa.Column("optimizer", sa.Text(), server_default="", nullable=False),
        sa.Column("family", sa.Text(), nullable=True),
        sa.Column("target", sa.Double(), nullable=True),
        sa.Column("critical_batch", sa.Double(), nullable=True),
        sa.Column("critical_batch_low", sa.Double(), nullable=True),
        sa.Column("critical_batch_high", sa.Double(), nullable=True),
        sa.Column("min_steps", sa.Double(), nullable=True),
        sa.Column("tuned", postgresql.JSONB(astext_type=sa.Text()), server_default="[]", nullable=False),
        sa.Column("noise_scale", sa.Double(), nullable=True),
        sa.Column("log_kappa_low", sa.Double(), nullable=True),
        sa.Column("log_kappa_high", sa.Double(), nullable=True),
        sa.Column("error", sa.Double(), nullable=True),
        sa.Column("num_runs", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("squares", sa.Double(), server_default="0", nullable=False),
        sa.Column("run_error", sa.Double(), server_default="0", nullable=False),
        sa.Column("missing", sa.Text(), nullable=True),
        sa.Column("measured_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["sweep_id"], ["sweep.id"], name=op.f("fk_calibration_sweep_id_sweep"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("sweep_id", name=op.f("pk_calibration")),
    )
    op.create_index(op.f("ix_calibration_project_id_optimizer"), "calibration", ["project_id", "optimizer"])


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_table("calibration")
