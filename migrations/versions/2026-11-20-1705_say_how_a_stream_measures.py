"""Say how a stream measures: how often, from how many ranks, and what a reader should know.

Revision ID: 5a1c0e7d2b03
Revises: 5a1c0e7d2b02
"""

import sqlalchemy as sa
from alembic import op

revision = "5a1c0e7d2b03"
down_revision = "5a1c0e7d2b02"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # better to fail than to queue every reader behind a lock that we wait for
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.add_column("stream", sa.Column("measure_every", sa.BigInteger(), nullable=True))
    op.add_column("stream", sa.Column("num_ranks", sa.BigInteger(), nullable=True))
    op.add_column("stream", sa.Column("notes", sa.ARRAY(sa.Text()), server_default="{}", nullable=False))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_column("stream", "notes")
    op.drop_column("stream", "num_ranks")
    op.drop_column("stream", "measure_every")
