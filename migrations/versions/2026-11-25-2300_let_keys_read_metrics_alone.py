"""Let a key read metrics and nothing else, and find the runs that have not ended.

Revision ID: 5a1c0e7d2bc0
Revises: 5a1c0e7d2bb0
"""

import sqlalchemy as sa
from alembic import op

revision = "5a1c0e7d2bc0"
down_revision = "5a1c0e7d2bb0"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_constraint(op.f("ck_api_key_scope"), "api_key")
    op.create_check_constraint(op.f("ck_api_key_scope"), "api_key", "scope IN ('write', 'read', 'metrics', 'admin')")
    op.create_index(
        "ix_run_unfinished", "run", ["created_at"], postgresql_where=sa.text("finish_status IS NULL AND NOT archived")
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_index("ix_run_unfinished", "run")
    op.execute("DELETE FROM api_key WHERE scope = 'metrics'")
    op.drop_constraint(op.f("ck_api_key_scope"), "api_key")
    op.create_check_constraint(op.f("ck_api_key_scope"), "api_key", "scope IN ('write', 'read', 'admin')")
