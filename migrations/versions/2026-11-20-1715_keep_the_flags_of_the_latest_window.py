"""Keep the flags of the latest window with the run, for the notices that readers see.

Revision ID: 5a1c0e7d2b05
Revises: 5a1c0e7d2b04
"""

import sqlalchemy as sa
from alembic import op

revision = "5a1c0e7d2b05"
down_revision = "5a1c0e7d2b04"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # better to fail than to queue every reader behind a lock that we wait for
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.add_column("run", sa.Column("noise_scale_flags", sa.BigInteger(), server_default="0", nullable=False))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_column("run", "noise_scale_flags")
