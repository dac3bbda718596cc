"""Create the pyramid of group records, filled from the records that are stored.

Revision ID: 5a1c0e7d2b30
Revises: 5a1c0e7d2b20
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "5a1c0e7d2b30"
down_revision = "5a1c0e7d2b20"
branch_labels = None
depends_on = None

SUMS = (
    "trace_cov",
    "grad_sq_norm",
    "trace_cov_sq",
    "grad_sq_norm_sq",
    "trace_cov_grad_sq_norm",
    "weighted_trace_cov",
    "weighted_grad_sq_norm",
    "num_updates_sq",
    "sum_trace_cov_sq",
    "sum_grad_sq_norm_sq",
    "sum_trace_cov_grad_sq_norm",
)
ENDS = ("trace_cov_min", "grad_sq_norm_min", "trace_cov_max", "grad_sq_norm_max")

FILL = """
INSERT INTO group_rollup (run_id, stream_id, level, name, bucket, num_blocks, num_updates, trace_cov, grad_sq_norm,
  trace_cov_sq, grad_sq_norm_sq, trace_cov_grad_sq_norm, weighted_trace_cov, weighted_grad_sq_norm, num_updates_sq,
  sum_trace_cov_sq, sum_grad_sq_norm_sq, sum_trace_cov_grad_sq_norm, place, trace_cov_min, grad_sq_norm_min,
  trace_cov_max, grad_sq_norm_max, step_last, wall_time_last)
SELECT run_id, stream_id, level, name, step >> (5 * level), count(*) FILTER (WHERE n > 0), sum(n)::bigint,
  sum(x), sum(y), sum(x * x), sum(y * y), sum(x * y), sum(n * x), sum(n * y), sum(n::float8 * n),
  sum(xx), sum(yy), sum(xy), min(ARRAY[step, seq, position]), min(x / nullif(n, 0)), min(y / nullif(n, 0)),
  max(x / nullif(n, 0)), max(y / nullif(n, 0)), max(step), max(wall_time)
FROM (
  SELECT r.run_id, r.stream_id, r.step, r.seq, r.wall_time, l.position, l.name,
    CASE WHEN l.x IS NULL THEN 0 ELSE l.n END AS n, coalesce(l.x, 0) AS x, coalesce(l.y, 0) AS y,
    coalesce(l.xx, 0) AS xx, coalesce(l.yy, 0) AS yy, coalesce(l.xy, 0) AS xy
  FROM group_measurement AS r CROSS JOIN LATERAL unnest(
    r.names, r.num_updates,
    r.sum_trace_cov, r.sum_grad_sq_norm, r.sum_trace_cov_sq, r.sum_grad_sq_norm_sq, r.sum_trace_cov_grad_sq_norm
  ) WITH ORDINALITY AS l(name, n, x, y, xx, yy, xy, position)
) AS layer CROSS JOIN generate_series(2, 5) AS level
GROUP BY 1, 2, 3, 4, 5
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.create_table(
        "group_rollup",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("stream_id", sa.Uuid(), nullable=False),
        sa.Column("level", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("bucket", sa.BigInteger(), nullable=False),
        sa.Column("num_blocks", sa.BigInteger(), nullable=False),
        sa.Column("num_updates", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.Double(), nullable=False) for name in SUMS),
        sa.Column("place", postgresql.ARRAY(sa.BigInteger()), nullable=False),
        *(sa.Column(name, sa.Double(), nullable=True) for name in ENDS),
        sa.Column("step_last", sa.BigInteger(), nullable=False),
        sa.Column("wall_time_last", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "stream_id", "level", "name", "bucket", name=op.f("pk_group_rollup")),
        postgresql_with={"fillfactor": 80},
    )
    op.execute(FILL)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_table("group_rollup")
