"""Addresses, headers and first bytes of the pages."""

import ast
import re
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from fastapi.testclient import TestClient

import noisescale_dashboard
from dashboard_callbacks import Callbacks
from fakes_runs import RUNS
from fakes_sweeps import SWEEPS


@pytest.mark.parametrize(
    ("pathname", "shown"),
    [
        ("/", "overview-misfit"),
        ("/runs", "runs-grid"),
        (f"/runs/{RUNS[0].id}", RUNS[0].id),
        ("/sweeps", "sweeps-table"),
        (f"/sweeps/{SWEEPS[0].id}", SWEEPS[0].id),
        ("/elsewhere", "No such page"),
        ("/runs/not-a-uuid", "No such run"),
        ("/sweeps/not-a-uuid", "No such sweep"),
        (f"/runs/{RUNS[0].id}/more", "No such page"),
    ],
)
async def test_each_address_has_its_page(callbacks: Callbacks, pathname: str, shown: str) -> None:
    changed = await callbacks.post("page.children", {"address.pathname": pathname, "narrow.data": False})

    assert shown in str(changed["page"]["children"])


@pytest.mark.parametrize(
    ("pathname", "word"),
    [("/", "Overview"), ("/runs", "Runs"), (f"/runs/{RUNS[0].id}", "Runs"), (f"/sweeps/{SWEEPS[0].id}", "Sweeps")],
)
async def test_the_navigation_marks_the_page_that_is_open(callbacks: Callbacks, pathname: str, word: str) -> None:
    changed = await callbacks.post("page.children", {"address.pathname": pathname, "narrow.data": False})

    links = changed["nav"]["children"]
    assert [link["props"]["title"] for link in links if "aria-current" in link["props"]] == [word]


@pytest.mark.parametrize("path", ["/", "/runs", f"/runs/{RUNS[0].id}", "/sweeps"])
async def test_a_page_is_html_in_english_from_this_origin_only(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)

    assert answer.status_code == 200
    assert '<html lang="en" ' in answer.text
    assert "10-base.css" in answer.text
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'self'; script-src 'self' 'sha256-")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-eval" not in policy


async def test_the_page_of_a_wrong_address_may_load_its_scripts(address: str) -> None:
    """A server refuses everything in HTML that has no policy of its own: the reader would look at a blank page."""
    async with httpx.AsyncClient(base_url=address) as reader:
        right, wrong = [await reader.get(path) for path in ("/", "/elsewhere")]

    assert "10-base.css" in wrong.text
    assert wrong.headers["content-security-policy"] == right.headers["content-security-policy"]


def test_a_wrong_address_may_be_the_first_that_anybody_asks_for(own_dashboard: FastAPI) -> None:
    with TestClient(own_dashboard) as reader:
        answer = reader.get("/elsewhere")

    assert answer.status_code == 404
    assert "10-base.css" in answer.text


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/elsewhere", 404),
        ("/runs/not-a-uuid", 404),
        ("/sweeps/not-a-uuid", 404),
        ("/compare/more", 404),
        (f"/runs/{RUNS[0].id}/more", 404),
        ("/", 200),
        ("/runs/", 200),
        ("/record", 200),
        ("/planner/first", 200),
        ("/planner/second", 404),
        ("/cost", 200),
        ("/settings", 200),
        (f"/runs/{RUNS[0].id}", 200),
        (f"/sweeps/{SWEEPS[0].id}?target=0.5", 200),
    ],
)
async def test_the_status_of_an_address_says_whether_there_is_such_a_page(address: str, path: str, status: int) -> None:
    async with httpx.AsyncClient(base_url=address) as reader:
        answer = await reader.get(path)

    assert answer.status_code == status
    assert "10-base.css" in answer.text


async def test_html_that_is_not_of_the_dashboard_keeps_its_status(own_dashboard: FastAPI) -> None:
    """The server's own pages, such as /docs, have no policy of their own either."""
    own_dashboard.add_api_route("/docs", lambda: HTMLResponse("documents"))

    transport = httpx.ASGITransport(app=own_dashboard)
    async with httpx.AsyncClient(base_url="http://dashboard", transport=transport) as client:
        answer = await client.get("/docs")

    assert (answer.status_code, answer.text) == (200, "documents")


async def test_a_page_that_is_not_there_leads_on(callbacks: Callbacks) -> None:
    changed = await callbacks.post("page.children", {"address.pathname": "/elsewhere", "narrow.data": False})

    assert {"/", "/runs"} <= set(re.findall(r"'href': '([^']*)'", str(changed["page"]["children"])))


async def test_scripts_and_styles_go_out_compressed(client: httpx.AsyncClient) -> None:
    for path in ("/assets/10-base.css", "/assets/00-plotly-cartesian.min.js", "/_dash-layout"):
        answer = await client.get(path)
        assert answer.headers["content-encoding"] == "gzip", path


def test_every_callback_that_asks_the_api_is_a_coroutine() -> None:
    """Dash runs a plain function on the event loop, where waiting for the API of the same process never ends."""
    asking = []
    for path in Path(noisescale_dashboard.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and "app.callback" in _decorators(node):
                assert isinstance(node, ast.AsyncFunctionDef) or "api." not in ast.unparse(node), node.name
                asking.append(node.name)

    assert len(asking) >= 6


def _decorators(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    return " ".join(ast.unparse(decorator) for decorator in node.decorator_list)


async def test_the_first_tab_stop_skips_to_the_content(client: httpx.AsyncClient) -> None:
    layout = (await client.get("/_dash-layout")).text

    assert "Skip to the content" in layout
