"""Keep the step that a run's noise scale ends at.

Revision ID: 5a1c0e7d2b50
Revises: 5a1c0e7d2b40
"""

import sqlalchemy as sa
from alembic import op

revision = "5a1c0e7d2b50"
down_revision = "5a1c0e7d2b40"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.add_column("run", sa.Column("noise_scale_step", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_column("run", "noise_scale_step")
