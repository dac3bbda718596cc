"""Postgres or the server is killed -9 under open pages: a banner says until when they are true, then all go on."""

import asyncio
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from playwright.async_api import BrowserContext, Page, expect

from app_in_process import AS_LOCAL_USER, LOCAL_TOKEN
from factories import make_batch, make_measurements, make_run, make_stream
from killable_postgres import KillablePostgres, killable_postgres
from sweep_curves import BATCH_SIZES, curve, sweep_of

pytestmark = [pytest.mark.browser, pytest.mark.slow]
BANNER = re.compile(r"^Live updates paused\. Shown: data until \d\d:\d\d:\d\d\. ")
PATIENCE_MS = 40_000
ROWS = 200


class Server:
    """`noisescale serve` on one Postgres and one port, killed and started again as often as a test likes."""

    def __init__(self, database_url: str, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = int(probe.getsockname()[1])
        self.url = f"http://127.0.0.1:{self._port}"
        self._environment = os.environ | {
            "NOISESCALE_DATABASE_URL": database_url,
            "NOISESCALE_PORT": str(self._port),
            "NOISESCALE_DIR": str(folder),
            "NOISESCALE_LOCAL_TOKEN": LOCAL_TOKEN,
            "NOISESCALE_DASHBOARD_REFRESH_SECONDS": "2",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [str(Path(sys.executable).with_name("noisescale")), "serve"]
        self._process = subprocess.Popen(command, env=self._environment)
        deadline = time.monotonic() + 60
        while not self.is_ready():
            assert self._process.poll() is None, "the server ended while it was starting"
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.1)

    def is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", timeout=5).is_success
        except httpx.HTTPError:
            return False

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def postgres() -> Iterator[KillablePostgres]:
    with killable_postgres() as running:
        yield running


@pytest.fixture(scope="module")
def server(postgres: KillablePostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(postgres.url(), tmp_path_factory.mktemp("server"))
    running.start()
    yield running
    running.kill()


class Job:
    """A run that goes on logging."""

    def __init__(self) -> None:
        self.run_id, self.stream_id, self.num_rows = str(uuid4()), str(uuid4()), 0

    async def log(self, client: httpx.AsyncClient) -> None:
        steps = range(self.num_rows, self.num_rows + ROWS)
        rows = make_measurements(first_seq=self.num_rows + 2, steps=steps)
        if self.num_rows == 0:
            run = make_run(project="demo", task="planted", name="under way", planned_steps=9000)
            batch = make_batch(run_id=self.run_id, run=run, stream=make_stream(), measurements=rows)
        else:
            batch = make_batch(run_id=self.run_id, first_seq=self.num_rows + 2, crc32=self.num_rows, measurements=rows)
        (await client.post(f"/api/v1/streams/{self.stream_id}/batches", json=batch)).raise_for_status()
        self.num_rows += ROWS


class Pages:
    """One open page of every kind, on data that goes on coming."""

    def __init__(self, client: httpx.AsyncClient, job: Job, drawn: dict[str, str], pages: dict[str, Page]) -> None:
        self.client, self.job, self._drawn, self._pages = client, job, drawn, pages

    async def show_data(self) -> None:
        for path, page in self._pages.items():
            await expect(page.locator(self._drawn[path]).first, path).to_be_attached(timeout=PATIENCE_MS)
            await expect(page.locator(".card.failed:visible"), path).to_have_count(0)

    async def say_that_they_are_old(self) -> None:
        for path, page in self._pages.items():
            await expect(page.locator("#outage"), path).to_have_text(BANNER, timeout=PATIENCE_MS)
            await expect(page.locator("#outage"), path).to_be_visible()
            # what was drawn stays: never a blank chart
            await expect(page.locator(self._drawn[path]).first, path).to_be_attached()

    async def go_on(self) -> None:
        for path, page in self._pages.items():
            await expect(page.locator("#outage"), path).to_be_hidden(timeout=PATIENCE_MS)
        await self.job.log(self.client)
        run = self._pages[f"/runs/{self.job.run_id}"]
        await expect(run.locator("#run-facts"), "news come").to_contain_text(
            f"{self.job.num_rows}/", timeout=PATIENCE_MS
        )
        await self.show_data()


@pytest.fixture(scope="module")
async def pages(reader: BrowserContext, server: Server) -> AsyncIterator[Pages]:
    """Every page of the dashboard, open and drawn."""
    async with httpx.AsyncClient(base_url=server.url, headers=AS_LOCAL_USER, timeout=60) as client:
        job = Job()
        await job.log(client)
        sweep_id = await sweep_of(client, *(curve(size, seed=seed) for size in BATCH_SIZES for seed in range(2)))
        drawn = {
            "/": "#overview-misfit .trace",
            "/runs": ".ag-row .spark",
            f"/runs/{job.run_id}": "#run-noise .scatterlayer .trace",
            "/compare": "#compare-body:not(.loading) .trace",
            "/planner": "#planner-pareto .trace",
            "/sweeps": "#sweeps-table td.s",
            f"/sweeps/{sweep_id}": "#sweep-steps .trace",
        }
        opened = {path: await reader.new_page() for path in drawn}
        await opened["/"].goto(f"{server.url}/login?token={LOCAL_TOKEN}")
        for path, page in opened.items():
            # of several tabs a browser shows one, and a tab that nobody sees asks for nothing
            await page.add_init_script("Object.defineProperty(document, 'hidden', {value: false, configurable: true})")
            await page.goto(server.url + path)
        yield Pages(client, job, drawn, opened)
        for page in opened.values():
            await page.close()


async def test_postgres_is_killed_and_comes_back(pages: Pages, postgres: KillablePostgres) -> None:
    await pages.show_data()

    postgres.kill()
    await pages.say_that_they_are_old()
    postgres.start()
    await postgres.until_ready()

    await pages.go_on()


async def test_the_server_is_killed_and_comes_back(pages: Pages, server: Server) -> None:
    await pages.show_data()

    server.kill()
    await pages.say_that_they_are_old()
    await asyncio.to_thread(server.start)

    await pages.go_on()


async def test_a_page_that_is_opened_while_postgres_is_gone_says_so_and_then_loads(
    pages: Pages, reader: BrowserContext, postgres: KillablePostgres, server: Server
) -> None:
    page = await reader.new_page()
    postgres.kill()

    await page.goto(f"{server.url}/runs/{pages.job.run_id}")
    await expect(page.locator(".card.failed")).to_contain_text("Not loaded", timeout=PATIENCE_MS)
    await expect(page.locator("#run-noise .scatterlayer .trace")).to_have_count(0)
    postgres.start()
    await postgres.until_ready()

    await expect(page.locator("#run-noise .scatterlayer .trace").first).to_be_attached(timeout=PATIENCE_MS)
    await expect(page.locator(".card.failed")).to_have_count(0)
    await page.close()
    await pages.go_on()
