"""Keep the fall of the loss that a run's updates promise, in its rows and their rollups.

Revision ID: 5a1c0e7d2d30
Revises: 5a1c0e7d2d20
"""

from alembic import op

revision = "5a1c0e7d2d30"
down_revision = "5a1c0e7d2d20"
branch_labels = None
depends_on = None

# a constant default rewrites no table
OF_ROWS = {
    "num_promised_updates": "bigint NOT NULL DEFAULT 0",
    "sum_promised_fall": "double precision",
    "promised_fall_variance": "double precision",
}

OF_ROLLUPS = {
    "num_promised_updates": "bigint NOT NULL DEFAULT 0",
    "sum_promised_fall": "double precision NOT NULL DEFAULT 0",
    "promised_fall_variance": "double precision NOT NULL DEFAULT 0",
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
