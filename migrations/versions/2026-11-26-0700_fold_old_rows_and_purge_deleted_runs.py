"""Fold rows of old runs into the pyramid, and take rows of deleted runs away in the background.

Revision ID: 5a1c0e7d2ca0
Revises: 5a1c0e7d2bf0
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "5a1c0e7d2ca0"
down_revision = "5a1c0e7d2c60"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.add_column("stream", sa.Column("num_folded", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("stream", sa.Column("folded", ARRAY(sa.BigInteger()), server_default="{}", nullable=False))
    op.add_column("stream", sa.Column("folded_groups", ARRAY(sa.BigInteger()), server_default="{}", nullable=False))
    op.add_column("run", sa.Column("folded_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("deleted_run", sa.Column("purged_at", sa.DateTime(timezone=True), nullable=True))
    # until now a run was deleted with all its rows
    op.execute("UPDATE deleted_run SET purged_at = deleted_at")
    op.create_index(
        "ix_deleted_run_unpurged", "deleted_run", ["deleted_at"], postgresql_where=sa.text("purged_at IS NULL")
    )
    op.create_table(
        "project_retention",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("fold_after_days", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("fold_after_days >= 1", name=op.f("ck_project_retention_days")),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_project_retention_project_id_project"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("project_id", name=op.f("pk_project_retention")),
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_table("project_retention")
    op.drop_index("ix_deleted_run_unpurged", table_name="deleted_run")
    op.drop_column("deleted_run", "purged_at")
    op.drop_column("run", "folded_at")
    op.drop_column("stream", "folded_groups")
    op.drop_column("stream", "folded")
    op.drop_column("stream", "num_folded")
