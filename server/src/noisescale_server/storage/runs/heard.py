"""When a run was last heard of, so that an index can hold it: `run.heard_at` follows `run.updated_at` by the minute.

Every batch changes `updated_at`; an index on it would make each of them write to every index of the table.
"""

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement

from noisescale_server.storage.platform.tables import Run

_MOST_SECONDS_BEHIND: Final = 60
BEHIND: Final = timedelta(seconds=_MOST_SECONDS_BEHIND + 1)
"""How much earlier than `updated_at` it may be, for a search along the index; it is never later."""
MOVED_ON: Final = f"""heard_at = CASE WHEN heard_at < statement_timestamp() - interval '{_MOST_SECONDS_BEHIND} seconds'
    THEN statement_timestamp() ELSE heard_at END"""
"""What a statement says beside `updated_at = statement_timestamp()`."""


def heard_since(moment: datetime) -> ColumnElement[bool]:
    """What every run holds that was updated after a moment, and few others."""
    return Run.heard_at > moment - BEHIND
