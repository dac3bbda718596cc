"""The dashboard's callbacks are endpoints too: what they carry is attacker's input, read as the visitor."""

from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID

import httpx
import pytest

from dashboard_callbacks import Callbacks
from principals import OURS, PUBLIC_URL, Team, new_person, running_team
from stored_runs import resolved, store_run

SECRET_NAME = "a name that others must not read"
UNKNOWN = ("nobody", "wrong key", "expired key", "revoked key", "disabled admin", "key of a removed admin")


# What each callback does, by its first output and the input that calls it. `reads`: what its visitor may read, from the
# API as the visitor. `changes`: as the visitor too, refused by the API where the visitor may not. `words`: nothing of
# the database.
CALLBACKS = """
beat-answer.data               beat.data                  words
reproduced.data                reproduced.id              reads
nav.children                   reproduced.data            words
overview-figures.data          overview-view.data         reads
overview-panels.data           overview-shown.data        reads
runs-rows.data                 runs-view.data             reads
runs-sparks-fresh.data         runs-sparks-wanted.data    reads
runs-task.data                 runs-task.id               reads
runs-change.hidden             runs-view.data             reads
runs-flags.data                runs-copy-asked.data       reads
project.data                   project.id                 reads
team-views-list.children       project.value              reads
team-views-done.data           team-views-change.data     changes
runs-bar.hidden                runs-grid.selectedRows     words
runs-done-words.children       runs-done.data             words
runs-done.data                 runs-archive.n_clicks      changes
runs-done.data                 runs-purge.data            changes
run-flags.data                 run-copy-megatron.n_clicks reads
run-bullet-figure.data         run-pref-view.data         reads
run-layer-figure.data          run-layers-asked.data      reads
run-law-figures.data           run-slow-pulse.data        reads
run-rate-figure.data           run-slow-pulse.data        reads
run-time-words.children        run-slow-pulse.data        reads
run-change.data                run-save.n_clicks          changes
shell.className                shell.id                   reads
run-comments-box.hidden        run-slow-pulse.data        reads
run-comment-done.data          run-comment-change.data    changes
run-pin-done.data              run-pin.n_clicks           changes
runs-done.data                 runs-pin.n_clicks          changes
run-figures.data               run-series-view.data       reads
run-beside-figures.data        run-beside-asked.data      reads
run-records.children           run-records-asked.data     reads
sweeps-rows.data               sweeps-view.data           reads
sweeps-table.children          sweeps-rows.data           words
published-figures.data         sweeps-view.data           reads
record-figures.data            record-asked.data          reads
cost-figures.data              cost-view.data             reads
first-answer.children          first-tokens.value         reads
address.pathname               first-run-clock.n_intervals reads
learn-run.data                 learn-asked.data           reads
learn-figures.data             learn-octaves.value        words
sweep-plan.children            sweep-shown.data           reads
sweep-search-words.children    sweep-shown.data           reads
sweep-law-figures.data         sweep-shown.data           reads
sweep-figures.data             sweep-view.data            reads
sweep-name-said.children       sweep-name-save.n_clicks   changes
compare-pick.data              compare-view.data          reads
compare-size-figures.data      compare-view.data          reads
compare-head.children          compare-view.data          reads
planner-scope.data             planner-wanted.data        reads
planner-figures.data           planner-asked.data         reads
reproduce-head.children        reproduce-asked.data       reads
settings-sentence.children     settings-sentence.id       reads
first-connection.children      first-connection.id        reads
settings-defaults-project.data settings-me.data           reads
settings-defaults-price.value  settings-defaults-project.value reads
settings-defaults-said.children settings-defaults-save.n_clicks changes
settings-keeping-days.value    settings-defaults-project.value reads
settings-keeping-said.children settings-keeping-save.n_clicks changes
run-share-said.children        run-share-make.n_clicks    changes
settings-alerts-project.data   settings-defaults-project.data words
settings-alerts.children       settings-alerts-project.value reads
settings-alerts-said.children  settings-alerts-try.n_clicks changes
settings-alerts-said.children  settings-alerts-tell.n_clicks changes
settings-keys.children         settings-me.data           reads
settings-key-said.children     settings-key-make.n_clicks changes
settings-key-said.children     settings-key-rotate.n_clicks changes
settings-people.children       settings-me.data           reads
settings-stored.children       settings-stored.id         reads
settings-person-said.children  settings-role-set.n_clicks changes
settings-person-said.children  settings-newcomer-add.n_clicks changes
settings-person-said.children  settings-link-make.n_clicks changes
settings-person-said.children  settings-person-disable.n_clicks changes
page.children                  address.pathname           words
"""


def row_of(callback: dict[str, Any]) -> tuple[str, str]:
    """First output, without what tells two callbacks of one output apart, and first input."""
    output = callback["output"].strip(".").split("...")[0].split("@")[0]
    return output, f"{callback['inputs'][0]['id']}.{callback['inputs'][0]['property']}"


