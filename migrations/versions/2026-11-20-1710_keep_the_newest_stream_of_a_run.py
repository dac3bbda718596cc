"""Keep the newest stream of a run, so that an older one that overlaps it cannot overwrite what it said.

Revision ID: 5a1c0e7d2b04
Revises: 5a1c0e7d2b03
"""

import sqlalchemy as sa
from alembic import op

revision = "5a1c0e7d2b04"
down_revision = "5a1c0e7d2b03"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # better to fail than to queue every reader behind a lock that we wait for
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.add_column("run", sa.Column("newest_stream_id", sa.Uuid(), nullable=True))
    op.add_column("run", sa.Column("newest_started_at", sa.DateTime(timezone=True), nullable=True))
    op.execute(
        "UPDATE run SET newest_stream_id = newest.id, newest_started_at = newest.started_at FROM ("
        "SELECT DISTINCT ON (run_id) run_id, id, started_at FROM stream WHERE kind = 'simple'"
        " ORDER BY run_id, started_at DESC, id DESC) AS newest WHERE newest.run_id = run.id"
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_column("run", "newest_started_at")
    op.drop_column("run", "newest_stream_id")
