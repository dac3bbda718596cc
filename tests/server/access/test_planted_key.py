"""A key that a job and its server run with, and that its config holds, is found nowhere afterwards."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from keys_of_tests import bearer
from noisescale_dashboard.app import mount
from noisescale_server.services.access import key_text
from noisescale_server.storage.platform.engine import create_engine
from served_app import free_port, served_app

KEY = key_text.new("admin")
JOB = """
import os, psutil, noisescale
key = os.environ["NOISESCALE_API_KEY"]
run = noisescale.init(project="planted", config={"api_key": key, "note": f"made with {key}", "lr": 0.1})
run.log_metrics(step=1, loss=1.0)
shown = [repr(run), str(vars(run))]
shown += [" ".join(child.cmdline()) for child in psutil.Process().children(recursive=True)]
try:
    noisescale.init(project="planted", log_every=key)
except Exception as error:
    shown.append(repr(error))
run.finish()
print("\\n".join(shown).replace(os.environ["HOME"], "~"))
"""
"""A job that writes its key where people do, and says what it shows of itself."""


@pytest.fixture(scope="module")
def database_url(new_database: Callable[[], str]) -> str:
    return new_database()


@pytest.fixture(scope="module")
def address(database_url: str) -> Iterator[str]:
    with served_app(database_url, extend=mount, local_token=KEY.text) as url:
        yield url


def job(folder: Path, url: str) -> str:
    """All that a job says."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NOISESCALE_")}
    given = {"NOISESCALE_URL": url, "NOISESCALE_API_KEY": KEY.text, "NOISESCALE_DIR": f"{folder}"}
    done = subprocess.run(
        [sys.executable, "-c", JOB], env=environment | given, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def files_with(secret: str, folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


async def rows_with(secret: str, database_url: str) -> list[str]:
    """Tables in which a row holds the text."""
    engine = create_engine(database_url)
    async with engine.connect() as connection:
        tables = await connection.scalars(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"))
        found = [
            table
            for table in list(tables)
            if await connection.scalar(
                text(f'SELECT count(*) FROM "{table}" AS one WHERE one::text LIKE :held'), {"held": f"%{secret}%"}
            )
        ]
    await engine.dispose()
    return found


async def test_a_delivered_run_leaves_it_nowhere(address: str, database_url: str, tmp_path: Path) -> None:
    said = job(tmp_path, address)

    async with httpx.AsyncClient(base_url=address, headers=bearer(KEY.text), timeout=60) as client:
        run = (await client.get("/api/v1/runs", params={"project": "planted"})).json()["runs"][0]
        shown = [
            (await client.get(path)).text
            for path in (f"/api/v1/runs/{run['id']}", "/api/v1/runs", f"/runs/{run['id']}/report", "/exports/runs.csv")
        ]
    assert run["config"]["lr"] == 0.1
    assert KEY.secret not in said
    assert KEY.secret not in "".join(shown)
    assert files_with(KEY.secret, tmp_path) == []
    assert await rows_with(KEY.secret, database_url) == []


@pytest.mark.thorough
def test_records_that_wait_on_disk_do_not_hold_it(tmp_path: Path) -> None:
    said = job(tmp_path, f"http://127.0.0.1:{free_port()}")

    assert [path.name for path in tmp_path.rglob("meta.json")] != []
    assert KEY.secret not in said
    assert files_with(KEY.secret, tmp_path) == []


async def test_the_search_finds_what_is_there(address: str, database_url: str, tmp_path: Path) -> None:
    async with httpx.AsyncClient(base_url=address, headers=bearer(KEY.text)) as client:
        await client.post("/api/v1/runs", json={"project": "planted", "name": "a needle"})
    (tmp_path / "meta.json").write_text(json.dumps({"name": "a needle"}))

    assert await rows_with("a needle", database_url) == ["run"]
    assert len(files_with("a needle", tmp_path)) == 1
