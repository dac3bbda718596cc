"""Taking people out again: what they had ends at once and for good, and somebody is left who can let others in."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI

from app_in_process import running_app
from keys_of_tests import bearer, new_key
from noisescale_server.services.access import keys, offboarding, sessions
from noisescale_server.services.access.access import LOCAL
from noisescale_server.services.access.keys import NewKey
from noisescale_server.services.access.offboarding import PersonChange
from noisescale_server.services.access.people import principal_of
from noisescale_server.services.platform.errors import LastAdministrator, NotAllowed
from noisescale_server.storage.access import people
from principals import OURS, PUBLIC_URL, SECRET, THEIRS, Team, as_browser, log_in, new_person, running_team
from problems import assert_problem

ADMINISTRATOR = {"is_administrator": True}
OWN_PAGE = {"Origin": PUBLIC_URL}


@pytest.fixture(scope="module")
async def team(new_database: Callable[[], str]) -> AsyncIterator[Team]:
    async with running_team(new_database()) as opened:
        yield opened


@pytest.fixture
async def administrator(team: Team) -> AsyncIterator[httpx.AsyncClient]:
    async with team.client("administrator") as opened:
        yield opened


def client_with(app: FastAPI, headers: dict[str, str]) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=PUBLIC_URL, headers=headers)


async def status_of(app: FastAPI, headers: dict[str, str], path: str = "/api/v1/runs") -> int:
    async with client_with(app, headers) as client:
        return (await client.get(path)).status_code


async def leaver(team: Team, roles: dict[str, Any], *projects: str, scope: str = "read") -> tuple[UUID, Any, Any]:
    """Somebody with these roles: id, headers of their browser, and of a key of theirs for these projects."""
    person_id = await new_person(team.app, "leaver", roles)
    browser = as_browser(await log_in(team.app, person_id))
    async with client_with(team.app, browser) as client:
        key = await new_key(client, scope, *projects)
    return person_id, browser, bearer(key)


async def change(client: httpx.AsyncClient, person_id: UUID, **wanted: bool) -> httpx.Response:
    return await client.patch(f"/api/v1/people/{person_id}", json=wanted)


class TestDisabling:
    async def test_logins_and_keys_end_at_once(self, team: Team, administrator: httpx.AsyncClient) -> None:
        person_id, browser, key = await leaver(team, {OURS: "member"})
        before = [await status_of(team.app, headers) for headers in (browser, key)]

        answer = await change(administrator, person_id, is_disabled=True)
        after = [await status_of(team.app, headers) for headers in (browser, key)]

        assert answer.status_code == 200, answer.text
        assert answer.json()["disabled_at"] is not None
        assert (before, after) == ([200, 200], [401, 401])

    async def test_what_has_ended_does_not_come_back_with_the_person(
        self, team: Team, administrator: httpx.AsyncClient
    ) -> None:
        person_id, browser, key = await leaver(team, {OURS: "member"}, OURS)
        link = (await administrator.post(f"/api/v1/people/{person_id}/login-links")).json()["url"]

        await change(administrator, person_id, is_disabled=True)
        enabled = await change(administrator, person_id, is_disabled=False)
        async with client_with(team.app, {}) as client:
            entered = await client.post("/login", data={"link": link.partition("link=")[2]}, headers=OWN_PAGE)
        again = await log_in(team.app, person_id)

        assert enabled.json()["disabled_at"] is None
        assert [await status_of(team.app, headers) for headers in (browser, key)] == [401, 401]
        assert entered.status_code == 403
        assert await status_of(team.app, as_browser(again)) == 200

    async def test_who_is_disabled_gets_neither_a_link_nor_a_session(
        self, team: Team, administrator: httpx.AsyncClient
    ) -> None:
        person_id = await new_person(team.app, "gone", {OURS: "viewer"})
        await change(administrator, person_id, is_disabled=True)

        answer = await administrator.post(f"/api/v1/people/{person_id}/login-links")
        async with team.app.state.sessions.begin() as session:
            cookie = await sessions.log_in(session, person_id, now=datetime.now(UTC), how="test")

        assert_problem(answer, 403, "not-allowed")
        assert cookie is None

    async def test_another_process_ends_the_login_at_once_and_the_key_within_five_seconds(
        self, new_database: Callable[[], str]
    ) -> None:
        url, clock = new_database(), [0.0]
        settings = {"auth": "required", "secret_key": SECRET, "public_url": PUBLIC_URL, "local_token": None}
        async with running_team(url) as team, running_app(url, **settings) as other:
            other.state.credentials._now = lambda: clock[0]
            person_id, browser, key = await leaver(team, {OURS: "member"})
            before = [await status_of(other, headers) for headers in (browser, key)]
            async with team.client("administrator") as administrator:
                await change(administrator, person_id, is_disabled=True)
            at_once = await status_of(other, browser)
            clock[0] = 5.0
            later = await status_of(other, key)

        assert (before, at_once, later) == ([200, 200], 401, 401)

    async def test_a_key_that_is_looked_up_while_its_owner_is_disabled_is_not_remembered(self, team: Team) -> None:
        """Looked up before the commit, answered after it: remembering it would keep it for five seconds."""
        person_id, _, key = await leaver(team, {OURS: "member"})
        await status_of(team.app, key)
        team.app.state.credentials.forget()
        async with team.app.state.sessions.begin() as session:
            await offboarding.change(session, LOCAL, person_id, PersonChange(is_disabled=True), now=datetime.now(UTC))
            team.app.state.credentials.forget_after(session)
            during = await status_of(team.app, key)
        after = await status_of(team.app, key)

        assert (during, after) == (200, 401)

    async def test_what_is_left_of_somebody_who_is_disabled_opens_nothing(self, team: Team) -> None:
        """As where a session began while its person was disabled by hand."""
        person_id, browser, key = await leaver(team, {OURS: "member"})
        async with team.app.state.sessions.begin() as session:
            await people.change(session, person_id, is_administrator=False, disabled_at=datetime.now(UTC))

        assert [await status_of(team.app, headers) for headers in (browser, key)] == [401, 401]

    async def test_a_request_that_was_let_in_before_makes_no_key_afterwards(self, team: Team) -> None:
        person_id = await new_person(team.app, "leaving", {OURS: "member"})
        async with team.app.state.sessions() as session:
            let_in = await principal_of(session, person_id)
        async with team.app.state.sessions.begin() as session:
            await offboarding.change(session, LOCAL, person_id, PersonChange(is_disabled=True), now=datetime.now(UTC))
        assert let_in is not None
        new = NewKey("k", "write", [OURS])

        with pytest.raises(NotAllowed, match="disabled"):
            async with team.app.state.sessions.begin() as session:
                await keys.create(session, let_in, new, pepper=SECRET.encode(), now=datetime.now(UTC))

    async def test_somebody_who_is_nobody_is_404(self, administrator: httpx.AsyncClient) -> None:
        assert_problem(await change(administrator, uuid4(), is_disabled=True), 404, "person-not-found")

    async def test_disabled_twice_is_disabled_since_the_first_time(
        self, team: Team, administrator: httpx.AsyncClient
    ) -> None:
        person_id = await new_person(team.app, "gone", {})

        first, second = [await change(administrator, person_id, is_disabled=True) for _ in "ab"]

        assert first.json() == second.json()


class TestLeavingAProject:
    async def test_a_key_for_it_alone_ends_for_good(self, team: Team, administrator: httpx.AsyncClient) -> None:
        person_id, _, key = await leaver(team, {OURS: "member"}, OURS)
        member = f"/api/v1/projects/{OURS}/members/{person_id}"

        await administrator.delete(member)
        gone = await status_of(team.app, key)
        await administrator.put(member, json={"role": "member"})

        assert (gone, await status_of(team.app, key)) == (401, 401)

    async def test_a_key_for_others_too_opens_these_alone_from_then_on(
        self, team: Team, administrator: httpx.AsyncClient
    ) -> None:
        person_id, _, key = await leaver(team, {OURS: "member", THEIRS: "member"}, OURS, THEIRS)
        member = f"/api/v1/projects/{OURS}/members/{person_id}"

        await administrator.delete(member)
        await administrator.put(member, json={"role": "member"})
        async with client_with(team.app, key) as client:
            me = (await client.get("/api/v1/me")).json()

        assert [one["project"] for one in me["projects"]] == [THEIRS]

    async def test_a_key_for_all_that_its_owner_may_enter_ends_with_the_last_role(
        self, team: Team, administrator: httpx.AsyncClient
    ) -> None:
        person_id, browser, key = await leaver(team, {OURS: "member", THEIRS: "member"})
        places = [f"/api/v1/projects/{project}/members/{person_id}" for project in (OURS, THEIRS)]

        await administrator.delete(places[0])
        with_one_role = await status_of(team.app, key)
        await administrator.delete(places[1])
        await administrator.put(places[0], json={"role": "member"})

        assert (with_one_role, await status_of(team.app, key), await status_of(team.app, browser)) == (200, 401, 200)

    async def test_a_key_for_other_projects_is_not_touched(self, team: Team, administrator: httpx.AsyncClient) -> None:
        person_id, _, key = await leaver(team, {OURS: "member", THEIRS: "member"}, THEIRS)

        await administrator.delete(f"/api/v1/projects/{OURS}/members/{person_id}")
        entries = (await administrator.get("/api/v1/audit")).json()["entries"]
        key_id = key["Authorization"].split("_")[2]

        assert [one["action"] for one in entries if one["details"].get("key") == key_id] == ["key created"]

    async def test_keys_of_others_stay(self, team: Team, administrator: httpx.AsyncClient) -> None:
        person_id, _, _ = await leaver(team, {OURS: "member"}, OURS)
        _, _, key = await leaver(team, {OURS: "member"}, OURS)

        await administrator.delete(f"/api/v1/projects/{OURS}/members/{person_id}")

        assert await status_of(team.app, key) == 200

    async def test_an_admin_of_all_projects_keeps_keys_where_no_role_is_needed(
        self, team: Team, administrator: httpx.AsyncClient
    ) -> None:
        person_id, _, key = await leaver(team, {OURS: "member"}, OURS)
        await change(administrator, person_id, **ADMINISTRATOR)

        await administrator.delete(f"/api/v1/projects/{OURS}/members/{person_id}")
        kept = await status_of(team.app, key)
        await change(administrator, person_id, is_administrator=False)

        assert (kept, await status_of(team.app, key)) == (200, 401)


class TestAdministration:
    async def test_it_is_given_and_taken_away(self, team: Team, administrator: httpx.AsyncClient) -> None:
        person_id = await new_person(team.app, "risen", {OURS: "viewer"})
        browser = as_browser(await log_in(team.app, person_id))
        everybodys = "/api/v1/people"
        statuses = []
        for wanted in (True, False):
            await change(administrator, person_id, is_administrator=wanted)
            statuses.append(await status_of(team.app, browser, everybodys))

        assert statuses == [200, 403]
        assert await status_of(team.app, browser) == 200

    async def test_an_admin_who_was_taken_out_meanwhile_takes_nobody_out(self, team: Team) -> None:
        person_id = await new_person(team.app, "falling", {}, is_administrator=True)
        other = await new_person(team.app, "other", {})
        async with team.app.state.sessions() as session:
            let_in = await principal_of(session, person_id)
        now = datetime.now(UTC)
        async with team.app.state.sessions.begin() as session:
            await offboarding.change(session, LOCAL, person_id, PersonChange(is_administrator=False), now=now)
        assert let_in is not None

        with pytest.raises(NotAllowed, match="none any more"):
            async with team.app.state.sessions.begin() as session:
                await offboarding.change(session, let_in, other, PersonChange(is_disabled=True), now=now)

    @pytest.mark.parametrize("principal", ["admin", "admin key", "their admin", "member"])
    async def test_an_admin_of_one_project_changes_nobody(self, team: Team, principal: str) -> None:
        person_id = await new_person(team.app, "somebody", {OURS: "viewer"})
        async with team.client(principal) as client:
            answers = [await change(client, person_id, **{name: True}) for name in ("is_disabled", "is_administrator")]

        assert [answer.status_code for answer in answers] == [403, 403]

    async def test_what_was_done_is_written_down(self, team: Team, administrator: httpx.AsyncClient) -> None:
        person_id, _, key = await leaver(team, {OURS: "member"}, OURS)
        for wanted in ({"is_administrator": True}, {"is_administrator": False}, {"is_disabled": True}):
            await change(administrator, person_id, **wanted)
        await change(administrator, person_id, is_disabled=False)

        entries = (await administrator.get("/api/v1/audit")).json()["entries"]
        about = [one["action"] for one in entries if one["details"].get("person") == str(person_id)]
        ended = [one for one in entries if one["details"].get("key") == key["Authorization"].split("_")[2]]

        assert about[:4] == [
            "person enabled",
            "person disabled",
            "administration taken away",
            "administration given",
        ]
        assert ended[0]["action"] == "key revoked"
        assert {one["actor_name"] for one in entries[:4]} == {"administrator"}


class TestTheLastAdministrator:
    """On a server of its own, where there is just one."""

    @pytest.fixture
    async def app(self, database_url: str) -> AsyncIterator[FastAPI]:
        settings = {"auth": "required", "secret_key": SECRET, "public_url": PUBLIC_URL, "local_token": None}
        async with running_app(database_url, **settings) as created:
            yield created

    @pytest.mark.parametrize("wanted", [{"is_disabled": True}, {"is_administrator": False}], ids=str)
    async def test_it_can_be_neither_disabled_nor_demoted(self, app: FastAPI, wanted: dict[str, bool]) -> None:
        last = await new_person(app, "Ada", {}, is_administrator=True)
        disabled = await new_person(app, "long gone", {}, is_administrator=True)
        browser = as_browser(await log_in(app, last))
        async with client_with(app, browser) as client:
            assert (await change(client, disabled, is_disabled=True)).status_code == 200
            refused = await change(client, last, **wanted)
            me = (await client.get("/api/v1/me")).json()
            await new_person(app, "Grace", {}, is_administrator=True)
            allowed = await change(client, last, **wanted)

        assert_problem(refused, 409, "last-administrator")
        assert "Ada" in refused.json()["detail"]
        assert "manage" in me["everywhere"]
        assert allowed.status_code == 200

    @pytest.mark.parametrize("wanted", [{"is_disabled": True}, {"is_administrator": False}], ids=str)
    async def test_of_two_who_take_each_other_out_at_once_one_stays(
        self, app: FastAPI, wanted: dict[str, bool]
    ) -> None:
        """Each looks before the other has committed; without a lock both would find that another is left."""
        change_ = PersonChange(**wanted)
        pair = [await new_person(app, name, {}, is_administrator=True) for name in ("Ada", "Grace")]
        is_looked = asyncio.Event()

        async def first() -> None:
            async with app.state.sessions.begin() as session:
                await offboarding.change(session, LOCAL, pair[0], change_, now=datetime.now(UTC))
                is_looked.set()
                # the second one is on its way, and waits for the rows of this one
                await asyncio.sleep(0.3)

        async def second() -> None:
            await is_looked.wait()
            async with app.state.sessions.begin() as session:
                await offboarding.change(session, LOCAL, pair[1], change_, now=datetime.now(UTC))

        outcomes = await asyncio.gather(first(), second(), return_exceptions=True)
        async with app.state.sessions() as session:
            left = await people.hold_administrators(session)

        assert outcomes[0] is None
        assert isinstance(outcomes[1], LastAdministrator)
        assert left == {pair[1]}

    async def test_many_requests_at_once_leave_one(self, app: FastAPI) -> None:
        crowd = [await new_person(app, f"admin {number}", {}, is_administrator=True) for number in range(6)]
        browsers = [as_browser(await log_in(app, one)) for one in crowd]

        async def take_out(number: int) -> int:
            async with client_with(app, browsers[number]) as client:
                return (await change(client, crowd[(number + 1) % len(crowd)], is_administrator=False)).status_code

        statuses = await asyncio.gather(*(take_out(number) for number in range(len(crowd))))
        async with app.state.sessions() as session:
            left = await people.hold_administrators(session)

        # who has been taken out already is told 403
        assert len(left) >= 1
        assert statuses.count(200) == len(crowd) - len(left)
        assert set(statuses) <= {200, 403, 409}
