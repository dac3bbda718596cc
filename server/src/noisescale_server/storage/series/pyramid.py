"""The pyramid's SQL: rows added up to buckets of 32, 32², … 32⁵ steps, and how two parts of a bucket add.

A batch is aggregated to level 1 once; each further level comes from the one below, so that a batch of 1,000 rows costs
about 1,030 row visits and not 5,000.
"""

BITS_PER_LEVEL = 5
"""32 buckets of one level make one of the next."""

TOP_LEVEL = 5

ADDED = (
    "num_rows",
    "num_updates",
    "num_estimates",
    "sum_trace_cov",
    "sum_grad_sq_norm",
    "sum_trace_cov_sq",
    "sum_grad_sq_norm_sq",
    "sum_trace_cov_grad_sq_norm",
    "sum_loss",
    "num_loss",
    "sum_global_batch",
    "num_global_batch",
    "num_path_updates",
    "sum_update_sq_norm",
    "update_sq_norm_variance",
    "num_promised_updates",
    "sum_promised_fall",
    "promised_fall_variance",
)
_COUNTS = frozenset(name for name in ADDED if name.startswith("num_"))
MINIMA = ("trace_cov_min", "grad_sq_norm_min", "loss_min", "global_batch_min", "step_first")
MAXIMA = ("trace_cov_max", "grad_sq_norm_max", "loss_max", "global_batch_max")
LAST = ("lr_last", "examples_last", "wall_time_last")
"""Of the row with the highest step. Carried as one array [step, seq, lr, examples, wall_time]: Postgres orders arrays
by their first elements, so max() finds the last row without a sort."""

LAST_OF_PATH = ("path_sq_distance_last", "path_start_last", "momentum_last")
"""The same of the row with the highest step that knows a distance."""

OF_ROW = {
    "num_rows": "1",
    "num_updates": "num_updates",
    "num_estimates": "CASE WHEN sum_trace_cov IS NULL THEN 0 ELSE num_updates END",
    "sum_trace_cov": "coalesce(sum_trace_cov, 0)",
    "sum_grad_sq_norm": "coalesce(sum_grad_sq_norm, 0)",
    "sum_trace_cov_sq": "coalesce(sum_trace_cov_sq, 0)",
    "sum_grad_sq_norm_sq": "coalesce(sum_grad_sq_norm_sq, 0)",
    "sum_trace_cov_grad_sq_norm": "coalesce(sum_trace_cov_grad_sq_norm, 0)",
    "sum_loss": "CASE WHEN num_loss > 0 THEN coalesce(sum_loss, 0) ELSE 0 END",
    "num_loss": "CASE WHEN sum_loss IS NULL THEN 0 ELSE num_loss END",
    "sum_global_batch": "coalesce(num_updates * global_batch, 0)",
    "num_global_batch": "CASE WHEN global_batch IS NULL THEN 0 ELSE num_updates END",
    "trace_cov_min": "sum_trace_cov / num_updates",
    "trace_cov_max": "sum_trace_cov / num_updates",
    "grad_sq_norm_min": "sum_grad_sq_norm / num_updates",
    "grad_sq_norm_max": "sum_grad_sq_norm / num_updates",
    "loss_min": "sum_loss / nullif(num_loss, 0)",
    "loss_max": "sum_loss / nullif(num_loss, 0)",
    "global_batch_min": "global_batch",
    "global_batch_max": "global_batch",
    "step_first": "step",
    "flags": "flags",
    "last": "ARRAY[step, seq, lr, examples, wall_time]",
    "num_path_updates": "num_path_updates",
    "sum_update_sq_norm": "coalesce(sum_update_sq_norm, 0)",
    "update_sq_norm_variance": "coalesce(update_sq_norm_variance, 0)",
    "num_promised_updates": "num_promised_updates",
    "sum_promised_fall": "coalesce(sum_promised_fall, 0)",
    "promised_fall_variance": "coalesce(promised_fall_variance, 0)",
    "last_of_path": "CASE WHEN path_sq_distance IS NOT NULL"
    " THEN ARRAY[step, seq, path_sq_distance, path_start, momentum] END",
}
"""What a row is as a bucket of its own."""

