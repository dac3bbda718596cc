"""Keep the fitted curve of a sweep, for predictions before a run's first step.

Revision ID: 5a1c0e7d2b09
Revises: 5a1c0e7d2b08
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "5a1c0e7d2b09"
down_revision = "5a1c0e7d2b08"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.add_column(
        "calibration",
        sa.Column("curve", postgresql.JSONB(astext_type=sa.Text()), server_default="[]", nullable=False),
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_column("calibration", "curve")
