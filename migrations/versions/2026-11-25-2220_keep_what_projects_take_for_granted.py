"""Keep what projects take for granted: the price of a device and the worth of a step.

Revision ID: 5a1c0e7d2bb0
Revises: 5a1c0e7d2ba0
"""

import sqlalchemy as sa
from alembic import op

revision = "5a1c0e7d2bb0"
down_revision = "5a1c0e7d2ba0"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.create_table(
        "project_default",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("device_hour_price", sa.Double(), nullable=True),
        sa.Column("currency", sa.Text(), server_default="USD", nullable=False),
        sa.Column("usd_per_unit", sa.Double(), server_default="1", nullable=False),
        sa.Column("preference", sa.Double(), nullable=True),
        sa.Column("examples_per_step", sa.Double(), nullable=True),
        sa.Column("fixed_hardware", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("device_hour_price > 0 AND usd_per_unit > 0", name=op.f("ck_project_default_prices")),
        sa.CheckConstraint(
            "num_nonnulls(preference, examples_per_step, nullif(fixed_hardware, false)) <= 1",
            name=op.f("ck_project_default_worth"),
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_project_default_project_id_project"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("project_id", name=op.f("pk_project_default")),
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_table("project_default")
