"""Who may see, add, promote and remove people, at the service itself."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.services.access import offboarding, people
from noisescale_server.services.access.access import LOCAL, PersonRole, Principal, Right
from noisescale_server.services.platform.errors import NotAllowed, PersonNotFound, ProjectNotFound
from noisescale_server.storage.access import api_keys
from noisescale_server.storage.access.tables import AuditRow, Person

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
OURS, THEIRS = "people ours", "people theirs"


@pytest.fixture(autouse=True)
async def projects(session: AsyncSession) -> list[UUID]:
    ids = await api_keys.project_ids(session, [OURS, THEIRS], creates=True)
    return [one for one in ids if one is not None]


async def person(session: AsyncSession, name: str, **roles: PersonRole) -> Principal:
    """Somebody with these roles in our and their project."""
    person_id = await people.add(session, LOCAL, name=name, email=None, is_administrator=False)
    for project, role in roles.items():
        await people.set_role(session, LOCAL, {"ours": OURS, "theirs": THEIRS}[project], person_id, role)
    found = await people.principal_of(session, person_id)
    assert found is not None
    return found


async def entries(session: AsyncSession) -> list[tuple[str, UUID | None, dict[str, str]]]:
    rows = await session.execute(select(AuditRow.action, AuditRow.project_id, AuditRow.details).order_by(AuditRow.id))
    return [(action, project_id, details) for action, project_id, details in rows]


async def test_somebody_disabled_is_nobody(session: AsyncSession) -> None:
    known = await person(session, "Ada", ours="member")
    (await session.get_one(Person, known.person_id)).disabled_at = datetime.now(UTC)
    await session.flush()

    assert known.person_id is not None
    assert await people.principal_of(session, known.person_id) is None
    assert await people.principal_of(session, uuid4()) is None


async def test_one_sees_the_members_of_the_projects_that_one_manages(session: AsyncSession) -> None:
    await person(session, "both", ours="viewer", theirs="member")
    await person(session, "none")
    admin = await person(session, "ours admin", ours="admin")

    of_admin = {one.person.name: one.roles for one in await people.list_for(session, admin)}
    of_all = {one.person.name: one.roles for one in await people.list_for(session, LOCAL)}

    assert of_admin == {"both": ((OURS, "viewer"),), "ours admin": ((OURS, "admin"),)}
    assert of_all["both"] == ((OURS, "viewer"), (THEIRS, "member"))
    assert of_all["none"] == ()


async def test_only_an_admin_of_all_projects_adds_people(session: AsyncSession) -> None:
    with pytest.raises(NotAllowed, match="adding people"):
        await people.add(
            session, await person(session, "x", ours="admin"), name="y", email=None, is_administrator=False
        )
    first = await people.add(session, LOCAL, name="plain", email="p@x.example", is_administrator=False)
    second = await people.add(session, LOCAL, name="mighty", email=None, is_administrator=True)

    written = [(action, details) for action, _, details in await entries(session)][-2:]
    assert written == [
        ("person added", {"person": str(first), "name": "plain"}),
        ("administrator added", {"person": str(second), "name": "mighty"}),
    ]


@pytest.mark.parametrize(
    ("roles", "error"),
    [({"ours": "admin"}, None), ({"ours": "member"}, NotAllowed), ({"theirs": "admin"}, ProjectNotFound)],
    ids=["admin", "member", "another project"],
)
async def test_who_manages_a_project_sets_and_takes_its_roles(
    session: AsyncSession, projects: list[UUID], roles: dict[str, PersonRole], error: type[Exception] | None
) -> None:
    by, target = await person(session, "by", **roles), await person(session, "target", ours="viewer")
    assert target.person_id is not None

    if error is not None:
        with pytest.raises(error):
            await people.set_role(session, by, OURS, target.person_id, "admin")
        with pytest.raises(error):
            await offboarding.remove_member(session, by, OURS, target.person_id, now=NOW)
        return
    await people.set_role(session, by, OURS, target.person_id, "member")
    promoted = await people.principal_of(session, target.person_id)
    await offboarding.remove_member(session, by, OURS, target.person_id, now=NOW)
    removed = await people.principal_of(session, target.person_id)

    assert promoted is not None
    assert promoted.may(Right.APPEND, projects[0])
    assert not promoted.may(Right.MANAGE, projects[0])
    assert removed is not None
    assert not removed.may_anywhere(Right.IDENTITY)
    known = {"person": str(target.person_id)}
    assert (await entries(session))[-2:] == [
        ("role set", projects[0], known | {"role": "member"}),
        ("member removed", projects[0], known),
    ]


async def test_nobody_is_no_member(session: AsyncSession) -> None:
    outsider = await person(session, "outsider")
    assert outsider.person_id is not None

    with pytest.raises(PersonNotFound):
        await people.set_role(session, LOCAL, OURS, uuid4(), "viewer")
    with pytest.raises(PersonNotFound):
        await offboarding.remove_member(session, LOCAL, OURS, outsider.person_id, now=NOW)
    with pytest.raises(ProjectNotFound):
        await people.set_role(session, LOCAL, "no such project", outsider.person_id, "viewer")


async def test_one_logs_out_oneself_and_an_admin_of_all_projects_anybody(session: AsyncSession) -> None:
    one, other = await person(session, "one", ours="admin"), await person(session, "other", ours="viewer")
    assert one.person_id is not None
    assert other.person_id is not None

    with pytest.raises(NotAllowed, match="logging others out"):
        await people.log_out_everywhere(session, one, other.person_id)
    await people.log_out_everywhere(session, one, one.person_id)
    await people.log_out_everywhere(session, LOCAL, other.person_id)

    written = [details for action, _, details in await entries(session) if action == "logged out everywhere"]
    assert written == [{"person": str(one.person_id)}, {"person": str(other.person_id)}]
