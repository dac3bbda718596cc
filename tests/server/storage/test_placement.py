"""Every table has a place where Citus is; `make test-citus` looks at a coordinator and two workers."""

from collections.abc import Mapping

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.storage import baselines as baselines_table
from noisescale_server.storage import comments as comments_table
from noisescale_server.storage import defaults as defaults_table
from noisescale_server.storage import reproductions as reproduction_table
from noisescale_server.storage import views as views_table
from noisescale_server.storage.access import tables as access_tables
from noisescale_server.storage.alerts import rows as alerts
from noisescale_server.storage.platform import placement, row_tables
from noisescale_server.storage.platform.placement import column_of_run
from noisescale_server.storage.platform.tables import Table
from noisescale_server.storage.retention import rows as retention_table

OF_A_RUN = {
    "stream", "stream_loss", "measurement", "rollup", "metric", "group_measurement", "group_rollup", "run_author",
    "sweep_run", "late_arrival", "run_comment",
}  # fmt: skip
BY_THEMSELVES = {"run": "id", "stream_place": "stream_id"}
assert access_tables, reproduction_table
assert alerts, defaults_table
assert retention_table
assert views_table
assert baselines_table, comments_table
assert row_tables

_PLACES = """
SELECT logicalrelid::text, CASE WHEN partmethod = 'h' THEN column_to_column_name(logicalrelid, partkey) END,
  colocationid
FROM pg_dist_partition
"""


def test_every_table_is_of_a_run_of_its_own_id_or_of_all() -> None:
    columns = {table.name: column_of_run(table) for table in Table.metadata.sorted_tables}

    assert {name for name, column in columns.items() if column == "run_id"} == OF_A_RUN
    assert {name: column for name, column in columns.items() if column not in ("run_id", None)} == BY_THEMSELVES


def test_a_table_that_is_spread_refers_to_tables_of_the_same_place_or_of_all() -> None:
    for table in Table.metadata.sorted_tables:
        for key in table.foreign_keys:
            other, column = key.column.table, column_of_run(table)
            assert column_of_run(other) is None or (column == "run_id" and other.name == "run"), key


async def test_where_citus_is_each_table_has_the_place_that_is_planned(session: AsyncSession) -> None:
    planned = {table.name: column_of_run(table) for table in Table.metadata.sorted_tables}
    found: Mapping[str, tuple[str | None, int]] = {}
    if await placement.is_distributed(session):
        found = {name: (column, group) for name, column, group in await session.execute(text(_PLACES))}

        assert {name: column for name, (column, _) in found.items() if name in planned} == planned
        assert len({group for name, (_, group) in found.items() if name in OF_A_RUN | {"run"}}) == 1
    else:
        with pytest.raises(Exception, match="pg_dist_partition"):
            await session.execute(text(_PLACES))
