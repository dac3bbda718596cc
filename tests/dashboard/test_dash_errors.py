"""What Dash would answer as 500 and tell nobody."""

import logging
from typing import Any

import httpx
import pytest
from dash import Dash, Input, Output, html
from dash.exceptions import PreventUpdate
from fastapi import FastAPI

from dashboard_callbacks import Callbacks
from noisescale_dashboard.serving import dash_errors

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    "path",
    ["dash/no_such_file.js", "no_such_package/x.js", "dash/../../etc/passwd", "dash/deps/%2e%2e/dash.py",
     "dash_mantine_components/", "noisescale_server/process/settings.py"],
)  # fmt: skip
async def test_a_file_that_no_component_has_is_404(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(f"/_dash-component-suites/{path}")

    assert answer.status_code == 404
    assert "Registered" not in answer.text


@pytest.mark.parametrize("path", ["", "/", "/dash", "/dash//dash.py", "//etc/passwd", "/no_such_package"])
async def test_a_folder_of_components_is_no_page(address: str, path: str) -> None:
    async with httpx.AsyncClient(base_url=address) as browser:
        answer = await browser.get(f"/_dash-component-suites{path}")

    assert answer.status_code == 404
    assert answer.json() == {"error": "NotFound", "message": "no component has this file"}


async def test_every_file_that_a_page_names_is_there(client: httpx.AsyncClient) -> None:
    page = (await client.get("/")).text
    named = {part.split('"')[0] for part in page.split('src="') if part.startswith("/_dash-component-suites/")}

    statuses = {path: (await client.get(path)).status_code for path in named}

    assert len(statuses) > 3
    assert set(statuses.values()) == {200}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"[" * 2_000_000 + b"]" * 2_000_000, id="4 MB of depth"),
        pytest.param(b'{"a":' * 100_000 + b"1" + b"}" * 100_000, id="deep objects"),
        b"",
        b"{}",
        b"null",
        b"[1]",
        b"{",
        b"\xff",
        b'{"output": 1}',
        b'{"output": "page.children", "outputs": [], "inputs": {}, "changedPropIds": []}',
        b'{"output": "no.such", "outputs": [], "inputs": [], "changedPropIds": []}',
    ],
)
async def test_a_body_that_no_page_sends_is_400_and_says_the_way_out(
    client: httpx.AsyncClient, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    await client.get("/_dash-layout")

    answer = await client.post("/_dash-update-component", content=content, headers=JSON)

    assert answer.status_code == 400
    assert "load the page again" in answer.json()["message"]
    assert caplog.text == ""


@pytest.fixture
async def failing() -> Any:
    """A dashboard with a callback that fails and one that changes nothing."""
    app = FastAPI()
    dash = Dash("failing", server=app, suppress_callback_exceptions=True, add_log_handler=False)  # type: ignore[arg-type]
    dash.layout = html.Div([html.Div(id="a"), html.Div(id="b"), html.Div(id="c")])

    @dash.callback(Output("b", "children"), Input("a", "n_clicks"))
    async def fail(clicks: int | None) -> str:
        if clicks is None:
            raise PreventUpdate
        raise ZeroDivisionError("the run that nobody foresaw")

    dash._setup_server()
    dash_errors.register(app, dash.callback_map)
    async with httpx.AsyncClient(base_url="http://dashboard", transport=httpx.ASGITransport(app=app)) as client:
        yield await Callbacks.of(client)


async def test_an_error_of_a_callback_is_in_the_log_with_its_callback(
    failing: Callbacks, caplog: pytest.LogCaptureFixture
) -> None:
    body = failing.payload("b.children", {"a.n_clicks": 1})

    answer = await failing.client.post("/_dash-update-component", json=body)

    assert answer.status_code == 500
    assert "nobody foresaw" not in answer.text
    [record] = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert "unexpected error for POST /_dash-update-component of b.children" in record.getMessage()
    assert record.exc_info is not None
    assert "the run that nobody foresaw" in caplog.text


async def test_a_callback_that_changes_nothing_is_none(failing: Callbacks, caplog: pytest.LogCaptureFixture) -> None:
    assert await failing.post("b.children", {}) == {}
    assert caplog.text == ""
