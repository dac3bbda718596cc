"""Every tool of `noisescale mcp` × every key, compared with a table that was written by hand from the roles.

`+` answers, `-` is refused as known and not allowed, `0` is answered word for word as if nothing were there, `!` is
refused as not known. A tool without a row fails: whoever adds one says who may.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import httpx
import httpx2
import pytest
import uvicorn
from mcp import Client, types
from mcp.client.streamable_http import streamable_http_client

from noisescale.agents.calls import Caller
from noisescale.agents.server import http_app, make_server
from noisescale.config import Config
from principals import OURS, PUBLIC_URL, SECRET, Team, running_team
from quick import quick_or_slow
from served_app import served_app
from served_in_thread import served_by
from stored_runs import resolved, store_run

pytestmark = pytest.mark.processes

KEYS = ("nobody", "wrong key", "expired key", "revoked key", "write key", "read key", "admin key", "their key")
NAME, TASK = "their secret name", "digits"
WHAT_IS_MISSING = "task: nothing is known of its critical batch: No run of this task with SGD"
"""An answer, too, and one that only who may read the task gets: its run has no rows here."""

# fmt: off
MATRIX = """
                                                    nobody wrong expired revoked │ write read admin their
list_runs project=OURS                                 !     !      !       !       -    +    +     0
search_runs text=NAME                                  !     !      !       !       -    +    +     0
get_run run=RUN                                        !     !      !       !       -    +    +     0
get_run run=NAME                                       !     !      !       !       -    +    +     0
noise_scale run=RUN                                    !     !      !       !       -    +    +     0
compare_runs runs=RUN,RUN                              !     !      !       !       -    +    +     0
recommendation run=RUN                                 !     !      !       !       -    +    +     0
plan_within_limits run=RUN                             !     !      !       !       -    +    +     0
plan_within_limits project=OURS task=TASK              !     !      !       !       -    +    +     0
recommend_before_training project=OURS task=TASK       !     !      !       !       -    +    +     0
recommend_before_training tokens=TOKENS                +     +      +       +       +    +    +     +
explain_number run=RUN                                 !     !      !       !       -    +    +     0
list_sweeps project=OURS                               !     !      !       !       -    +    +     0
fit_sweep sweep=SWEEP                                  !     !      !       !       -    +    +     0
change_run run=RUN remarks=NAME                        !     !      !       !       -    -    +     0
create_sweep project=OURS task=TASK run_ids=IDS        !     !      !       !       +    -    +     -
"""
# fmt: on


def rows() -> list[tuple[str, dict[str, str], str]]:
    """(tool, arguments as they are written, marks) of each line."""
    lines = [line.split() for line in MATRIX.splitlines()[2:]]
    return [
        (line[0], dict(part.split("=") for part in line[1:] if "=" in part), "".join(line[-len(KEYS) :]))
        for line in lines
    ]


@dataclass(frozen=True)
class Things:
    """A team's server on a socket, and what the calls are about."""

    url: str
    keys: dict[str, str | None]
    run_id: UUID
    sweep_id: UUID

    def arguments(self, written: dict[str, str], *, are_there: bool = True) -> dict[str, Any]:
        """What a row means; with `are_there` false the same of things that exist nowhere."""
        run, sweep = (self.run_id, self.sweep_id) if are_there else (uuid4(), uuid4())
        meant = {
            "OURS": OURS if are_there else "nowhere", "TASK": TASK, "NAME": NAME if are_there else "no such name",
            "RUN": str(run), "SWEEP": str(sweep), "TOKENS": 20e9, "RUN,RUN": [str(run)] * 2, "IDS": [str(run)],
        }  # fmt: skip
        return {name: meant[value] for name, value in written.items()}


@pytest.fixture(scope="module")
async def things(new_database: Callable[[], str]) -> AsyncIterator[Things]:
    database = new_database()
    settings = {"auth": "required", "secret_key": SECRET, "public_url": PUBLIC_URL, "local_token": None}
    async with running_team(database) as team:
        run_id, sweep_id = uuid4(), uuid4()
        columns = {"planned_steps": 5000, "num_devices": 2, **resolved()}
        await store_run(team.app, id=run_id, project=OURS, task=TASK, name=NAME, **columns)
        await make_sweep(team, sweep_id)
        keys = {name: key_of(team, name) for name in KEYS}
        with served_app(database, **settings) as url:
            yield Things(url, keys, run_id, sweep_id)


async def make_sweep(team: Team, sweep_id: UUID) -> None:
    sweep = {"id": str(sweep_id), "project": OURS, "task": TASK, "name": "secret sweep", "targets": [0.5]}
    async with team.client("administrator") as client:
        assert (await client.post("/api/v1/sweeps", json=sweep)).status_code == httpx.codes.CREATED


