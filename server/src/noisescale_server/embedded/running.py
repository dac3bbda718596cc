"""The embedded Postgres that another process of ours has running."""

import sys
from pathlib import Path

from sqlalchemy.engine import URL

from noisescale_server.embedded import cluster, data_lock, socket_folder


def url_of(sockets: Path, database: str = cluster.DATABASE, *, driver: str = "postgresql+asyncpg") -> str:
    """The address of a database through a socket folder; libpq and asyncpg themselves take driver="postgresql"."""
    where = {"host": str(sockets), "port": str(socket_folder.PORT)}
    url = URL.create(driver, username=cluster.SUPERUSER, database=database, query=where)
    return url.render_as_string(hide_password=False)


def find(data_dir: Path) -> str | None:
    """Its address, while a `noisescale up` runs it in this data folder; None when nobody does."""
    if sys.platform == "win32" or not data_lock.path_in(data_dir).exists():
        return None
    owner = data_lock.owner_of(data_dir)
    if owner is None or owner.socket_folder is None:
        return None
    return url_of(owner.socket_folder)
