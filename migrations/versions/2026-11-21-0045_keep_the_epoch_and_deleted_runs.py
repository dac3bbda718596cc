"""Keep the epoch of the data, which a restored backup ends, and the ids of deleted runs.

Revision ID: 5a1c0e7d2b0a
Revises: 5a1c0e7d2b09
"""

import sqlalchemy as sa
from alembic import op

revision = "5a1c0e7d2b0a"
down_revision = "5a1c0e7d2b09"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.create_table(
        "epoch",
        sa.Column("is_current", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("began_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("is_current", name=op.f("pk_epoch")),
        sa.CheckConstraint("is_current", name=op.f("ck_epoch_one_row")),
    )
    op.execute("INSERT INTO epoch DEFAULT VALUES")
    op.create_table(
        "deleted_run",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("deleted_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deleted_run")),
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_table("deleted_run")
    op.drop_table("epoch")