BUCKET_COLUMNS = (*ADDED, *MINIMA, *MAXIMA, "flags")
"""Columns that a bucket and a part of it share by name; `last` and `*_last` are the same thing in two shapes."""

LAST_OF_BUCKET = "ARRAY[step_last, 0, lr_last, examples_last, wall_time_last]"
LAST_OF_BUCKETS_PATH = (
    "CASE WHEN path_step_last IS NOT NULL"
    " THEN ARRAY[path_step_last, 0, path_sq_distance_last, path_start_last, momentum_last] END"
)


def aggregate(name: str, expression: str) -> str:
    """The aggregate that adds up one bucket column."""
    if name in ADDED:
        # sum() of bigint is numeric in Postgres
        return f"sum({expression}){'::bigint' if name in _COUNTS else ''} AS {name}"
    if name in MINIMA:
        return f"min({expression}) AS {name}"
    if name == "flags":
        return f"bit_or({expression}) AS flags"
    return f"max({expression}) AS {name}"


def _level_of_rows() -> str:
    columns = ", ".join(aggregate(name, expression) for name, expression in OF_ROW.items())
    return f"level_1 AS (SELECT step >> {BITS_PER_LEVEL} AS bucket, {columns} FROM given GROUP BY 1)"  # noqa: S608


def _level_above(level: int) -> str:
    columns = ", ".join(aggregate(name, name) for name in OF_ROW)
    return (
        f"level_{level} AS (SELECT bucket >> {BITS_PER_LEVEL} AS bucket, {columns}"  # noqa: S608
        f" FROM level_{level - 1} GROUP BY 1)"
    )


LEVELS_OF_GIVEN = ",\n".join([_level_of_rows(), *(_level_above(level) for level in range(2, TOP_LEVEL + 1))])
"""Common table expressions level_1 … level_5 over a table `given` of measurement rows."""


def _merge(name: str) -> str:
    if name in ADDED:
        return f"{name} = rollup.{name} + excluded.{name}"
    if name in MINIMA:
        return f"{name} = least(rollup.{name}, excluded.{name})"
    if name in MAXIMA:
        return f"{name} = greatest(rollup.{name}, excluded.{name})"
    return f"{name} = rollup.{name} | excluded.{name}"


def _merge_last(name: str) -> str:
    # >=: of two rows with one step the one that came later counts
    return f"{name} = CASE WHEN excluded.step_last >= rollup.step_last THEN excluded.{name} ELSE rollup.{name} END"


def _merge_last_of_path(name: str) -> str:
    is_later = "excluded.path_step_last >= coalesce(rollup.path_step_last, -1)"  # null, and so no, without one
    return f"{name} = CASE WHEN {is_later} THEN excluded.{name} ELSE rollup.{name} END"


def fold(*, run_id: str, stream_id: str, series: str) -> str:
    """INSERT that adds level_1 … level_5 to the pyramid; ordered by key, so that two of them never deadlock."""
    levels = " UNION ALL ".join(f"SELECT {level} AS level, * FROM level_{level}" for level in range(1, TOP_LEVEL + 1))  # noqa: S608
    names = ", ".join(BUCKET_COLUMNS)
    merges = [*map(_merge, BUCKET_COLUMNS), "step_last = greatest(rollup.step_last, excluded.step_last)"]
    merges += map(_merge_last, LAST)
    merges.append("path_step_last = greatest(rollup.path_step_last, excluded.path_step_last)")
    merges += map(_merge_last_of_path, LAST_OF_PATH)
    return f"""
INSERT INTO rollup (
  run_id, stream_id, series, level, bucket, {names}, step_last, {", ".join(LAST)},
  path_step_last, {", ".join(LAST_OF_PATH)}
)
SELECT {run_id}, {stream_id}, {series}, level, bucket, {names}, last[1]::bigint, last[3], last[4]::bigint, last[5],
  last_of_path[1]::bigint, last_of_path[3], last_of_path[4]::bigint, last_of_path[5]
FROM ({levels}) AS every_level
ORDER BY level, bucket
ON CONFLICT (run_id, stream_id, series, level, bucket) DO UPDATE SET
  {", ".join(merges)}
"""  # noqa: S608
