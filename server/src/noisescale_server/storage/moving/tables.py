"""Which rows are a project's, in the order in which they can be put into a database again."""

from typing import Final

from sqlalchemy import Table as SqlTable

from noisescale_server.storage.alerts import tables as alert_tables
from noisescale_server.storage.baselines import table as baselines_table
from noisescale_server.storage.comments import table as comments_table
from noisescale_server.storage.defaults import table as defaults_table
from noisescale_server.storage.platform import reproduction_table, row_tables
from noisescale_server.storage.platform.tables import Table
from noisescale_server.storage.retention import table as retention_table
from noisescale_server.storage.views import table as views_table

_ROOMS = (
    alert_tables,
    baselines_table,
    comments_table,
    defaults_table,
    reproduction_table,
    retention_table,
    row_tables,
)
assert all((*_ROOMS, views_table)), "their classes belong to the same metadata"

OF_PROJECT: Final = {
    "project": "id = $1::uuid",
    "task": "project_id = $1::uuid",
    "project_default": "project_id = $1::uuid",
    "project_retention": "project_id = $1::uuid",
    "saved_view": "project_id = $1::uuid",
    "run": "project_id = $1::uuid",
    "project_baseline": "project_id = $1::uuid",
    "sweep": "project_id = $1::uuid",
    "sweep_run": "sweep_id IN (SELECT id FROM sweep WHERE project_id = $1::uuid)",
    "calibration": "project_id = $1::uuid",
    "reproduction": "project_id = $1::uuid",
}
"""Small tables: the condition that chooses the rows of project $1."""

OF_RUN: Final = (
    "stream_place",
    "stream",
    "stream_loss",
    "late_arrival",
    "run_comment",
    "measurement",
    "metric",
    "group_measurement",
    "rollup",
    "group_rollup",
)
"""Tables whose rows are read run by run: together they may be larger than memory."""

NAMES: Final = (*OF_PROJECT, *OF_RUN)
"""All of them. People, keys, alerts and the audit log belong to a server, and stay there."""


def table_of(name: str) -> SqlTable:
    """The mapped table of this name."""
    return Table.metadata.tables[name]


def columns_of(name: str) -> tuple[str, ...]:
    """Its columns, in order."""
    return tuple(column.name for column in table_of(name).columns)


def key_of(name: str) -> tuple[str, ...]:
    """The columns of its key."""
    return tuple(column.name for column in table_of(name).primary_key)
