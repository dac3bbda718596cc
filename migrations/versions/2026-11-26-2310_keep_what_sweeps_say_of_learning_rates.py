"""Keep what the runs of a sweep say of how their paths tell their learning rates.

Revision ID: 5a1c0e7d2d20
Revises: 5a1c0e7d2d10
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "5a1c0e7d2d20"
down_revision = "5a1c0e7d2d10"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.add_column(
        "calibration",
        sa.Column("rates", postgresql.JSONB(astext_type=sa.Text()), server_default="[]", nullable=False),
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_column("calibration", "rates")
