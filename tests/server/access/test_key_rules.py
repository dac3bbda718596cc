"""Who may make, see, rotate and end which key, at the service itself."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncSession

import recognised
from noisescale_server.services.access import key_text, keys, people
from noisescale_server.services.access.access import LOCAL, PersonRole, Principal, Right
from noisescale_server.services.access.key_text import KeyText, Scope
from noisescale_server.services.access.keys import MadeKey, NewKey
from noisescale_server.services.platform.errors import (
    InvalidInput,
    KeyNotFound,
    NotAllowed,
    ProjectNotFound,
    TooManyKeys,
)
from noisescale_server.storage.access import api_keys
from noisescale_server.storage.access.tables import ApiKey, AuditRow

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)
PEPPER = b"a pepper of tests"
OURS, THEIRS = "rules ours", "rules theirs"


@pytest.fixture(autouse=True)
async def projects(session: AsyncSession) -> list[UUID]:
    ids = await api_keys.project_ids(session, [OURS, THEIRS], creates=True)
    return [one for one in ids if one is not None]


async def person(session: AsyncSession, role: PersonRole | None, project: str = OURS) -> Principal:
    """Somebody with this role in a project."""
    person_id = await people.add(session, LOCAL, name=f"a {role}", email=None, is_administrator=False)
    if role is not None:
        await people.set_role(session, LOCAL, project, person_id, role)
    found = await people.principal_of(session, person_id)
    assert found is not None
    return found


async def made(
    session: AsyncSession, by: Principal, scope: Scope = "read", projects: list[str] | None = None, days: int = 180
) -> MadeKey:
    return await keys.create(session, by, NewKey("a name", scope, projects, days), pepper=PEPPER, now=NOW)


async def principal_of(session: AsyncSession, key: MadeKey, at: datetime = NOW) -> Principal | None:
    text = key_text.parse(key.text)
    assert text is not None
    return await recognised.of_key(session, text, pepper=PEPPER, now=at)


async def entries(session: AsyncSession) -> list[tuple[str, UUID | None, dict[str, str]]]:
    rows = await session.execute(select(AuditRow.action, AuditRow.project_id, AuditRow.details).order_by(AuditRow.id))
    return [(action, project_id, details) for action, project_id, details in rows]


class TestMaking:
    async def test_its_life_is_what_was_asked_up_to_two_years(self, session: AsyncSession) -> None:
        for days in (1, 180, 730):
            assert (await made(session, LOCAL, days=days)).expires_at == NOW + days * DAY
        for days in (0, 731):
            with pytest.raises(InvalidInput):
                await made(session, LOCAL, days=days)

    async def test_half_a_year_unless_told_otherwise(self) -> None:
        assert NewKey("a name", "read", None).days == 180

    async def test_a_person_has_at_most_a_hundred_in_force(self, session: AsyncSession) -> None:
        by = await person(session, "member")
        last = [await made(session, by) for _ in range(100)][-1]

        with pytest.raises(TooManyKeys):
            await made(session, by)
        await keys.revoke(session, by, last.id, now=NOW)
        await made(session, by)

    @pytest.mark.parametrize(
        ("role", "scope", "is_allowed"),
        [
            ("viewer", "read", False),
            ("member", "read", True),
            ("member", "write", True),
            ("member", "admin", False),
            ("admin", "admin", True),
            ("admin", "write", True),
        ],
    )
    async def test_in_a_project_it_needs_the_role(
        self, session: AsyncSession, role: PersonRole, scope: Scope, is_allowed: bool
    ) -> None:
        by = await person(session, role)

        if is_allowed:
            assert (await made(session, by, scope, [OURS])).text
        else:
            with pytest.raises(NotAllowed):
                await made(session, by, scope, [OURS])

    @pytest.mark.parametrize("project", [THEIRS, "no such project"])
    async def test_a_project_that_one_does_not_see_is_none(self, session: AsyncSession, project: str) -> None:
        with pytest.raises(ProjectNotFound):
            await made(session, await person(session, "admin"), "read", [OURS, project])

    async def test_only_an_admin_of_all_projects_makes_an_admin_key_for_all(self, session: AsyncSession) -> None:
        assert (await made(session, LOCAL, "admin")).text
        with pytest.raises(NotAllowed, match="admin of all projects"):
            await made(session, await person(session, "admin"), "admin")

    async def test_a_key_of_nobody_makes_none_for_all_projects(self, session: AsyncSession) -> None:
        key = await principal_of(session, await made(session, LOCAL, "admin", [OURS]))
        assert key is not None
        assert key.person_id is None

        with pytest.raises(NotAllowed, match="name projects"):
            await made(session, key, "read")
        assert (await made(session, key, "read", [OURS])).text

    async def test_an_admin_of_all_projects_names_new_ones(self, session: AsyncSession) -> None:
        key = await principal_of(session, await made(session, LOCAL, "write", ["begun by a key"]))

        [project_id] = await api_keys.project_ids(session, ["begun by a key"], creates=False)
        assert key is not None
        assert project_id is not None
        assert key.may(Right.APPEND, project_id)

    async def test_it_is_written_down_with_its_project_where_it_has_one(
        self, session: AsyncSession, projects: list[UUID]
    ) -> None:
        one = await made(session, LOCAL, "read", [OURS])
        two = await made(session, LOCAL, "read", [OURS, THEIRS])
        every = await made(session, LOCAL, "read")

        found = {details["key"]: (action, project) for action, project, details in await entries(session)}
        assert found[one.id] == ("key created", projects[0])
        assert found[two.id] == found[every.id] == ("key created", None)


class TestShowing:
    async def test_it_opens_until_its_time_is_over(self, session: AsyncSession) -> None:
        key = await made(session, LOCAL, days=1)

        assert await principal_of(session, key, NOW + DAY - timedelta(seconds=1)) is not None
        assert await principal_of(session, key, NOW + DAY) is None

    async def test_it_needs_its_own_secret_scope_and_pepper(self, session: AsyncSession) -> None:
        text = key_text.parse((await made(session, LOCAL)).text)
        assert text is not None
        others = [
            KeyText(text.scope, text.id, key_text.new("read").secret),
            KeyText("admin", text.id, text.secret),
            KeyText(text.scope, key_text.new("read").id, text.secret),
        ]

        for other in others:
            assert await recognised.of_key(session, other, pepper=PEPPER, now=NOW) is None
        assert await recognised.of_key(session, text, pepper=b"another", now=NOW) is None
        assert await recognised.of_key(session, text, pepper=PEPPER, now=NOW) is not None

    @pytest.mark.parametrize(
        ("scope", "rights"),
        [
            ("write", {Right.IDENTITY, Right.APPEND, Right.CURSOR}),
            ("read", {Right.IDENTITY, Right.READ, Right.CURSOR}),
            ("admin", set(Right)),
        ],
    )
    @pytest.mark.parametrize("names", [[OURS], None], ids=["one project", "all"])
    async def test_nobodys_key_opens_what_its_scope_says_where_it_says(
        self, session: AsyncSession, projects: list[UUID], scope: Scope, rights: set[Right], names: list[str] | None
    ) -> None:
        key = await principal_of(session, await made(session, LOCAL, scope, names))

        assert key is not None
        assert {right for right in Right if key.may(right, projects[0])} == rights
        assert {right for right in Right if key.may(right, projects[1])} == (rights if names is None else set())
        assert {right for right in Right if key.may(right, uuid4())} == (rights if names is None else set())


class TestRotation:
    async def test_the_new_one_has_name_scope_projects_owner_and_life_of_the_old_one(
        self, session: AsyncSession, projects: list[UUID]
    ) -> None:
        by = await person(session, "member")
        old = await made(session, by, "write", [OURS], days=30)
        await session.execute(update(ApiKey).where(ApiKey.id == old.id).values(created_at=NOW))

        new = await keys.rotate(session, by, old.id, pepper=PEPPER, now=NOW + 10 * DAY)

        row = await session.get_one(ApiKey, new.id)
        assert (row.name, row.scope, row.project_ids, row.owner_id) == ("a name", "write", [projects[0]], by.person_id)
        assert row.lineage == old.id
        assert new.expires_at == NOW + 40 * DAY
        assert new.id != old.id
        found = [(action, details["before"]) for action, _, details in await entries(session) if "before" in details]
        assert found == [("key rotated", old.id)]

    async def test_there_are_never_three(self, session: AsyncSession) -> None:
        first = await made(session, LOCAL)
        second = await keys.rotate(session, LOCAL, first.id, pepper=PEPPER, now=NOW)

        for one in (first, second):
            with pytest.raises(TooManyKeys):
                await keys.rotate(session, LOCAL, one.id, pepper=PEPPER, now=NOW)
        await keys.revoke(session, LOCAL, first.id, now=NOW)
        assert (await keys.rotate(session, LOCAL, second.id, pepper=PEPPER, now=NOW)).text

    async def test_one_that_has_ended_is_not_rotated(self, session: AsyncSession) -> None:
        revoked, old = await made(session, LOCAL), await made(session, LOCAL, days=1)
        await keys.revoke(session, LOCAL, revoked.id, now=NOW)

        for one, at in ((revoked, NOW), (old, NOW + DAY)):
            with pytest.raises(KeyNotFound):
                await keys.rotate(session, LOCAL, one.id, pepper=PEPPER, now=at)


class TestWhoseItIs:
    async def test_one_sees_ones_own_and_an_admin_what_he_manages(self, session: AsyncSession) -> None:
        member, admin, other = [await person(session, role) for role in ("member", "admin", "member")]
        theirs = await person(session, "admin", THEIRS)
        own = await made(session, member, "read", [OURS])
        everywhere = await made(session, member, "read")
        both = await made(session, LOCAL, "read", [OURS, THEIRS])
        written = {own.id: "own", everywhere.id: "everywhere", both.id: "both"}

        seen = {
            name: sorted(written[key.id] for key in await keys.list_for(session, by) if key.id in written)
            for name, by in {"member": member, "admin": admin, "other": other, "theirs": theirs, "all": LOCAL}.items()
        }

        assert seen == {
            "member": ["everywhere", "own"],
            "admin": ["own"],
            "other": [],
            "theirs": [],
            "all": ["both", "everywhere", "own"],
        }

    async def test_who_does_not_see_it_cannot_end_it(self, session: AsyncSession) -> None:
        key = await made(session, await person(session, "member"), "read", [OURS])

        with pytest.raises(KeyNotFound):
            await keys.revoke(session, await person(session, "member"), key.id, now=NOW)
        with pytest.raises(KeyNotFound):
            await keys.revoke(session, LOCAL, "no such key", now=NOW)
        await keys.revoke(session, await person(session, "admin"), key.id, now=NOW)
        assert await principal_of(session, key) is None

    async def test_an_end_is_written_down_once(self, session: AsyncSession, projects: list[UUID]) -> None:
        key = await made(session, LOCAL, "read", [OURS])
        ended = []

        for _ in "ab":
            await keys.revoke(session, LOCAL, key.id, now=NOW)
            ended.append([entry[1:] for entry in await entries(session) if entry[0] == "key revoked"])

        assert ended == [[(projects[0], {"key": key.id, "name": "a name"})]] * 2
