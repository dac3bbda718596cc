"""A member is let in to make a key, and is removed before it is kept: no key stays that would come back with them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from uuid import UUID

import pytest
from sqlalchemy import delete

from noisescale_server.services.access import keys, offboarding
from noisescale_server.services.access.access import LOCAL, Principal
from noisescale_server.services.access.key_text import Scope
from noisescale_server.services.access.keys import MadeKey, NewKey
from noisescale_server.services.access.people import principal_of, set_role
from noisescale_server.services.platform.errors import KeyNotFound, NotAllowed
from noisescale_server.storage.access.tables import Membership
from principals import OURS, SECRET, Team, new_person, running_team


@pytest.fixture(scope="module")
async def team(new_database: Callable[[], str]) -> AsyncIterator[Team]:
    async with running_team(new_database()) as opened:
        yield opened


async def newcomer(team: Team, **roles: str) -> tuple[UUID, Principal]:
    person_id = await new_person(team.app, "leaver", roles)
    async with team.app.state.sessions() as session:
        found = await principal_of(session, person_id)
    assert found is not None
    return person_id, found


async def remove(team: Team, person_id: UUID, *, holds_on: float = 0.0) -> None:
    async with team.app.state.sessions.begin() as session:
        await offboarding.remove_member(session, LOCAL, OURS, person_id, now=datetime.now(UTC))
        await asyncio.sleep(holds_on)


async def make(team: Team, by: Principal, new: NewKey) -> MadeKey:
    async with team.app.state.sessions.begin() as session:
        return await keys.create(session, by, new, pepper=SECRET.encode(), now=datetime.now(UTC))


@pytest.mark.parametrize("projects", [[OURS], None])
@pytest.mark.parametrize("scope", ["write", "read"])
async def test_it_is_refused(team: Team, projects: list[str] | None, scope: Scope) -> None:
    person_id, let_in = await newcomer(team, **{OURS: "member"})
    await remove(team, person_id)

    with pytest.raises(NotAllowed, match="taken away or changed meanwhile"):
        await make(team, let_in, NewKey("late", scope, projects))


async def test_it_is_refused_to_who_was_made_a_viewer(team: Team) -> None:
    person_id, let_in = await newcomer(team, **{OURS: "member"})
    async with team.app.state.sessions.begin() as session:
        await set_role(session, LOCAL, OURS, person_id, "viewer")

    with pytest.raises(NotAllowed, match="taken away or changed meanwhile"):
        await make(team, let_in, NewKey("late", "write", [OURS]))


async def test_of_both_at_once_the_key_waits_and_is_refused(team: Team) -> None:
    person_id, let_in = await newcomer(team, **{OURS: "member"})
    removal = asyncio.create_task(remove(team, person_id, holds_on=0.3))
    await asyncio.sleep(0.1)

    with pytest.raises(NotAllowed, match="taken away or changed meanwhile"):
        await make(team, let_in, NewKey("late", "write", [OURS]))
    await removal


async def test_a_key_that_came_first_ends_with_the_role(team: Team) -> None:
    person_id, let_in = await newcomer(team, **{OURS: "member"})

    async def make_slowly() -> MadeKey:
        async with team.app.state.sessions.begin() as session:
            new = NewKey("early", "write", [OURS])
            made = await keys.create(session, let_in, new, pepper=SECRET.encode(), now=datetime.now(UTC))
            await asyncio.sleep(0.3)
            return made

    making = asyncio.create_task(make_slowly())
    await asyncio.sleep(0.1)
    await remove(team, person_id)
    made = await making

    async with team.app.state.sessions() as session:
        kept = await keys.find(session, LOCAL, made.id)
    assert kept.revoked_at is not None


async def test_a_key_that_ended_meanwhile_has_no_successor(team: Team) -> None:
    person_id, let_in = await newcomer(team, **{OURS: "member"})
    made = await make(team, let_in, NewKey("old", "write", [OURS]))
    removal = asyncio.create_task(remove(team, person_id, holds_on=0.3))
    await asyncio.sleep(0.1)

    with pytest.raises(KeyNotFound):
        async with team.app.state.sessions.begin() as session:
            await keys.rotate(session, LOCAL, made.id, pepper=SECRET.encode(), now=datetime.now(UTC))
    await removal


async def rotated(team: Team, by: Principal, key_id: str) -> MadeKey:
    async with team.app.state.sessions.begin() as session:
        return await keys.rotate(session, by, key_id, pepper=SECRET.encode(), now=datetime.now(UTC))


@pytest.mark.parametrize("projects", [[OURS], None])
async def test_the_key_of_a_member_has_a_successor_for_the_same_projects(
    team: Team, projects: list[str] | None
) -> None:
    person_id, let_in = await newcomer(team, **{OURS: "member"})
    made = await make(team, let_in, NewKey("old", "write", projects))

    after = await rotated(team, let_in, made.id)

    async with team.app.state.sessions() as session:
        old, new = [await keys.find(session, LOCAL, one.id) for one in (made, after)]
    assert (new.project_ids, new.owner_id, new.lineage) == (old.project_ids, person_id, made.id)


async def test_a_key_for_a_project_that_its_owner_may_not_enter_has_no_successor(team: Team) -> None:
    """Also where it was not ended with the role, as by a backup of before."""
    person_id, let_in = await newcomer(team, **{OURS: "member"})
    made = await make(team, let_in, NewKey("old", "write", [OURS]))
    async with team.app.state.sessions.begin() as session:
        await session.execute(delete(Membership).where(Membership.person_id == person_id))

    with pytest.raises(KeyNotFound):
        await rotated(team, LOCAL, made.id)


@pytest.mark.parametrize("owner", ["nobody", "a member"])
async def test_of_a_key_that_is_rotated_twice_at_once_there_are_never_three(team: Team, owner: str) -> None:
    by = LOCAL if owner == "nobody" else (await newcomer(team, **{OURS: "member"}))[1]
    made = await make(team, by, NewKey("twice", "write", [OURS]))

    async def rotate() -> MadeKey:
        async with team.app.state.sessions.begin() as session:
            found = await keys.rotate(session, by, made.id, pepper=SECRET.encode(), now=datetime.now(UTC))
            await asyncio.sleep(0.1)
            return found

    outcomes = await asyncio.gather(rotate(), rotate(), return_exceptions=True)

    assert sorted(type(one).__name__ for one in outcomes) == ["MadeKey", "TooManyKeys"]
