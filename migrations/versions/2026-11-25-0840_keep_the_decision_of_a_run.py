"""Keep what to do with each run's batch; all runs are marked, so that each is looked at once.

Revision ID: 5a1c0e7d2b90
Revises: 5a1c0e7d2b80
"""

from alembic import op

revision = "5a1c0e7d2b90"
down_revision = "5a1c0e7d2b80"
branch_labels = None
depends_on = None

COLUMNS = {
    "decision": "text",
    "decision_batch_size": "bigint",
    "decision_low": "double precision",
    "decision_high": "double precision",
    "decision_reason": "text",
    "decision_probability": "double precision",
    "decision_saving": "double precision",
    "decision_due_step": "bigint",
}


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for name, kind in COLUMNS.items():
        op.execute(f"ALTER TABLE run ADD COLUMN {name} {kind}")
    # a server of the release before does not know it, and its new runs are marked all the same
    op.execute("ALTER TABLE run ADD COLUMN decision_is_stale boolean NOT NULL DEFAULT true")
    op.execute("CREATE INDEX ix_run_undecided ON run (id) WHERE decision_is_stale")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("ALTER TABLE run DROP COLUMN decision_is_stale")
    for name in COLUMNS:
        op.execute(f"ALTER TABLE run DROP COLUMN {name}")
