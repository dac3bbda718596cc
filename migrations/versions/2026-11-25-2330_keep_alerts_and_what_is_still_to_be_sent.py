"""Keep rules that watch runs, what they have noticed, and what of it is still to be sent.

Revision ID: 5a1c0e7d2bd0
Revises: 5a1c0e7d2bc0
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "5a1c0e7d2bd0"
down_revision = "5a1c0e7d2bc0"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
TABLES = ("alert_delivery", "alert_event", "alert_receiver", "alert_episode", "alert_rule")


def _id() -> sa.Column[object]:
    return sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False)


def _moment(name: str) -> sa.Column[object]:
    return sa.Column(name, MOMENT, server_default=sa.text("now()"), nullable=False)


def _of(table: str, column: str, other: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_{column}_{other}")
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=name, ondelete="CASCADE")


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.create_table(
        "alert_rule",
        _id(),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("settings", postgresql.JSONB(astext_type=sa.Text()), server_default="{}", nullable=False),
        sa.Column("again_after_hours", sa.Double(), server_default="24", nullable=False),
        sa.Column("muted_until", MOMENT, nullable=True),
        _moment("created_at"),
        _of("alert_rule", "project_id", "project"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alert_rule")),
    )
    op.create_table(
        "alert_episode",
        sa.Column("rule_id", sa.Uuid(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("since", MOMENT, nullable=True),
        sa.Column("is_told", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("told_at", MOMENT, nullable=True),
        sa.Column("number", sa.BigInteger(), server_default="0", nullable=False),
        _of("alert_episode", "rule_id", "alert_rule"),
        sa.PrimaryKeyConstraint("rule_id", "run_id", name=op.f("pk_alert_episode")),
    )
    op.create_table(
        "alert_receiver",
        _id(),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("shape", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("email_to", sa.Text(), nullable=True),
        _moment("created_at"),
        sa.CheckConstraint("shape IN ('webhook', 'slack', 'email')", name=op.f("ck_alert_receiver_shape")),
        _of("alert_receiver", "project_id", "project"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alert_receiver")),
    )
    op.create_table(
        "alert_event",
        _id(),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("rule_id", sa.Uuid(), nullable=True),
        sa.Column("rule_name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Uuid(), nullable=True),
        sa.Column("run_name", sa.Text(), nullable=True),
        sa.Column("number", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("is_muted", sa.Boolean(), server_default="false", nullable=False),
        _moment("happened_at"),
        _of("alert_event", "project_id", "project"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alert_event")),
        sa.UniqueConstraint("rule_id", "run_id", "number", name=op.f("uq_alert_event_rule_id_run_id_number")),
    )
    op.create_table(
        "alert_delivery",
        sa.Column("event_id", sa.Uuid(), nullable=False),
        sa.Column("receiver_id", sa.Uuid(), nullable=False),
        sa.Column("receiver_name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="waiting", nullable=False),
        sa.Column("num_attempts", sa.BigInteger(), server_default="0", nullable=False),
        _moment("due_at"),
        sa.Column("leased_until", MOMENT, nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        _moment("created_at"),
        sa.Column("done_at", MOMENT, nullable=True),
        sa.CheckConstraint("state IN ('waiting', 'delivered', 'undelivered')", name=op.f("ck_alert_delivery_state")),
        _of("alert_delivery", "event_id", "alert_event"),
        sa.PrimaryKeyConstraint("event_id", "receiver_id", name=op.f("pk_alert_delivery")),
    )
    op.create_index(op.f("ix_alert_rule_project_id"), "alert_rule", ["project_id"])
    op.create_index(op.f("ix_alert_receiver_project_id"), "alert_receiver", ["project_id"])
    op.create_index(op.f("ix_alert_event_project_id_happened_at"), "alert_event", ["project_id", "happened_at"])
    op.create_index(
        "ix_alert_delivery_due", "alert_delivery", ["due_at"], postgresql_where=sa.text("state = 'waiting'")
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for table in TABLES:
        op.drop_table(table)
