"""The server's wheel carries its migrations and its data, and finds them where it is installed."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import wheels
from noisescale_server.embedded import EmbeddedPostgres
from noisescale_server.process.migrating import migrations_folder

pytestmark = pytest.mark.processes

MIGRATE = """
import asyncio, sys, asyncpg
from noisescale_server.process import migrating
migrating.migrate(sys.argv[1])
async def num_runs():
    connection = await asyncpg.connect(sys.argv[2])
    return await connection.fetchval("SELECT count(*) FROM run")
print(asyncio.run(num_runs()), migrating.migrations_folder())
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content, laid out as pip would lay it out."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheels.build("server", tmp_path_factory.mktemp("wheel"))) as wheel:
        wheel.extractall(folder)
    return folder


def test_the_wheel_holds_every_migration_and_the_published_values(installed: Path):
    names = {path.name for path in (installed / "noisescale_server" / "_migrations" / "versions").glob("*.py")}

    assert names == {path.name for path in (wheels.ROOT / "migrations" / "versions").glob("*.py")}
    assert (installed / "noisescale_server" / "data" / "reference_values.json").is_file()
    assert (installed / "noisescale_server" / "data" / "mlperf_convergence.json").is_file()


def test_the_installed_package_migrates_a_database_with_its_own_copy(installed: Path, postgres: EmbeddedPostgres):
    postgres.create_database("from_the_wheel")
    addresses = [postgres.url("from_the_wheel"), postgres.url("from_the_wheel", driver="postgresql")]
    environment = {"PYTHONPATH": str(installed), "PATH": ""}

    result = subprocess.run(
        [sys.executable, "-c", MIGRATE, *addresses],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )

    assert result.stdout.splitlines()[-1] == f"0 {installed / 'noisescale_server' / '_migrations'}"


def test_a_checkout_uses_its_own_folder():
    assert migrations_folder() == wheels.ROOT / "migrations"