def key_of(team: Team, name: str) -> str | None:
    return team.headers[name].get("Authorization", "").removeprefix("Bearer ") or None


def client_of(things: Things, key: str) -> Client:
    """An assistant whose process has this key."""
    config = Config(url=things.url, api_key=things.keys[key])
    return Client(make_server(Caller.of_process(lambda: config), allows_changes=True))


def text_of(found: types.CallToolResult) -> str:
    (content,) = found.content
    assert isinstance(content, types.TextContent)
    return content.text


def forgotten(text: str) -> str:
    """A text without what only says what was asked for."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", text)
    return (
        text.replace(NAME, "NAME")
        .replace("no such name", "NAME")
        .replace(OURS, "PROJECT")
        .replace("nowhere", "PROJECT")
    )


async def mark_of(client: Client, things: Things, tool: str, written: dict[str, str]) -> str:
    found = await client.call_tool(tool, things.arguments(written))
    said = text_of(found)
    if found.is_error and said.startswith("this needs a key or a login"):
        return "!"
    if found.is_error and "may not" in said:
        return "-"
    if tool.startswith("create") or not (tool.startswith(("list", "search")) or found.is_error):
        return "+" if not found.is_error else said
    nothing = await client.call_tool(tool, things.arguments(written, are_there=False))
    if forgotten(text_of(nothing)) == forgotten(said) and nothing.is_error == found.is_error:
        return "0"
    return "+" if not found.is_error or said.startswith(WHAT_IS_MISSING) else said


@pytest.mark.parametrize(
    # each key is known by the REST API's own matrix: three are asked quickly
    "key",
    quick_or_slow(KEYS, ("nobody", "read key", "admin key")),
)
async def test_every_tool_gives_each_key_what_the_table_says(things: Things, key: str) -> None:
    async with client_of(things, key) as client:
        found = {(tool, *written.items()): await mark_of(client, things, tool, written) for tool, written, _ in rows()}

    assert found == {(tool, *written.items()): marks[KEYS.index(key)] for tool, written, marks in rows()}


async def test_every_tool_has_a_row(things: Things) -> None:
    async with client_of(things, "read key") as client:
        there = {tool.name for tool in (await client.list_tools()).tools}

    assert there == {tool for tool, _, _ in rows()}


async def test_nothing_is_changed_unless_it_was_started_so(things: Things) -> None:
    server = make_server(Caller.of_process(lambda: Config(url=things.url, api_key=things.keys["admin key"])))
    async with Client(server) as client:
        tools = (await client.list_tools()).tools
        refused = await client.call_tool("change_run", {"run": str(things.run_id), "name": "changed"})

        assert refused.is_error
        assert "change_run" in text_of(refused)
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        assert NAME in text_of(await client.call_tool("get_run", {"run": str(things.run_id)}))


@contextmanager
def over_http(url: str) -> Iterator[str]:
    """The address of the tools behind a real socket."""
    app = http_app(url, allows_changes=True)
    with served_by(uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning"))) as port:
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.mark.slow
async def test_over_http_each_request_may_what_its_own_key_may(things: Things, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has started the process has a key, too: it is nobody else's."""
    monkeypatch.setenv("NOISESCALE_API_KEY", things.keys["admin key"] or "")
    asked = ("get_run", "change_run", "recommend_before_training")
    lines = [row for row in rows() if row[0] in asked]
    with over_http(things.url) as address:
        for key in KEYS[1:]:
            headers = {"Authorization": f"Bearer {things.keys[key]}"}
            async with (
                httpx2.AsyncClient(headers=headers) as http,
                Client(streamable_http_client(address, http_client=http)) as client,
            ):
                found = [await mark_of(client, things, tool, written) for tool, written, _ in lines]
            assert (key, found) == (key, [marks[KEYS.index(key)] for _, _, marks in lines])


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer"}, {"Authorization": "Basic YTpi"}])
def test_over_http_nobody_gets_in_without_a_key(things: Things, headers: dict[str, str]) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with over_http(things.url) as address:
        answers = [httpx.post(address, json=body, headers=headers), httpx.get(address, headers=headers)]

    assert [answer.status_code for answer in answers] == [401, 401]
    assert "send `Authorization: Bearer <key>`" in answers[0].json()["detail"]


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}])
def test_over_http_no_page_elsewhere_reaches_the_tools(things: Things, headers: dict[str, str]) -> None:
    """A name of a stranger's that points at this machine, and a page of his in a browser here."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with over_http(things.url) as address:
        answer = httpx.post(
            address, json=body, headers={"Authorization": f"Bearer {things.keys['read key']}", **headers}
        )

    assert answer.status_code in (403, 421)
