"""Mark runs whose noise scale lacks rows; at first all of them, so that each is looked at once.

Revision ID: 5a1c0e7d2b70
Revises: 5a1c0e7d2b60
"""

from alembic import op

revision = "5a1c0e7d2b70"
down_revision = "5a1c0e7d2b60"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    # databases of an unreleased version have lost it
    op.execute("ALTER TABLE run ADD COLUMN IF NOT EXISTS latest_refreshed_at timestamptz")
    # a server of the release before does not know it, and its new runs are marked all the same
    op.execute("ALTER TABLE run ADD COLUMN window_is_stale boolean NOT NULL DEFAULT true")
    op.execute("CREATE INDEX ix_run_stale ON run (id) WHERE window_is_stale")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("ALTER TABLE run DROP COLUMN window_is_stale")
