"""Keys: their text, what they open, and how they end."""

import re
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select, text, update

from app_in_process import AS_LOCAL_USER, client_of, running_app
from keys_of_tests import bearer, new_key
from noisescale_server.api.access import credentials as auth_credentials
from noisescale_server.services.access import key_text
from noisescale_server.storage.access.tables import ApiKey
from principals import OURS, THEIRS, Team, running_team
from problems import assert_problem

SECRET = "a secret of tests that every process of a server has in common"


@pytest.fixture(scope="module")
async def app(new_database: Callable[[], str]) -> AsyncIterator[FastAPI]:
    async with running_app(new_database(), secret_key=SECRET) as created:
        yield created


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as opened:
        yield opened


class TestText:
    def test_a_key_says_its_scope_and_id_and_ends_with_a_checksum(self) -> None:
        key = key_text.new("write")

        assert re.fullmatch(rf"ns_w_{key.id}_{key.secret}_[0-9A-Za-z]{{6}}", key.text)
        assert key_text.parse(key.text) == key

    def test_two_keys_differ(self) -> None:
        assert key_text.new("read").text != key_text.new("read").text

    @pytest.mark.parametrize("position", [0, 3, 8, 20, 60, -1])
    def test_a_changed_character_is_noticed_without_a_database(self, position: int) -> None:
        text = key_text.new("admin").text
        other = "x" if text[position] != "x" else "y"

        assert key_text.parse(text[:position] + other + text[position:][1:]) is None

    def test_its_repr_does_not_show_the_secret(self) -> None:
        key = key_text.new("admin")

        assert key.secret not in repr(key)
        assert key.secret not in key.shown

    def test_the_digest_depends_on_the_pepper(self) -> None:
        assert key_text.keyed_hash(b"one", "secret") != key_text.keyed_hash(b"other", "secret")


async def test_the_database_holds_no_secret(app: FastAPI, client: httpx.AsyncClient) -> None:
    key = await new_key(client, "write", OURS)
    async with app.state.sessions() as session:
        rows = (await session.execute(text("SELECT api_key::text FROM api_key"))).scalars().all()
        entries = (await session.execute(text("SELECT audit::text FROM audit"))).scalars().all()

    assert key.split("_")[2] in "".join(rows)
    assert key.split("_")[3] not in "".join([*rows, *entries])


async def test_a_list_of_keys_shows_no_secret_and_when_each_was_used(client: httpx.AsyncClient) -> None:
    key = await new_key(client, "read", OURS)
    await client.get("/api/v1/runs", headers=bearer(key))

    answer = await client.get("/api/v1/keys")

    (listed,) = [one for one in answer.json()["keys"] if one["id"] == key.split("_")[2]]
    assert key.split("_")[3] not in answer.text
    assert (listed["scope"], listed["projects"], listed["is_active"]) == ("read", [OURS], True)
    assert listed["last_used_at"] is not None
    assert listed["last_used_from"] == "127.0.0.1"


async def test_a_revoked_key_is_refused_at_once_here(client: httpx.AsyncClient) -> None:
    key = await new_key(client, "read", OURS)
    before = await client.get("/api/v1/runs", headers=bearer(key))

    await client.delete(f"/api/v1/keys/{key.split('_')[2]}")

    assert before.status_code == 200
    assert_problem(await client.get("/api/v1/runs", headers=bearer(key)), 401, "not-authenticated")


@pytest.mark.slow
async def test_another_server_process_refuses_a_revoked_key_after_five_seconds(
    new_database: Callable[[], str],
) -> None:
    url = new_database()
    clock = [0.0]
    async with (
        running_app(url, secret_key=SECRET) as one,
        running_app(url, secret_key=SECRET) as other,
        client_of(one) as first,
        client_of(other) as second,
    ):
        other.state.credentials._now = lambda: clock[0]
        key = await new_key(first, "read", OURS)
        before = await second.get("/api/v1/runs", headers=bearer(key))
        await first.delete(f"/api/v1/keys/{key.split('_')[2]}")

        clock[0] = auth_credentials.REMEMBER_SECONDS
        after = await second.get("/api/v1/runs", headers=bearer(key))

    assert auth_credentials.REMEMBER_SECONDS <= 5
    assert (before.status_code, after.status_code) == (200, 401)


