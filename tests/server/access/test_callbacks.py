"""The dashboard's callbacks are endpoints too: what they carry is attacker's input, read as the visitor."""

from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID

import httpx
import pytest

from dashboard_callbacks import Callbacks
from principals import OURS, PUBLIC_URL, Team, running_team
from stored_runs import resolved, store_run

SECRET_NAME = "a name that others must not read"
UNKNOWN = ("nobody", "wrong key", "expired key", "revoked key")


@pytest.fixture(scope="module")
async def team(new_database: Callable[[], str]) -> AsyncIterator[Team]:
    async with running_team(new_database()) as opened:
        yield opened


@pytest.fixture(scope="module")
async def run_id(team: Team) -> UUID:
    return await store_run(team.app, project=OURS, name=SECRET_NAME, **resolved())


@pytest.fixture
async def admin(team: Team) -> AsyncIterator[httpx.AsyncClient]:
    async with team.client("administrator") as opened:
        yield opened


def values_about(run_id: UUID) -> dict[str, Any]:
    """State that a page about this run would hold, for whichever callback takes it."""
    view = {"x": "step", "w": "auto", "from": None, "to": None, "layer": None, "kind": "simple", "pref": 0.5}
    return {
        "run-id.data": str(run_id),
        "run-series-view.data": view,
        "run-pref-view.data": {"pref": 0.5},
        "run-layers-view.data": {"from": None, "to": None, "layers": "map", "term": "noise"},
        "run-save.n_clicks": 1,
        "run-name.value": "taken over",
        "run-said.data": {"name": "taken over", "tags": [], "remarks": ""},
        "runs-rows.data": [{"id": str(run_id), "stamp": "now"}],
        "runs-sparks.data": {},
        "runs-archive.n_clicks": 1,
        "runs-grid.selectedRows": [{"id": str(run_id), "tags": []}],
        "runs-purge.data": 1,
        "runs-done.data": {"words": "", "doomed": [str(run_id)]},
        "overview-view.data": {"scope": "7d", "pref": "0.5", "project": OURS},
        "compare-view.data": {"tab": "runs", "runs": [str(run_id)], "project": OURS, "task": None, "size": "n"},
        "address.pathname": f"/runs/{run_id}",
        "narrow.data": False,
    }


async def every_answer(team: Team, principal: str, run_id: UUID, known: Callbacks) -> list[httpx.Response]:
    """What each callback of the dashboard answers this principal about the run."""
    outputs = [found["output"].strip(".").split("...")[0] for found in known.server_side()]
    async with team.client(principal) as client:
        bodies = [known.payload(output, values_about(run_id)) for output in outputs]
        return [await client.post("/_dash-update-component", json=body) for body in bodies]


async def test_nobody_without_a_key_in_force_reaches_one(team: Team, run_id: UUID, admin: httpx.AsyncClient) -> None:
    known = await Callbacks.of(admin)

    for principal in UNKNOWN:
        answers = await every_answer(team, principal, run_id, known)

        assert {answer.status_code for answer in answers} == {401}
        assert len(answers) > 20


async def test_a_write_key_reaches_none(team: Team, run_id: UUID, admin: httpx.AsyncClient) -> None:
    answers = await every_answer(team, "write key", run_id, await Callbacks.of(admin))

    assert {answer.status_code for answer in answers} == {403}


@pytest.mark.parametrize("principal", ["their admin", "their key"])
async def test_a_foreign_runs_id_in_their_state_opens_and_changes_nothing(
    team: Team, run_id: UUID, admin: httpx.AsyncClient, principal: str
) -> None:
    answers = await every_answer(team, principal, run_id, await Callbacks.of(admin))
    run = (await admin.get(f"/api/v1/runs/{run_id}")).json()

    assert all(SECRET_NAME not in answer.text for answer in answers)
    assert (run["name"], run["archived"]) == (SECRET_NAME, False)


async def test_a_viewer_reads_it_and_changes_nothing(team: Team, run_id: UUID, admin: httpx.AsyncClient) -> None:
    """The test above would pass on callbacks that answer nobody."""
    answers = await every_answer(team, "viewer", run_id, await Callbacks.of(admin))
    run = (await admin.get(f"/api/v1/runs/{run_id}")).json()

    assert any(SECRET_NAME in answer.text for answer in answers)
    assert (run["name"], run["archived"]) == (SECRET_NAME, False)


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Content-Type": "text/plain"}], ids=str)
async def test_another_sites_page_posts_none(team: Team, headers: dict[str, str]) -> None:
    async with team.client("administrator") as client:
        answer = await client.post("/_dash-update-component", content=b"{}", headers=headers)

    assert client.headers["origin"] == PUBLIC_URL
    assert answer.status_code == 403
