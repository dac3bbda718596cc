"""Keep since which step a run's losses and gradients are not finite.

Revision ID: 5a1c0e7d2b60
Revises: 5a1c0e7d2b50
"""

import sqlalchemy as sa
from alembic import op

revision = "5a1c0e7d2b60"
down_revision = "5a1c0e7d2b50"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.add_column("run", sa.Column("loss_broken_since", sa.BigInteger(), nullable=True))
    op.add_column("run", sa.Column("gradients_broken_since", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_column("run", "gradients_broken_since")
    op.drop_column("run", "loss_broken_since")
