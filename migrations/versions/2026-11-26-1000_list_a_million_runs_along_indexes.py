"""List a million runs along indexes: when a run was heard of, how far off its batch is, and whose trial it is.

Revision ID: 5a1c0e7d2cc0
Revises: 5a1c0e7d2cb0
"""

import sqlalchemy as sa
from alembic import op

revision = "5a1c0e7d2cc0"
down_revision = "5a1c0e7d2cb0"
branch_labels = None
depends_on = None

# what batches change is indexed as it was up to a minute ago, or to two parts in a hundred: storage/runs/listing.py
FILLED = """
UPDATE run SET heard_at = updated_at,
  misfit = CASE WHEN noise_scale_state = 'resolved' AND noise_scale_value > 0 AND latest_global_batch > 0
    THEN abs(ln(latest_global_batch / noise_scale_value)) END,
  trial_of = CASE WHEN tags @> ARRAY['reproduce'] THEN task_id END
"""
TRIALS = """
UPDATE run SET trial_of = first.sweep_id
FROM (
  SELECT DISTINCT ON (run_id) run_id, sweep_id FROM sweep_run WHERE is_stored ORDER BY run_id, created_at, sweep_id
) AS first
WHERE first.run_id = run.id
"""
PARTS = " || ".join(
    f"string_to_array(regexp_replace({text}, '(...)', '\\1|', 'g'), '|')"
    for text in (
        'lower(name COLLATE "C")',
        'substr(lower(name COLLATE "C"), 2)',
        'substr(lower(name COLLATE "C"), 3)',
    )
)


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.add_column(
        "run", sa.Column("heard_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False)
    )
    op.add_column("run", sa.Column("misfit", sa.Double(), nullable=True))
    op.add_column("run", sa.Column("trial_of", sa.Uuid(), nullable=True))
    op.execute(FILLED)
    op.execute(TRIALS)
    op.create_index("ix_run_heard", "run", ["archived", "heard_at"])
    op.create_index("ix_run_project", "run", ["project_id", "archived", "heard_at"])
    op.drop_index("ix_run_project_id", table_name="run")
    is_no_trial = sa.text("trial_of IS NULL")
    op.create_index("ix_run_misfit", "run", ["archived", "misfit"], postgresql_where=is_no_trial)
    op.create_index("ix_run_saving", "run", ["archived", "decision_saving"], postgresql_where=is_no_trial)
    op.create_index("ix_run_trial", "run", ["trial_of"], postgresql_where=sa.text("trial_of IS NOT NULL"))
    # a new run waits in a list to be sorted in with others, or it would touch a page for each part of its name; every
    # search reads that list, so it is short: in KiB
    op.execute(f"CREATE INDEX ix_run_name_parts ON run USING gin (({PARTS})) WITH (gin_pending_list_limit = 256)")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.create_index("ix_run_project_id", "run", ["project_id"])
    for name in (
        "ix_run_name_parts",
        "ix_run_project",
        "ix_run_trial",
        "ix_run_saving",
        "ix_run_misfit",
        "ix_run_heard",
    ):
        op.drop_index(name, table_name="run")
    for name in ("trial_of", "misfit", "heard_at"):
        op.drop_column("run", name)
