"""What a key may do is what its scope and its owner's role have in common: over all pairs, and over REST."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from itertools import product
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from factories import make_batch, make_run
from keys_of_tests import bearer, new_key
from noisescale_server.services.access import keys
from noisescale_server.services.access.access import (
    EVERYTHING,
    NOTHING,
    RIGHTS_OF_ROLE,
    RIGHTS_OF_SCOPE,
    Principal,
    Right,
    Rights,
    narrowed,
)
from noisescale_server.services.access.keys import NewKey
from noisescale_server.storage.access import api_keys, people
from principals import OURS, PUBLIC_URL, SECRET, THEIRS, Team, as_browser, log_in, new_person, running_team
from quick import quick_or_slow
from stored_runs import resolved, store_run

# by hand: Identity, Read, Scraping metrics, Cursor, Append, chanGe, Own keys, Delete, Manage
LETTERS = dict(zip("IRSCAGODM", Right, strict=True))
COMMON = {
    ("write", "none"): "",
    ("read", "none"): "",
    ("metrics", "none"): "",
    ("admin", "none"): "",
    ("write", "viewer"): "IC",
    ("read", "viewer"): "IRC",
    ("metrics", "viewer"): "I",
    ("admin", "viewer"): "IRC",
    ("write", "member"): "ICA",
    ("read", "member"): "IRC",
    ("metrics", "member"): "IS",
    ("admin", "member"): "IRSCAGO",
    ("write", "admin"): "ICA",
    ("read", "admin"): "IRC",
    ("metrics", "admin"): "IS",
    ("admin", "admin"): "IRSCAGODM",
}
QUICK = (("write", "viewer"), ("admin", "member"))
"""Those that went wrong, or may most; all others in `make test-full`, and without a server above."""
SCOPES, ROLES = ("write", "read", "metrics", "admin"), ("none", "viewer", "member", "admin")
A, B, NEW = uuid4(), uuid4(), uuid4()


def expected(scope: str, role: str) -> Rights:
    return frozenset(LETTERS[letter] for letter in COMMON[scope, role])


def owner_with(roles: dict[UUID, str], *, is_administrator: bool) -> Principal:
    rights = {one: RIGHTS_OF_ROLE[role] for one, role in roles.items() if role != "none"}
    return Principal("person", "1", "Ada", everywhere=EVERYTHING if is_administrator else NOTHING, rights=rights)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("is_administrator", [False, True])
def test_a_key_may_do_what_its_scope_and_its_owners_role_have_in_common(scope: Any, is_administrator: bool) -> None:
    """All roles in two projects, all choices of projects, and a project that comes later."""
    for (in_a, in_b), named in product(product(ROLES, ROLES), (None, {A}, {B}, {A, B}, {NEW}, set())):
        owner = owner_with({A: in_a, B: in_b}, is_administrator=is_administrator)
        only = None if named is None else frozenset(named)
        everywhere, rights = narrowed(owner, RIGHTS_OF_SCOPE[scope], only)
        key = Principal("key", "k", "k", everywhere, rights, only=only)

        for project, role in ((A, in_a), (B, in_b), (NEW, "none")):
            is_open = named is None or project in named
            wanted = expected(scope, "admin" if is_administrator else role) if is_open else frozenset()
            case = (scope, in_a, in_b, named, project)
            assert key.rights_in(project) == wanted, case
            assert {right for right in Right if key.may(right, project)} == wanted, case
            assert {right for right in Right if project in _places(key, right)} == wanted, case
        assert key.reads_only_its_own is not key.may_anywhere(Right.READ)


def _places(key: Principal, right: Right) -> frozenset[UUID]:
    places = key.projects_with(right)
    return frozenset({A, B, NEW}) if places is None else places


def test_a_right_of_the_scope_alone_or_of_the_role_alone_is_none() -> None:
    for scope, role in product(SCOPES, ROLES[1:]):
        assert expected(scope, role) == RIGHTS_OF_SCOPE[scope] & RIGHTS_OF_ROLE[role]


@pytest.fixture(scope="module")
async def team(new_database: Callable[[], str]) -> AsyncIterator[Team]:
    async with running_team(new_database()) as opened:
        yield opened


async def key_of(team: Team, scope: Any, roles: dict[str, Any], projects: list[str] | None) -> str:
    """The text of a key whose owner has these roles today, whatever they were when it was made."""
    today = {name: role for name, role in roles.items() if role != "none"}
    person_id = await new_person(team.app, "owner", today, is_administrator=True)
    maker = Principal("person", str(person_id), "owner", everywhere=EVERYTHING, person_id=person_id)
    async with team.app.state.sessions.begin() as session:
        new = NewKey(scope, scope, projects)
        made = await keys.create(session, maker, new, pepper=SECRET.encode(), now=datetime.now(UTC))
        await people.change(session, person_id, is_administrator=False, disabled_at=None)
        return made.text


async def tried(team: Team, key: str, project: str) -> Rights:
    """The rights that the API grants the key in a project, each tried by a request that needs just that one."""
    run_id = await store_run(team.app, project=project, **resolved())
    async with team.app.state.sessions.begin() as session:
        # the cursor of a run that the key has not written to is nobody's business
        await api_keys.note_author(session, run_id, key.split("_")[2])
    async with team.client("administrator") as admin:
        sweep = (await admin.post("/api/v1/sweeps", json={"project": project})).json()["id"]
    person_id = await new_person(team.app, "somebody", {})
    requests: dict[Right, tuple[str, str, Any]] = {
        Right.READ: ("GET", f"/runs/{run_id}", None),
        Right.CURSOR: ("GET", f"/runs/{run_id}/status", None),
        Right.APPEND: ("POST", "/sweeps", {"project": project}),
        Right.CHANGE: ("PATCH", f"/runs/{run_id}", {"name": "renamed"}),
        Right.OWN_KEYS: ("POST", "/keys", {"name": "k", "scope": "read", "projects": [project]}),
        Right.DELETE: ("DELETE", f"/sweeps/{sweep}", None),
        Right.MANAGE: ("PUT", f"/projects/{project}/members/{person_id}", {"role": "viewer"}),
    }
    granted = set()
    async with team.client("nobody") as client:
        for right, (method, path, body) in requests.items():
            answer = await client.request(method, f"/api/v1{path}", json=body, headers=bearer(key))
            assert answer.status_code < 500, answer.text
            granted |= {right} if answer.status_code < 400 else set()
        scrape = await client.get("/metrics", headers=bearer(key))
        granted |= {Right.METRICS} if scrape.status_code == 200 and str(run_id) in scrape.text else set()
    return frozenset(granted)


@pytest.mark.parametrize("projects", [None, [OURS, THEIRS]], ids=["all its owner may enter", "two by name"])
@pytest.mark.parametrize("pair", quick_or_slow(COMMON, QUICK), ids="×".join)
async def test_the_api_grants_just_that(team: Team, pair: tuple[str, str], projects: list[str] | None) -> None:
    """A member of one project with any role in another: neither role does anything in the other project."""
    scope, role = pair
    key = await key_of(team, scope, {OURS: role, THEIRS: "member"}, projects)

    assert await tried(team, key, OURS) == expected(scope, role) - {Right.IDENTITY}
    assert await tried(team, key, THEIRS) == expected(scope, "member") - {Right.IDENTITY}


async def test_a_member_of_one_project_who_views_another_makes_no_key_that_reads_the_other(team: Team) -> None:
    run_id = await store_run(team.app, project=OURS, **resolved())
    person_id = await new_person(team.app, "both", {THEIRS: "member", OURS: "viewer"})
    async with team.client("nobody") as client:
        cookie = await log_in(team.app, person_id)
        made = await client.post("/api/v1/keys", json={"name": "job", "scope": "write"}, headers=as_browser(cookie))
        key = bearer(made.json()["key"])
        answers = [
            await client.get(f"/api/v1{path}", headers=key)
            for path in ("/runs", f"/runs/{run_id}", f"/runs/{run_id}/metrics", "/projects", "/sweeps", "/comparison")
        ]
        me = (await client.get("/api/v1/me", headers=key)).json()

    assert made.status_code == 201
    assert [answer.status_code for answer in answers] == [403] * len(answers)
    assert me["projects"] == [
        {"project": OURS, "rights": ["identity", "cursor"]},
        {"project": THEIRS, "rights": ["identity", "cursor", "append"]},
    ]


async def test_demoting_a_member_makes_no_reader_of_the_jobs_key(team: Team) -> None:
    person_id = await new_person(team.app, "demoted", {OURS: "member"})
    cookie, stream_id = as_browser(await log_in(team.app, person_id)), uuid4()
    other = await store_run(team.app, project=OURS, **resolved())
    body = make_batch(run=make_run(project=OURS))
    async with team.client("nobody") as client, team.client("admin") as admin:
        made = await client.post("/api/v1/keys", json={"name": "job", "scope": "write"}, headers=cookie)
        key = bearer(made.json()["key"])
        before = await client.post(f"/api/v1/streams/{stream_id}/batches", json=body, headers=key)
        await admin.put(f"/api/v1/projects/{OURS}/members/{person_id}", json={"role": "viewer"})
        reads = [await client.get(f"/api/v1{path}", headers=key) for path in ("/runs", f"/runs/{other}", "/projects")]
        after = await client.post(f"/api/v1/streams/{stream_id}/batches", json=body, headers=key)
        own = await client.get(f"/api/v1/streams/{stream_id}", headers=key)
        page = await client.get("/", headers=key)

    assert (before.status_code, after.status_code, own.status_code) == (200, 403, 200)
    assert [answer.status_code for answer in (*reads, page)] == [403] * 4


class TestAKeyForSomeProjects:
    """An admin key that names projects does nothing about keys that reach further, though one person owns both."""

    @pytest.fixture
    async def keys_of_one_person(self, team: Team) -> tuple[str, str]:
        person_id = await new_person(team.app, "of two projects", {OURS: "admin", THEIRS: "admin"})
        cookie = as_browser(await log_in(team.app, person_id))
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=team.app), base_url=PUBLIC_URL, headers=cookie
        ) as client:
            return await new_key(client, "admin", OURS), await new_key(client, "admin", OURS, THEIRS)

    async def test_it_makes_none_for_all_projects_of_its_owner(
        self, team: Team, keys_of_one_person: tuple[str, str]
    ) -> None:
        narrow, _ = keys_of_one_person
        async with team.client("nobody") as client:
            answers = [
                await client.post("/api/v1/keys", json={"name": "k", "scope": scope}, headers=bearer(narrow))
                for scope in SCOPES
            ]

        assert [answer.status_code for answer in answers] == [403] * len(SCOPES)

    async def test_it_neither_sees_nor_rotates_nor_ends_the_wider_one(
        self, team: Team, keys_of_one_person: tuple[str, str]
    ) -> None:
        narrow, wide = keys_of_one_person
        wide_id = wide.split("_")[2]
        async with team.client("nobody") as client:
            listed = (await client.get("/api/v1/keys", headers=bearer(narrow))).json()["keys"]
            rotated = await client.post(f"/api/v1/keys/{wide_id}/rotation", headers=bearer(narrow))
            ended = await client.delete(f"/api/v1/keys/{wide_id}", headers=bearer(narrow))
            own = await client.post(f"/api/v1/keys/{narrow.split('_')[2]}/rotation", headers=bearer(narrow))

        assert wide_id not in {one["id"] for one in listed}
        assert (rotated.status_code, ended.status_code, own.status_code) == (404, 404, 201)
