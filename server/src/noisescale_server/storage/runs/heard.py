"""When a run was last heard of, so that an index can hold it: `run.heard_at` follows `run.updated_at` by the minute.

Every batch changes `updated_at`; an index on it would make each of them write to every index of the table.
"""

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement

from noisescale_server.storage.platform.tables import Run

BEHIND: Final = timedelta(seconds=61)
"""How much earlier than `updated_at` it may be, for a search along the index; it is never later."""
MOVED_ON: Final = "heard_at = greatest(heard_at, date_trunc('minute', statement_timestamp()))"
"""What a statement says beside `updated_at = statement_timestamp()`; Citus takes no clock inside a CASE."""


def heard_since(moment: datetime) -> ColumnElement[bool]:
    """What every run holds that was updated after a moment, and few others."""
    return Run.heard_at > moment - BEHIND
