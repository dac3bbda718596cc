"""Keep when records of a run came late, for dry runs of the rule that watches for it.

Revision ID: 5a1c0e7d2be0
Revises: 5a1c0e7d2bd0
"""

import sqlalchemy as sa
from alembic import op

revision = "5a1c0e7d2be0"
down_revision = "5a1c0e7d2bd0"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.create_table(
        "late_arrival",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_late_arrival_run_id_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "at", name=op.f("pk_late_arrival")),
    )
    op.create_index(op.f("ix_late_arrival_at"), "late_arrival", ["at"])


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_table("late_arrival")