def callbacks_without_a_row(callbacks: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Callbacks that the table above does not speak of, and rows of none."""
    rows = {(output, called_by) for output, called_by, _ in map(str.split, CALLBACKS.strip().splitlines())}
    return {row_of(callback) for callback in callbacks} ^ rows


async def test_every_callback_has_a_row(admin: httpx.AsyncClient) -> None:
    assert callbacks_without_a_row((await Callbacks.of(admin)).server_side()) == set()


async def test_a_new_callback_without_a_row_is_noticed(admin: httpx.AsyncClient) -> None:
    new = {"output": "..secrets.children...secrets.title..", "inputs": [{"id": "button", "property": "n_clicks"}]}
    known = (await Callbacks.of(admin)).server_side()

    assert callbacks_without_a_row([*known, new]) == {("secrets.children", "button.n_clicks")}
    assert callbacks_without_a_row(known[1:]) == {row_of(known[0])}


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
        "run-beside-asked.data": {"view": view},
        "run-pref-view.data": {"pref": 0.5},
        "run-layers-asked.data": {"from": None, "to": None, "layers": "map", "term": "noise"},
        "run-save.n_clicks": 1,
        "run-name.value": "taken over",
        "run-said.data": {"name": "taken over", "tags": [], "remarks": ""},
        "runs-rows.data": [{"id": str(run_id), "stamp": "now"}],
        "runs-sparks-wanted.data": {str(run_id): "now"},
        "project.value": OURS,
        "team-views-change.data": {"do": "add", "name": "n", "page": "runs", "query": ""},
        "runs-copy-asked.data": {"id": str(run_id)},
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


def settings_about(person_id: UUID, name: str) -> dict[str, Any]:
    """State of Settings in which somebody makes an admin key of our project and an admin of a person."""
    return {
        "settings-key-make.n_clicks": 1,
        "settings-key-name.value": name,
        "settings-key-scope.value": "admin",
        "settings-key-projects.value": [OURS],
        "settings-key-days.value": 1,
        "settings-role-set.n_clicks": 1,
        "settings-person.value": str(person_id),
        "settings-person-project.value": OURS,
        "settings-person-role.value": "admin",
    }


@pytest.mark.parametrize(("principal", "is_done"), [("viewer", False), ("their admin", False), ("admin", True)])
async def test_keys_and_roles_are_given_by_who_may_and_by_nobody_else(
    team: Team, admin: httpx.AsyncClient, principal: str, is_done: bool
) -> None:
    name = f"made by {principal}"
    person_id = await new_person(team.app, f"chosen by {principal}", {OURS: "viewer"})
    known = await Callbacks.of(admin)
    async with team.client(principal) as client:
        for output in ("settings-key-said.children", "settings-person-said.children"):
            payload = known.payload(output, settings_about(person_id, name))
            assert (await client.post("/_dash-update-component", json=payload)).status_code == 200
    keys = (await admin.get("/api/v1/keys")).json()["keys"]
    people = (await admin.get("/api/v1/people")).json()["people"]

    roles = next(one["roles"] for one in people if one["id"] == str(person_id))
    assert (name in {key["name"] for key in keys}) is is_done
    assert [role["role"] for role in roles] == ["admin" if is_done else "viewer"]


@pytest.mark.parametrize(("principal", "is_done"), [("viewer", False), ("admin", False), ("administrator", True)])
async def test_people_and_login_links_are_made_by_admins_of_all_projects_alone(
    team: Team, admin: httpx.AsyncClient, principal: str, is_done: bool
) -> None:
    name = f"added by {principal}"
    known = await Callbacks.of(admin)
    values = {
        "settings-newcomer-add.n_clicks": 1,
        "settings-newcomer-name.value": name,
        "settings-newcomer-admin.checked": True,
        "settings-link-make.n_clicks": 1,
        "settings-person.value": str(await new_person(team.app, f"found by {principal}", {OURS: "viewer"})),
    }
    async with team.client(principal) as client:
        outputs = [known.output_called_by(button) for button in ("settings-newcomer-add", "settings-link-make")]
        said = [await client.post("/_dash-update-component", json=known.payload(output, values)) for output in outputs]
    people = (await admin.get("/api/v1/people")).json()["people"]

    assert (name in {one["name"] for one in people}) is is_done
    assert ("login?link=" in str(said[1].json())) is is_done


@pytest.mark.parametrize(("principal", "is_done"), [("viewer", False), ("admin", False), ("administrator", True)])
async def test_people_are_disabled_and_made_admins_by_admins_of_all_projects_alone(
    team: Team, admin: httpx.AsyncClient, principal: str, is_done: bool
) -> None:
    known = await Callbacks.of(admin)
    found = {}
    async with team.client(principal) as client:
        for button in ("disable", "promote"):
            person_id = str(await new_person(team.app, f"chosen by {principal}", {OURS: "viewer"}))
            values = {f"settings-person-{button}.n_clicks": 1, "settings-person.value": person_id}
            output = known.output_called_by("settings-person-disable")
            payload = known.payload(output, values, triggered=f"settings-person-{button}.n_clicks")
            assert (await client.post("/_dash-update-component", json=payload)).status_code == 200
            people = (await admin.get("/api/v1/people")).json()["people"]
            found[button] = next(one for one in people if one["id"] == person_id)

    assert (found["disable"]["disabled_at"] is not None) is is_done
    assert found["promote"]["is_administrator"] is is_done
