"""Repeat with a run how it is measured and of which kinds, so that lists need no streams.

Revision ID: 5a1c0e7d2b06
Revises: 5a1c0e7d2b05
"""

import sqlalchemy as sa
from alembic import op

revision = "5a1c0e7d2b06"
down_revision = "5a1c0e7d2b05"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # better to fail than to queue every reader behind a lock that we wait for
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.add_column("run", sa.Column("measure_every", sa.BigInteger(), nullable=True))
    op.add_column("run", sa.Column("num_ranks", sa.BigInteger(), nullable=True))
    op.add_column("run", sa.Column("notes", sa.ARRAY(sa.Text()), server_default="{}", nullable=False))
    op.add_column("run", sa.Column("kinds", sa.ARRAY(sa.Text()), server_default="{}", nullable=False))
    op.execute(
        "UPDATE run SET measure_every = newest.measure_every, num_ranks = newest.num_ranks, notes = newest.notes"
        " FROM stream AS newest WHERE newest.run_id = run.id AND newest.id = run.newest_stream_id"
    )
    op.execute(
        "UPDATE run SET kinds = found.kinds FROM ("
        "SELECT run_id, array_agg(DISTINCT kind) AS kinds FROM stream WHERE first_step IS NOT NULL GROUP BY run_id"
        ") AS found WHERE found.run_id = run.id"
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_column("run", "kinds")
    op.drop_column("run", "notes")
    op.drop_column("run", "num_ranks")
    op.drop_column("run", "measure_every")
