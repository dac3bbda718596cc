"""Share a run by a link for some time, and a project with everybody, to read.

Revision ID: 5a1c0e7d2cb0
Revises: 5a1c0e7d2ca0
"""

import sqlalchemy as sa
from alembic import op

revision = "5a1c0e7d2cb0"
down_revision = "5a1c0e7d2ca0"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    # no foreign key to run: it lies on one node, and these on every one
    op.create_table(
        "run_link",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("secret_hash", sa.LargeBinary(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=True),
        sa.Column("made_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_run_link_project_id_project"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["person.id"], name=op.f("fk_run_link_person_id_person"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run_link")),
        sa.UniqueConstraint("secret_hash", name=op.f("uq_run_link_secret_hash")),
    )
    op.create_index(op.f("ix_run_link_run_id"), "run_link", ["run_id"])
    op.create_table(
        "public_project",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_public_project_project_id_project"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("project_id", name=op.f("pk_public_project")),
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_table("public_project")
    op.drop_table("run_link")
