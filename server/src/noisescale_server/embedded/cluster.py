"""A Postgres cluster on disk: made once, completely or not at all."""

import os
import shutil
import tempfile
from pathlib import Path

from noisescale_server.embedded import programs
from noisescale_server.embedded.binaries import Binaries
from noisescale_server.embedded.privileges import SystemUser

SUPERUSER = "noisescale"
DATABASE = "noisescale"
_FOLDER = "cluster"
_UNFINISHED_PREFIX = "cluster-unfinished-"

_SETTINGS = {
    "listen_addresses": "",  # no TCP: the private socket is the only door
    "cluster_name": "noisescale",
    "logging_collector": "off",
    "timezone": "UTC",
    "max_connections": "100",
    "shared_buffers": "256MB",
    # long checkpoints: after each one the first change of a page writes the whole page to the log again
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    # no reader processes: Postgres 18.4 does not notice one that is killed while it recovers, and every later session
    # waits for it without end
    "io_method": "sync",
    "jit": "off",  # compiling costs more than our short queries take
}
_DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
_THROW_AWAY = dict.fromkeys(_DURABLE, "off")


def folder_in(data_dir: Path) -> Path:
    """Where the cluster lies."""
    return data_dir / _FOLDER


def ensure(data_dir: Path, binaries: Binaries, *, identity: SystemUser | None, durable: bool) -> Path:
    """The cluster's folder, made by initdb if it is not there.

    It is made under another name and renamed when it is complete, so that a kill on the way leaves no half a cluster.
    """
    cluster = folder_in(data_dir)
    if cluster.exists():
        return cluster
    for leftover in data_dir.glob(f"{_UNFINISHED_PREFIX}*"):
        shutil.rmtree(leftover)
    unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED_PREFIX, dir=data_dir))
    if identity is not None:
        os.chown(unfinished, identity.uid, identity.gid)
    programs.run(_initdb(binaries, unfinished, durable=durable), identity=identity)
    _create_database(binaries, unfinished, identity=identity, durable=durable)
    unfinished.rename(cluster)
    if durable:
        _sync_folder(data_dir)
    return cluster


def _initdb(binaries: Binaries, folder: Path, *, durable: bool) -> list[str]:
    """Its command line: UTF-8 in Postgres' own C.UTF-8 order, which is the same on every machine and in every libc."""
    locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    # trust: who gets through the private folder is this user or root already
    access = [f"--username={SUPERUSER}", "--auth-local=trust", "--auth-host=reject"]
    return [binaries.program("initdb"), *locale, *access, *([] if durable else ["--no-sync"]), "-D", str(folder)]


def _create_database(binaries: Binaries, folder: Path, *, identity: SystemUser | None, durable: bool) -> None:
    """Make our database with no server running, so that a cluster never exists without it."""
    settings = _as_arguments(_DURABLE if durable else _THROW_AWAY)
    single_user = [binaries.program("postgres"), "--single", "-D", str(folder), *settings, "postgres"]
    programs.run(single_user, identity=identity, text=f"CREATE DATABASE {DATABASE}\n")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def postmaster_arguments(
    cluster: Path, binaries: Binaries, *, socket_folder: Path, port: int, durable: bool
) -> list[str]:
    """The command line of the server.

    The settings stand there and not in postgresql.conf, so that a newer noisescale brings its own to an old cluster.
    """
    settings = _SETTINGS | (_DURABLE if durable else _THROW_AWAY)
    where = ["-D", str(cluster), "-k", str(socket_folder), "-p", str(port)]
    return [binaries.program("postgres"), *where, *_as_arguments(settings)]


def _as_arguments(settings: dict[str, str]) -> list[str]:
    return [argument for name, value in settings.items() for argument in ("-c", f"{name}={value}")]
