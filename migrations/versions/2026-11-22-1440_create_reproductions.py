"""Create reproductions: what `noisescale reproduce` found.

Revision ID: 5a1c0e7d2b40
Revises: 5a1c0e7d2b30
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "5a1c0e7d2b40"
down_revision = "5a1c0e7d2b30"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.create_table(
        "reproduction",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("effort", sa.Text(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("content", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("kind IN ('claim', 'advice')", name=op.f("ck_reproduction_kind")),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_reproduction_project_id_project"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reproduction")),
    )
    op.create_index(op.f("ix_reproduction_project_id"), "reproduction", ["project_id"])


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_table("reproduction")
