"""The browser's modules: how they come to the page, and that Python and they call things by the same names."""

import base64
import hashlib
import json
import re
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

import noisescale_dashboard
from noisescale_dashboard.api.question_fields import for_scripts
from noisescale_dashboard.serving.modules import Modules

FOLDER = Path(noisescale_dashboard.__file__).parent / "assets" / "modules"
NAMES = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.js")}
ADDRESS = Modules(FOLDER).address
IMPORTED = re.compile(r'(?:^|\n)(?:import|export) [^;]*?from "([^"]+)";')


async def index(client: httpx.AsyncClient) -> httpx.Response:
    return (await client.get("/runs")).raise_for_status()


async def test_a_page_asks_for_every_module_at_once_and_for_none_as_a_plain_script(client: httpx.AsyncClient) -> None:
    page = (await index(client)).text

    assert {
        link.removeprefix(f"{ADDRESS}/") for link in re.findall(r'rel="modulepreload" href="([^"]+)"', page)
    } == NAMES
    assert not [script for script in re.findall(r'<script src="([^"]+)"', page) if "/modules/" in script]


async def test_dash_starts_once_all_modules_are_there_and_the_policy_allows_that_script_by_its_hash(
    client: httpx.AsyncClient,
) -> None:
    answer = await index(client)
    script = re.search(r'<script id="_dash-renderer"[^>]*>(.*?)</script>', answer.text, re.DOTALL)

    assert script
    assert re.fullmatch(
        rf'import\("{ADDRESS}/main.js"\)\.then\(\(\) => \{{ .*new DashRenderer\(.*\); \}}\);', script[1]
    )
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    policy = answer.headers["content-security-policy"]
    assert f"script-src 'self' 'sha256-{digest}';" in policy
    assert "unsafe-eval" not in policy


@pytest.mark.parametrize("name", sorted(NAMES))
async def test_a_module_is_a_script_that_a_browser_keeps_for_good(client: httpx.AsyncClient, name: str) -> None:
    answer = await client.get(f"{ADDRESS}/{name}")

    assert answer.status_code == 200
    assert answer.headers["content-type"].partition(";")[0] in ("text/javascript", "application/javascript")
    assert "immutable" in answer.headers["cache-control"]


async def test_modules_of_another_version_are_not_there(client: httpx.AsyncClient) -> None:
    answer = await client.get("/assets/modules/0123456789abcdef/main.js")

    assert answer.status_code == 404
    assert "immutable" not in answer.headers.get("cache-control", "")


def test_one_byte_or_one_name_that_changes_gives_all_modules_another_address(tmp_path: Path) -> None:
    (tmp_path / "shell").mkdir()
    (tmp_path / "main.js").write_text("1")
    (tmp_path / "shell" / "a.js").write_text("2")
    first = Modules(tmp_path).address
    assert Modules(tmp_path).address == first

    (tmp_path / "shell" / "a.js").write_text("3")
    second = Modules(tmp_path).address
    (tmp_path / "shell" / "a.js").rename(tmp_path / "shell" / "b.js")
    assert len({first, second, Modules(tmp_path).address}) == 3


def test_every_module_is_reached_from_the_first_one_by_relative_paths() -> None:
    reached, waiting = set(), ["main.js"]
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        for path in IMPORTED.findall((FOLDER / name).read_text()):
            assert path.startswith(("./", "../")), (name, path)
            waiting.append((FOLDER / name).parent.joinpath(path).resolve().relative_to(FOLDER.resolve()).as_posix())

    assert reached == NAMES


async def test_python_calls_every_callback_that_is_registered_and_no_other(
    dashboard: FastAPI, client: httpx.AsyncClient
) -> None:
    dependencies = (await client.get("/_dash-dependencies")).json()
    called = {one["clientside_function"]["function_name"] for one in dependencies if one["clientside_function"]}
    registered = re.search(r"const CALLBACKS = \{(.*?)\};", (FOLDER / "register.js").read_text(), re.DOTALL)

    assert registered
    assert called == set(re.findall(r"\w+", registered[1]))


def test_the_modules_are_tested_with_the_fields_that_python_writes_on_the_page() -> None:
    tested = Path(__file__).parent / "modules" / "support" / "question.json"

    assert json.loads(tested.read_text()) == json.loads(for_scripts())
