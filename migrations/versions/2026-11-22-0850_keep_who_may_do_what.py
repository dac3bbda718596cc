"""Keep people, memberships, keys, sessions and the audit log.

Revision ID: 5a1c0e7d2b20
Revises: 5a1c0e7d2b0b
"""

import sqlalchemy as sa
from alembic import op

revision = "5a1c0e7d2b20"
down_revision = "5a1c0e7d2b0b"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
NOW = sa.text("now()")


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    create_people()
    create_keys()
    create_sessions()
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger(), autoincrement=True, nullable=False),
        sa.Column("at", MOMENT, server_default=NOW, nullable=False),
        sa.Column("actor_kind", sa.Text(), nullable=False),
        sa.Column("actor_id", sa.Text(), nullable=False),
        sa.Column("actor_name", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=True),
        sa.Column("details", sa.dialects.postgresql.JSONB(), server_default="{}", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_project_id"), "audit", ["project_id"])


def create_people() -> None:
    op.create_table(
        "person",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=True),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("is_administrator", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("disabled_at", MOMENT, nullable=True),
        sa.Column("created_at", MOMENT, server_default=NOW, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_person")),
        sa.UniqueConstraint("subject", name=op.f("uq_person_subject")),
    )
    op.create_table(
        "membership",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT, server_default=NOW, nullable=False),
        sa.PrimaryKeyConstraint("project_id", "person_id", name=op.f("pk_membership")),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_membership_project_id_project"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["person.id"], name=op.f("fk_membership_person_id_person"), ondelete="CASCADE"
        ),
        sa.CheckConstraint("role IN ('viewer', 'member', 'admin')", name=op.f("ck_membership_role")),
    )
    op.create_index(op.f("ix_membership_person_id"), "membership", ["person_id"])


def create_keys() -> None:
    op.create_table(
        "api_key",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("lineage", sa.Text(), nullable=False),
        sa.Column("secret_hash", sa.LargeBinary(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Uuid(), nullable=True),
        sa.Column("project_ids", sa.ARRAY(sa.Uuid()), nullable=True),
        sa.Column("created_at", MOMENT, server_default=NOW, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("revoked_at", MOMENT, nullable=True),
        sa.Column("last_used_at", MOMENT, nullable=True),
        sa.Column("last_used_from", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_key")),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["person.id"], name=op.f("fk_api_key_owner_id_person"), ondelete="CASCADE"
        ),
        sa.CheckConstraint("scope IN ('write', 'read', 'admin')", name=op.f("ck_api_key_scope")),
    )
    op.create_index(op.f("ix_api_key_lineage"), "api_key", ["lineage"])
    op.create_index(op.f("ix_api_key_owner_id"), "api_key", ["owner_id"])
    op.create_table(
        "run_author",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("lineage", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "lineage", name=op.f("pk_run_author")),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_run_author_run_id_run"), ondelete="CASCADE"),
    )


def create_sessions() -> None:
    op.create_table(
        "web_session",
        sa.Column("id_hash", sa.LargeBinary(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("last_seen_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id_hash", name=op.f("pk_web_session")),
        sa.ForeignKeyConstraint(
            ["person_id"], ["person.id"], name=op.f("fk_web_session_person_id_person"), ondelete="CASCADE"
        ),
    )
    op.create_index(op.f("ix_web_session_person_id"), "web_session", ["person_id"])
    op.create_table(
        "login_attempt",
        sa.Column("id_hash", sa.LargeBinary(), nullable=False),
        sa.Column("person_id", sa.Uuid(), nullable=True),
        sa.Column("nonce", sa.Text(), nullable=True),
        sa.Column("verifier", sa.Text(), nullable=True),
        sa.Column("return_to", sa.Text(), nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id_hash", name=op.f("pk_login_attempt")),
        sa.ForeignKeyConstraint(
            ["person_id"], ["person.id"], name=op.f("fk_login_attempt_person_id_person"), ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for table in ("audit", "login_attempt", "web_session", "run_author", "api_key", "membership", "person"):
        op.drop_table(table)
