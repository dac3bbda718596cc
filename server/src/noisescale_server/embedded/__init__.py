"""A Postgres of our own for machines without one, under a supervisor that leaves nothing behind."""

from noisescale_server.embedded.errors import (
    DataFolderClosedError,
    DataFolderInUseError,
    EmbeddedPostgresError,
    ForeignDataFolderError,
    PostgresFailedError,
    PostgresKeepsEndingError,
    UnsupportedPlatformError,
    WrongThreadError,
)
from noisescale_server.embedded.keeper import kept_running
from noisescale_server.embedded.supervisor import EmbeddedPostgres

__all__ = [
    "DataFolderClosedError",
    "DataFolderInUseError",
    "EmbeddedPostgres",
    "EmbeddedPostgresError",
    "ForeignDataFolderError",
    "PostgresFailedError",
    "PostgresKeepsEndingError",
    "UnsupportedPlatformError",
    "WrongThreadError",
    "kept_running",
]
