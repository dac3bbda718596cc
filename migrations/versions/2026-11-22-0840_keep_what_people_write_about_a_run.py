"""Keep what people write about a run.

Revision ID: 5a1c0e7d2b0b
Revises: 5a1c0e7d2b0a
"""

import sqlalchemy as sa
from alembic import op

revision = "5a1c0e7d2b0b"
down_revision = "5a1c0e7d2b0a"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    # a constant default writes no row
    op.add_column("run", sa.Column("remarks", sa.Text(), server_default="", nullable=False))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_column("run", "remarks")
