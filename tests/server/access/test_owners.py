"""A key goes with its owner: it opens no more than its owner may at the moment it is shown, whatever has changed."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import update

from factories import make_run
from keys_of_tests import bearer
from noisescale_server.services.access import keys, offboarding, people
from noisescale_server.services.access.access import LOCAL
from noisescale_server.services.access.keys import NewKey
from noisescale_server.storage.access.tables import Person
from principals import OURS, PUBLIC_URL, SECRET, THEIRS, Team, new_person, running_team


@pytest.fixture(scope="module")
async def team(new_database: Callable[[], str]) -> AsyncIterator[Team]:
    async with running_team(new_database()) as opened:
        yield opened


async def key_of(app: FastAPI, owner: UUID, scope: Any, projects: list[str] | None) -> str:
    """The text of a new key of this person, never shown to the server before."""
    async with app.state.sessions.begin() as session:
        by = await people.principal_of(session, owner)
        assert by is not None
        new = NewKey("of a person", scope, projects)
        return (await keys.create(session, by, new, pepper=SECRET.encode(), now=datetime.now(UTC))).text


async def opened_by(app: FastAPI, key: str) -> dict[str, int]:
    """What the key is answered: whether it reads, writes and manages our project, and reads theirs."""
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=PUBLIC_URL, headers=bearer(key)) as client:
        return {
            "reads": (await client.get(f"/api/v1/projects/{OURS}/tasks")).status_code,
            "writes": (await client.post("/api/v1/runs", json=make_run(project=OURS))).status_code,
            "manages": (await client.get("/api/v1/people")).status_code,
            "reads theirs": (await client.get(f"/api/v1/projects/{THEIRS}/tasks")).status_code,
        }


async def disabled(app: FastAPI, owner: UUID) -> None:
    async with app.state.sessions.begin() as session:
        await session.execute(update(Person).where(Person.id == owner).values(disabled_at=datetime.now(UTC)))


async def deleted(app: FastAPI, owner: UUID) -> None:
    async with app.state.sessions.begin() as session:
        await session.delete(await session.get_one(Person, owner))


async def removed(app: FastAPI, owner: UUID) -> None:
    async with app.state.sessions.begin() as session:
        await offboarding.remove_member(session, LOCAL, OURS, owner, now=datetime.now(UTC))


async def made_viewer(app: FastAPI, owner: UUID) -> None:
    async with app.state.sessions.begin() as session:
        await people.set_role(session, LOCAL, OURS, owner, "viewer")


async def nothing_happens(app: FastAPI, owner: UUID) -> None:
    pass


UNKNOWN = {"reads": 401, "writes": 401, "manages": 401, "reads theirs": 401}
Change = Callable[[FastAPI, UUID], Awaitable[None]]


@pytest.mark.parametrize("projects", [[OURS], None], ids=["of one project", "of all that its owner enters"])
@pytest.mark.parametrize(
    ("scope", "change", "expected"),
    [
        ("write", nothing_happens, {"reads": 403, "writes": 201, "manages": 403, "reads theirs": 403}),
        ("read", nothing_happens, {"reads": 200, "writes": 403, "manages": 403, "reads theirs": 404}),
        *((scope, end, UNKNOWN) for scope in ("write", "read") for end in (disabled, deleted, removed)),
        ("read", made_viewer, {"reads": 200, "writes": 403, "manages": 403, "reads theirs": 404}),
    ],
)
async def test_a_members_key_opens_what_its_owner_still_may(
    team: Team, scope: str, change: Change, expected: dict[str, int], projects: list[str] | None
) -> None:
    owner = await new_person(team.app, "an owner", {OURS: "member"})
    key = await key_of(team.app, owner, scope, projects)

    await change(team.app, owner)

    assert await opened_by(team.app, key) == expected


@pytest.mark.parametrize("projects", [[OURS], None], ids=["of one project", "of all that its owner enters"])
async def test_the_write_key_of_somebody_who_only_reads_now_writes_no_more(
    team: Team, projects: list[str] | None
) -> None:
    owner = await new_person(team.app, "demoted", {OURS: "member"})
    key = await key_of(team.app, owner, "write", projects)

    await made_viewer(team.app, owner)

    assert (await opened_by(team.app, key))["writes"] in (403, 404)


@pytest.mark.parametrize("projects", [[OURS], None], ids=["of one project", "of all projects"])
async def test_the_admin_key_of_an_administrator_manages_until_he_is_none(
    team: Team, projects: list[str] | None
) -> None:
    owner = await new_person(team.app, "an administrator", {}, is_administrator=True)
    first, second = [await key_of(team.app, owner, "admin", projects) for _ in "ab"]
    before = await opened_by(team.app, first)

    async with team.app.state.sessions.begin() as session:
        await session.execute(update(Person).where(Person.id == owner).values(is_administrator=False))

    theirs = 200 if projects is None else 404
    assert before == {"reads": 200, "writes": 201, "manages": 200, "reads theirs": theirs}
    assert await opened_by(team.app, second) == {"reads": 403, "writes": 403, "manages": 403, "reads theirs": 403}


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("read", {"reads": 200, "writes": 403, "manages": 403, "reads theirs": 200}),
        ("write", {"reads": 403, "writes": 201, "manages": 403, "reads theirs": 403}),
    ],
)
async def test_a_key_of_an_administrator_opens_no_more_than_its_scope_says(
    team: Team, scope: str, expected: dict[str, int]
) -> None:
    owner = await new_person(team.app, "an administrator", {}, is_administrator=True)

    assert await opened_by(team.app, await key_of(team.app, owner, scope, None)) == expected


async def test_a_project_that_its_owner_enters_later_is_open_to_a_key_of_all(team: Team) -> None:
    owner = await new_person(team.app, "newcomer", {})
    key = await key_of(team.app, owner, "read", None)

    async with team.app.state.sessions.begin() as session:
        await people.set_role(session, LOCAL, THEIRS, owner, "viewer")

    assert (await opened_by(team.app, key))["reads theirs"] == 200
