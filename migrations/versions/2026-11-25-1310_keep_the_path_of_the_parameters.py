"""Keep how long a run's updates are and how far they have led, in its rows and their rollups.

Revision ID: 5a1c0e7d2ba0
Revises: 5a1c0e7d2b90
"""

from alembic import op

revision = "5a1c0e7d2ba0"
down_revision = "5a1c0e7d2b90"
branch_labels = None
depends_on = None

# a constant default rewrites no table
OF_ROWS = {
    "num_path_updates": "bigint NOT NULL DEFAULT 0",
    "sum_update_sq_norm": "double precision",
    "update_sq_norm_variance": "double precision",
    "path_sq_distance": "double precision",
    "path_start": "bigint",
    "momentum": "double precision",
}

OF_ROLLUPS = {
    "num_path_updates": "bigint NOT NULL DEFAULT 0",
    "sum_update_sq_norm": "double precision NOT NULL DEFAULT 0",
    "update_sq_norm_variance": "double precision NOT NULL DEFAULT 0",
    "path_step_last": "bigint",
    "path_sq_distance_last": "double precision",
    "path_start_last": "bigint",
    "momentum_last": "double precision",
}

TABLES = {"measurement": OF_ROWS, "rollup": OF_ROLLUPS}


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for table, columns in TABLES.items():
        added = ", ".join(f"ADD COLUMN {name} {kind}" for name, kind in columns.items())
        op.execute(f"ALTER TABLE {table} {added}")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for table, columns in TABLES.items():
        op.execute(f"ALTER TABLE {table} " + ", ".join(f"DROP COLUMN {name}" for name in columns))
