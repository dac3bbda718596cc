"""What may go wrong between this process and Postgres, as the driver and SQLAlchemy say it."""

from asyncpg.exceptions import InterfaceError as DriverInterfaceError
from asyncpg.exceptions import InternalClientError as DriverConfused
from asyncpg.exceptions import PostgresError
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

# SQLAlchemy leaves errors of connecting as the driver and the operating system raise them. The driver is confused where
# Postgres dies between its greeting and the first statement.
DATABASE_ERRORS = (DBAPIError, PoolTimeoutError, PostgresError, DriverInterfaceError, DriverConfused, OSError)
