"""A dashboard on a fake API: in the test's own process, and behind one server process for browsers."""

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from playwright.async_api import Browser, BrowserContext, Page, expect

from checked_figures import checked_figures
from dashboard_callbacks import Callbacks
from fakes_api import FakeApi
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.app import create_app, mount
from noisescale_dashboard.serving.settings import DashboardSettings
from served_in_thread import served_by
from shared_dashboard import SharedDashboard

# a page is patient on a machine that does other work, too
expect.set_options(timeout=20_000)


@pytest.fixture(scope="session", autouse=True)
def figures_are_checked() -> Iterator[None]:
    """plotly checks every figure that a test draws: in service they are taken as they are given."""
    with checked_figures():
        yield


@pytest.fixture
def fake_api() -> FakeApi:
    return FakeApi()


@pytest.fixture(scope="session")
def shared_dashboard() -> SharedDashboard:
    return SharedDashboard()


@pytest.fixture
def dashboard(shared_dashboard: SharedDashboard, fake_api: FakeApi) -> Iterator[FastAPI]:
    shared_dashboard.asked = fake_api
    yield shared_dashboard.app
    shared_dashboard.asked = None


@pytest.fixture
def own_dashboard(fake_api: FakeApi) -> FastAPI:
    """For a test that changes it, or is about a new one."""
    client = ApiClient(base_url="http://api", transport=httpx.ASGITransport(app=fake_api.app))
    return create_app(DashboardSettings(), client)


@pytest.fixture
async def client(dashboard: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url="http://dashboard", transport=httpx.ASGITransport(app=dashboard)) as opened:
        yield opened


@pytest.fixture(scope="session")
async def shared_callbacks(shared_dashboard: SharedDashboard) -> Callbacks:
    transport = httpx.ASGITransport(app=shared_dashboard.app)
    async with httpx.AsyncClient(base_url="http://dashboard", transport=transport) as opened:
        return await Callbacks.of(opened)


@pytest.fixture
def callbacks(client: httpx.AsyncClient, shared_callbacks: Callbacks) -> Callbacks:
    return Callbacks(client, shared_callbacks.dependencies)


@pytest.fixture(scope="session")
def served_api() -> FakeApi:
    """The API of the served dashboard, for tests that count or break its answers."""
    return FakeApi()


@pytest.fixture(scope="session")
def address(served_api: FakeApi) -> Iterator[str]:
    """Address of one process, one loop, that serves API and dashboard together."""
    mount(served_api.app)
    server = uvicorn.Server(uvicorn.Config(served_api.app, host="127.0.0.1", port=0, log_level="warning", ws="none"))
    with served_by(server) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="session")
async def reader(browser: Browser) -> AsyncIterator[BrowserContext]:
    """A reader at a wide screen whose browser keeps its cache from page to page."""
    context = await browser.new_context(
        viewport={"width": 1440, "height": 1000}, color_scheme="light", reduced_motion="reduce"
    )
    context.set_default_timeout(15_000)
    yield context
    await context.close()


@pytest.fixture
async def page(reader: BrowserContext) -> AsyncIterator[Page]:
    opened = await reader.new_page()
    yield opened
    if opened.url != "about:blank":
        await opened.evaluate("window.localStorage.clear()")
    await opened.close()


@pytest.fixture
async def first_page(browser: Browser) -> AsyncIterator[Page]:
    """A page of a browser that has never been here."""
    context = await browser.new_context(viewport={"width": 1440, "height": 1000}, color_scheme="light")
    yield await context.new_page()
    await context.close()
