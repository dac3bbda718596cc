"""Keep which run a stream belongs to in a table that is found by the stream alone, on one Postgres and on many.

Revision ID: 5a1c0e7d2c60
Revises: 5a1c0e7d2bf0
"""

import sqlalchemy as sa
from alembic import op

revision = "5a1c0e7d2c60"
down_revision = "5a1c0e7d2bf0"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    # no stream may begin between the copy and the end of this transaction
    op.execute("LOCK TABLE stream IN SHARE ROW EXCLUSIVE MODE")
    op.create_table(
        "stream_place",
        sa.Column("stream_id", sa.Uuid(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.PrimaryKeyConstraint("stream_id", name=op.f("pk_stream_place")),
    )
    op.execute("INSERT INTO stream_place (stream_id, run_id) SELECT id, run_id FROM stream")
    op.drop_constraint("uq_stream_id", "stream", type_="unique")
    op.drop_constraint("fk_sweep_run_sweep_id_sweep", "sweep_run", type_="foreignkey")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.create_foreign_key("fk_sweep_run_sweep_id_sweep", "sweep_run", "sweep", ["sweep_id"], ["id"], ondelete="CASCADE")
    op.create_unique_constraint("uq_stream_id", "stream", ["id"])
    op.drop_table("stream_place")
