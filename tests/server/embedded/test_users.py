"""Who Postgres runs as, and what that user can get to."""

import os
import shutil
from pathlib import Path

import psutil
import pytest

from noisescale_server.embedded import (
    DataFolderClosedError,
    EmbeddedPostgres,
    ForeignDataFolderError,
    UnsupportedPlatformError,
    binaries,
    programs,
    supervisor,
)
from noisescale_server.embedded.binaries import Binaries
from noisescale_server.embedded.privileges import SystemUser, closed_folder

pytestmark = pytest.mark.processes

# an ordinary user, but for the right to read a checkout and an interpreter below root's closed home
AS_NOBODY = "setpriv --reuid=nobody --regid=65534 --clear-groups --inh-caps=+dac_override --ambient-caps=+dac_override"


@pytest.mark.root
def test_root_runs_postgres_as_nobody_without_groups(data_dir):
    with EmbeddedPostgres(data_dir) as postgres:
        status = Path(f"/proc/{postgres.pid}/status").read_text()

    assert "\nGroups:\t \n" in status
    assert "\nUid:\t65534\t65534\t65534\t65534\n" in status


@pytest.mark.root
def test_a_strict_umask_does_not_close_the_folders_that_root_makes(open_folder):
    before = os.umask(0o077)
    try:
        with EmbeddedPostgres(open_folder / "new" / "data", durable=False) as postgres:
            assert postgres.pid
    finally:
        os.umask(before)


@pytest.mark.root
def test_root_is_told_which_folder_is_closed_to_postgres(open_folder):
    closed = open_folder / "home"
    closed.mkdir(mode=0o700)

    with pytest.raises(DataFolderClosedError, match=f"{closed} is closed.*set NOISESCALE_DATA_DIR"):
        EmbeddedPostgres(closed / "data").start()

    assert closed.stat().st_mode & 0o777 == 0o700


@pytest.mark.root
def test_root_refuses_another_users_data(open_folder):
    os.chown(open_folder, 12345, 12345)

    with pytest.raises(ForeignDataFolderError, match="belongs to user 12345 and we are user 0: run"):
        EmbeddedPostgres(open_folder).start()


@pytest.mark.root
def test_programs_below_a_closed_folder_are_copied_with_their_libraries(data_dir, open_folder, monkeypatch):
    closed = closed_installation(open_folder)
    monkeypatch.setattr(supervisor.binaries, "locate", lambda: closed)

    with EmbeddedPostgres(data_dir) as postgres:
        program = Path(psutil.Process(postgres.pid).exe())

    assert program.is_relative_to(data_dir)
    assert program.stat().st_uid == 0
    shutil.rmtree(program.parents[3])


def closed_installation(folder: Path) -> Binaries:
    """The wheel's Postgres, seen through a folder that only root may enter."""
    package = binaries.locate().folder.parent
    closed = folder / "root"
    closed.mkdir(mode=0o700)
    (closed / package.name).symlink_to(package)
    (closed / f"{package.name}.libs").symlink_to(package.with_name(f"{package.name}.libs"))
    return Binaries(closed / package.name / binaries.locate().folder.name)


@pytest.mark.slow
@pytest.mark.root
def test_an_ordinary_user_runs_postgres_as_itself(open_folder, start_owner):
    home = open_folder / "home"
    home.mkdir()
    os.chown(home, 65534, 65534)

    owner = start_owner(home / "data", prefix=AS_NOBODY)
    acknowledged = owner.acknowledged(20)

    assert owner.uid == owner.postmaster.uids().real == 65534
    assert acknowledged == 20
    assert (home / "data").stat().st_mode & 0o777 == 0o700


def test_a_closed_folder_is_found_on_the_way_down(open_folder):
    (open_folder / "a" / "b").mkdir(parents=True)
    (open_folder / "a").chmod(0o700)
    stranger = SystemUser(uid=12345, gid=12345, name="stranger")
    owner = SystemUser(uid=os.getuid(), gid=os.getgid(), name="owner")

    assert closed_folder(open_folder / "a" / "b", stranger) == open_folder / "a"
    assert closed_folder(open_folder / "a" / "b", owner) is None


def test_a_missing_wheel_names_the_way_out(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(UnsupportedPlatformError, match="is not installed: set NOISESCALE_DATABASE_URL"):
        binaries.locate()


def test_the_users_postgres_variables_do_not_reach_ours(monkeypatch):
    monkeypatch.setenv("PGDATA", "/elsewhere")
    monkeypatch.setenv("LC_MESSAGES", "de_DE")

    environment = programs.clean_environment()

    assert "PGDATA" not in environment
    assert {environment["LC_ALL"], environment["TZ"]} == {"C", "UTC"}
