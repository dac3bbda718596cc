"""Give the database an identity: records on a job's disk name the one they were meant for.

Revision ID: 5a1c0e7d2b80
Revises: 5a1c0e7d2b70
"""

from alembic import op

revision = "5a1c0e7d2b80"
down_revision = "5a1c0e7d2b70"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("ALTER TABLE epoch ADD COLUMN database_id uuid NOT NULL DEFAULT gen_random_uuid()")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("ALTER TABLE epoch DROP COLUMN database_id")
