"""What other distributions mount on the API's app."""

import gc
import logging
import sys
from importlib.metadata import EntryPoint

import pytest
from fastapi import FastAPI
from starlette.responses import PlainTextResponse

from app_in_process import LOCAL_TOKEN, client_of
from noisescale_server import main

pytestmark = pytest.mark.processes


def mount(app: FastAPI) -> None:
    """Answers every GET, as a dashboard does."""
    app.add_api_route("/{path:path}", lambda path: PlainTextResponse(f"page {path}"), response_model=None)


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> FastAPI:
    monkeypatch.setenv("NOISESCALE_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    monkeypatch.setenv("NOISESCALE_LOCAL_TOKEN", LOCAL_TOKEN)
    found = EntryPoint(name="pages", value=f"{__name__}:mount", group="noisescale.asgi")
    monkeypatch.setattr(EntryPoint, "load", lambda entry_point: mount)
    monkeypatch.setattr(main, "entry_points", lambda group: [found] if group == "noisescale.asgi" else [])
    return main.create()


async def test_a_mounted_catch_all_answers_for_pages_and_never_for_the_api(app):
    async with app.router.lifespan_context(app), client_of(app) as client:
        page = await client.get("/runs")
        unknown = await client.get("/api/v9/nothing")

    assert page.text == "page runs"
    assert unknown.status_code == 404
    assert unknown.headers["content-type"] == "application/problem+json"


def test_what_a_server_process_has_loaded_is_not_looked_through_again_by_the_collector(app):
    """A full collection of all of it stops every request for 0.1 s."""
    before = logging.getLogRecordFactory()
    try:
        loaded = main.create_in_worker()

        assert gc.get_freeze_count() > len(loaded.routes)
    finally:
        gc.unfreeze()
        logging.setLogRecordFactory(before)


def test_arithmetic_in_another_thread_keeps_no_request_waiting_for_longer_than_half_a_millisecond(app):
    """By default it is 5 ms, each time that the loop comes back from the network."""
    before, factory = sys.getswitchinterval(), logging.getLogRecordFactory()
    try:
        main.create_in_worker()

        assert sys.getswitchinterval() == pytest.approx(main.SECONDS_IN_A_THREAD)
    finally:
        gc.unfreeze()
        sys.setswitchinterval(before)
        logging.setLogRecordFactory(factory)