async def test_a_key_ends_after_half_a_year_unless_it_is_told_otherwise(client: httpx.AsyncClient) -> None:
    answer = await client.post("/api/v1/keys", json={"name": "job", "scope": "write", "projects": [OURS]})

    left = datetime.fromisoformat(answer.json()["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=179) < left <= timedelta(days=180)


@pytest.mark.parametrize("days", [0, -1, 731])
async def test_a_life_beyond_the_limits_is_refused(client: httpx.AsyncClient, days: int) -> None:
    body = {"name": "job", "scope": "write", "projects": [OURS], "days": days}

    assert_problem(await client.post("/api/v1/keys", json=body), 422, "invalid-input", field="days")


class TestRotation:
    async def test_both_keys_are_in_force_until_the_old_one_is_revoked(self, client: httpx.AsyncClient) -> None:
        old = await new_key(client, "read", OURS)

        answer = await client.post(f"/api/v1/keys/{old.split('_')[2]}/rotation")
        new = answer.json()["key"]
        both = [(await client.get("/api/v1/runs", headers=bearer(key))).status_code for key in (old, new)]
        await client.delete(f"/api/v1/keys/{old.split('_')[2]}")
        left = [(await client.get("/api/v1/runs", headers=bearer(key))).status_code for key in (old, new)]

        assert (both, left) == ([200, 200], [401, 200])

    async def test_a_third_key_waits_until_one_of_the_two_is_revoked(self, client: httpx.AsyncClient) -> None:
        old = await new_key(client, "read", OURS)
        await client.post(f"/api/v1/keys/{old.split('_')[2]}/rotation")

        answer = await client.post(f"/api/v1/keys/{old.split('_')[2]}/rotation")

        assert_problem(answer, 409, "too-many-keys")

    async def test_a_job_reads_back_its_streams_with_the_new_key(self, client: httpx.AsyncClient) -> None:
        from uuid import uuid4

        from factories import make_batch, make_run

        old = await new_key(client, "write", OURS)
        stream = uuid4()
        body = make_batch(run=make_run(project=OURS))
        await client.post(f"/api/v1/streams/{stream}/batches", json=body, headers=bearer(old))
        new = (await client.post(f"/api/v1/keys/{old.split('_')[2]}/rotation")).json()["key"]
        stranger = await new_key(client, "write", OURS)

        answers = [await client.get(f"/api/v1/streams/{stream}", headers=bearer(key)) for key in (new, stranger)]

        assert [answer.status_code for answer in answers] == [200, 404]


async def test_wrong_keys_without_end_are_429(new_database: Callable[[], str]) -> None:
    async with running_app(new_database(), secret_key=SECRET) as app, client_of(app) as client:
        wrong = [
            await client.get("/api/v1/runs", headers=bearer(key_text.new("read").text))
            for _ in range(auth_credentials.WRONG_KEYS_PER_MINUTE + 1)
        ]
        right = await client.get("/api/v1/runs", headers=AS_LOCAL_USER)

    assert {answer.status_code for answer in wrong[:-1]} == {401}
    assert_problem(wrong[-1], 429, "too-many-attempts")
    assert int(wrong[-1].headers["retry-after"]) > 0
    assert right.status_code == 200


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic dTpw", "Bearer é", "bearer ns_w", "Bearer \x7f"])
async def test_a_header_that_is_no_key_is_401(client: httpx.AsyncClient, header: str) -> None:
    answer = await client.get("/api/v1/runs", headers={"Authorization": header.encode("latin-1")})

    assert_problem(answer, 401, "not-authenticated")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.fixture(scope="module")
async def team(new_database: Callable[[], str]) -> AsyncIterator[Team]:
    async with running_team(new_database()) as opened:
        yield opened


class TestWhoMakesKeys:
    async def test_a_member_makes_keys_for_jobs_and_scripts_and_none_that_manage(self, team: Team) -> None:
        statuses = {}
        async with team.client("member") as member:
            for scope in key_text.SCOPES:
                body = {"name": "k", "scope": scope, "projects": [OURS]}
                statuses[scope] = (await member.post("/api/v1/keys", json=body)).status_code

        assert statuses == {"write": 201, "read": 201, "metrics": 201, "admin": 403}

    async def test_a_project_of_others_is_as_good_as_none(self, team: Team) -> None:
        async with team.client("member") as member:
            theirs = await member.post("/api/v1/keys", json={"name": "k", "scope": "read", "projects": [THEIRS]})
            nobodys = await member.post("/api/v1/keys", json={"name": "k", "scope": "read", "projects": ["no such"]})

        assert_problem(theirs, 404, "project-not-found")
        assert_problem(nobodys, 404, "project-not-found")

    async def test_a_key_opens_no_more_than_its_owner_may_today(self, team: Team) -> None:
        async with team.client("member") as member:
            key = await new_key(member, "read")
            me = (await member.get("/api/v1/me")).json()
            before = await member.get(f"/api/v1/projects/{OURS}/tasks", headers=bearer(key))
        async with team.client("admin") as admin:
            gone = await admin.delete(f"/api/v1/projects/{OURS}/members/{me['person_id']}")
            after = await admin.get(f"/api/v1/projects/{OURS}/tasks", headers=bearer(key) | {"Cookie": ""})

        assert gone.status_code == 204
        assert (before.status_code, after.status_code) == (200, 401)

    async def test_what_was_done_is_written_down_for_those_who_manage(self, team: Team) -> None:
        async with team.client("admin") as admin:
            key = await new_key(admin, "read", OURS)
            entries = (await admin.get("/api/v1/audit")).json()["entries"]
        async with team.client("their admin") as other:
            others = (await other.get("/api/v1/audit")).json()["entries"]

        made = next(one for one in entries if one["action"] == "key created")
        assert (made["actor_name"], made["details"]["key"]) == ("admin", key.split("_")[2])
        assert key not in str(entries)
        assert all(one["details"].get("key") != key.split("_")[2] for one in others)


async def test_last_use_is_noted_at_most_once_a_minute(app: FastAPI, client: httpx.AsyncClient) -> None:
    key = await new_key(client, "read", OURS)
    long_ago = datetime.now(UTC) - timedelta(seconds=30)
    async with app.state.sessions.begin() as session:
        mine = ApiKey.id == key.split("_")[2]
        await session.execute(update(ApiKey).where(mine).values(last_used_at=long_ago))

    await client.get("/api/v1/runs", headers=bearer(key))

    async with app.state.sessions() as session:
        assert await session.scalar(select(ApiKey.last_used_at).where(mine)) == long_ago
