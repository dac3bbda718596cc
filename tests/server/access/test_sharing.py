"""A link shows exactly one run for some time, a public project is read by everybody, and nothing else is open."""

import re
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID, uuid4

import httpx
import pytest
from sqlalchemy import text

from factories import make_batch, make_groups, make_measurements, make_run
from noisescale_server.api.access.route_rights import RIGHTS
from noisescale_server.services.access import offboarding, sharing
from noisescale_server.services.access.access import LOCAL
from noisescale_server.services.access.offboarding import PersonChange
from noisescale_server.services.ingest import going_back
from principals import OURS, PUBLIC_URL, THEIRS, Team, as_browser, log_in, new_person, running_team
from problems import assert_problem

LINK_COOKIE = "__Host-noisescale_link"

# fmt: off
OPEN = """
                                                link everybody
GET    /runs                                     -      +
GET    /runs/summary?by=task                     -      +
GET    /runs/sparklines?ids={run_id}             -      +
GET    /runs/recommendations?ids={run_id}        -      +
GET    /runs/{run_id}                            +      +
GET    /runs/{run_id}/recommendation             +      +
GET    /runs/{run_id}/noise-scale                +      +
GET    /runs/{run_id}/groups                     +      +
GET    /runs/{run_id}/metrics                    +      +
GET    /runs/{run_id}/streams                    +      +
GET    /runs/{run_id}/streams/{stream_id}/lost   -      +
GET    /runs/{run_id}/forecast                   +      +
GET    /runs/{run_id}/learning-rate              +      +
GET    /runs/{run_id}/time                       +      +
GET    /reference-values                         -      +
GET    /published-sweeps                         -      +
GET    /recommendation                           -      +
GET    /projects                                 -      +
GET    /projects/{project:path}/calibrations     -      +
GET    /projects/{project:path}/baseline         -      +
GET    /projects/{project:path}/defaults         -      +
GET    /projects/{project:path}/tasks            -      +
GET    /projects/{project:path}/tasks/{task:path}/recommendation
                                                 -      +
GET    /sweeps                                   -      +
GET    /sweeps/critical-batches?ids={sweep_id}   -      +
GET    /sweeps/{sweep_id}                        -      +
GET    /sweeps/{sweep_id}/critical-batch         -      +
GET    /sweeps/{sweep_id}/plan                   -      +
GET    /sweeps/{sweep_id}/quality                -      +
GET    /sweeps/{sweep_id}/learning-rates         -      +
GET    /sweeps/{sweep_id}/forecast               -      +
GET    /sweeps/{sweep_id}/search-cost            -      +
GET    /reproductions                            -      +
GET    /reproductions/{reproduction_id}          -      0
GET    /comparison                               -      +
GET    /comparison/runs?run={run_id}             -      +
GET    /comparison/sized-tasks                   -      +
GET    /comparison/model-size?project=ours&task=digits
                                                 -      +
GET    /comparison/temperature?project=ours&task=digits
                                                 -      +
GET    /tradeoff?run_id={run_id}                 -      +
GET    /cost/leaderboard?target=1                -      +
GET    /cost/submissions                         -      +
GET    /cost/growth                              -      +
"""
PAGES = """
GET    /                                         -      +
GET    /runs                                     -      +
GET    /runs/{run_id}                            +      +
GET    /runs/{run_id}/report                     +      +
GET    /runs/{sibling_id}                        -      +
GET    /compare                                  -      +
GET    /sweeps                                   -      +
GET    /learn                                    -      +
GET    /settings                                 -      -
GET    /metrics                                  -      -
GET    /docs                                     -      -
GET    /openapi                                  -      -
GET    /openapi.json                             -      -
GET    /_dash-layout                             +      +
GET    /_dash-dependencies                       +      +
GET    /nothing                                  -      -
"""
# fmt: on


def rows(table: str) -> list[tuple[str, str, str]]:
    """(method, address, marks) of the lines; a long address has its marks on the next line."""
    joined = re.sub(r"\n +(?=[+0-])", " ", table)
    found = [line.split() for line in joined.splitlines() if re.match(r"[A-Z]+ +/", line)]
    return [(line[0], line[1], "".join(line[2:])) for line in found]


CLOSED = sorted(set(RIGHTS) - {(method, address.partition("?")[0]) for method, address, _ in rows(OPEN)})
"""Every other operation of the API, those to come as well."""


class Shared:
    """Two runs of one project, one of them shared by a link, and a run of another project."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.run_id, self.sibling_id, self.their_run_id = uuid4(), uuid4(), uuid4()
        self.stream_id, self.sweep_id = uuid4(), uuid4()
        self.secret = ""

    def address(self, template: str) -> str:
        names = {"project:path": OURS, "task:path": "digits"}
        return re.sub(
            r"{([a-z_:]+)}", lambda found: str(names.get(found[1]) or getattr(self, found[1], uuid4())), template
        )

    def client(self, who: str) -> httpx.AsyncClient:
        if who != "link":
            return self.team.client({"everybody": "nobody"}.get(who, who))
        transport = httpx.ASGITransport(app=self.team.app, raise_app_exceptions=False)
        headers = {"Cookie": f"{LINK_COOKIE}={self.secret}", "Origin": PUBLIC_URL, "Sec-Fetch-Site": "same-origin"}
        return httpx.AsyncClient(transport=transport, base_url=PUBLIC_URL, headers=headers)

    async def link(self, hours: int = 24, who: str = "admin", run_id: UUID | None = None) -> httpx.Response:
        async with self.client(who) as client:
            return await client.post(f"/api/v1/runs/{run_id or self.run_id}/links", json={"hours": hours})


def secret_of(answer: httpx.Response) -> str:
    assert answer.status_code == 201, answer.text
    return parse_qs(urlsplit(answer.json()["address"]).query)["link"][0]


@pytest.fixture(scope="module")
async def shared(new_database: Callable[[], str]) -> AsyncIterator[Shared]:
    async with running_team(new_database(), public_projects=True) as team:
        found = Shared(team)
        async with team.client("administrator") as client:
            for run_id, project, name in (
                (found.run_id, OURS, "shown"),
                (found.sibling_id, OURS, "sibling secret"),
                (found.their_run_id, THEIRS, "their secret"),
            ):
                measured = make_measurements(steps=range(200))
                batch = make_batch(
                    run_id=run_id,
                    run=make_run(project=project, name=name),
                    measurements=measured,
                    groups=[make_groups(seq=202, step=100)],
                    last_seq=202,
                )
                stream_id = found.stream_id if run_id == found.run_id else uuid4()
                answer = await client.post(f"/api/v1/streams/{stream_id}/batches", json=batch)
                assert answer.status_code == 200, answer.text
            sweep = {"id": str(found.sweep_id), "project": OURS, "task": "digits"}
            assert (await client.post("/api/v1/sweeps", json=sweep)).status_code == 201
        found.secret = secret_of(await found.link())
        yield found


@pytest.fixture
async def opened(shared: Shared) -> AsyncIterator[Shared]:
    """Our project is open to everybody."""
    await say_public(shared, is_public=True)
    yield shared
    await say_public(shared, is_public=False)


async def say_public(shared: Shared, *, is_public: bool, who: str = "admin") -> httpx.Response:
    async with shared.client(who) as client:
        return await client.put(f"/api/v1/projects/{OURS}/public", json={"is_public": is_public})


def mark_of(answer: httpx.Response) -> str:
    assert answer.status_code < 500, answer.text
    return {401: "-", 403: "-", 404: "0"}.get(answer.status_code, "+")


@pytest.mark.parametrize(("method", "template", "marks"), rows(OPEN), ids=lambda value: str(value)[:60])
async def test_the_api_is_open_to_guests_where_the_table_says(
    opened: Shared, method: str, template: str, marks: str
) -> None:
    found = ""
    for who in ("link", "everybody"):
        async with opened.client(who) as client:
            answer = await client.request(method, "/api/v1" + opened.address(template))
        found += mark_of(answer)
        assert "their secret" not in answer.text
        assert who == "everybody" or "sibling secret" not in answer.text

    assert found == marks


async def test_everything_else_of_the_api_is_closed_to_guests(opened: Shared) -> None:
    assert len(CLOSED) > 40
    found = {}
    for who in ("link", "everybody"):
        async with opened.client(who) as client:
            for method, template in CLOSED:
                target = "/metrics" if template == "/metrics" else "/api/v1" + opened.address(template)
                found[who, method, template] = mark_of(await client.request(method, target, json={}))

    assert {key for key, mark in found.items() if mark != "-"} == set()


@pytest.mark.parametrize(("method", "path", "marks"), rows(PAGES), ids=lambda value: str(value)[:60])
async def test_pages_are_open_to_guests_where_the_table_says(
    opened: Shared, method: str, path: str, marks: str
) -> None:
    found = ""
    for who in ("link", "everybody"):
        async with opened.client(who) as client:
            found += mark_of(await client.request(method, opened.address(path)))

    assert found == marks


class TestLink:
    async def test_it_shows_its_run_and_neither_siblings_nor_another_project(self, shared: Shared) -> None:
        async with shared.client("link") as client:
            own = await client.get(f"/api/v1/runs/{shared.run_id}")
            answers = {
                run_id: [
                    await client.get(f"/api/v1/runs/{run_id}{part}")
                    for part in ("", "/noise-scale", "/groups", "/metrics", "/streams", "/recommendation", "/time")
                ]
                for run_id in (shared.sibling_id, shared.their_run_id, uuid4())
            }

        assert own.json()["name"] == "shown"
        bodies = set()
        for run_id, found in answers.items():
            assert {answer.status_code for answer in found} == {404}
            bodies.add(tuple(answer.text.replace(str(run_id), "") for answer in found))
        assert len(bodies) == 1, "a run that is there cannot be told from one that is not"

    async def test_a_browser_is_led_to_the_run_and_keeps_the_link_where_scripts_cannot_read_it(
        self, shared: Shared
    ) -> None:
        async with shared.client("nobody") as client:
            answer = await client.get("/shared", params={"link": shared.secret})

        assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{shared.run_id}")
        assert answer.headers["referrer-policy"] == "no-referrer"
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith(f"{LINK_COOKIE}={shared.secret};")
        assert {"HttpOnly", "Secure", "Path=/", "SameSite=lax"} <= set(cookie.split("; "))

    async def test_it_ends_when_it_is_ended_at_once(self, shared: Shared) -> None:
        made = await shared.link()
        path, secret = f"/api/v1/runs/{shared.run_id}/links", secret_of(made)
        async with shared.client("admin") as client:
            ended = await client.delete(f"{path}/{made.json()['id']}")
            again = await client.delete(f"{path}/{made.json()['id']}")
            listed = (await client.get(path)).json()["links"]

        assert await status_by(shared, secret) == 401
        assert ended.status_code == 204
        assert_problem(again, 404, "link-not-found")
        assert made.json()["id"] not in {one["id"] for one in listed}

    async def test_it_ends_by_itself(self, shared: Shared) -> None:
        made = await shared.link(hours=1)
        before = await status_by(shared, secret_of(made))
        async with shared.team.app.state.sessions.begin() as session:
            statement = "UPDATE run_link SET expires_at = now() - interval '1 second' WHERE id = :id"
            await session.execute(text(statement), {"id": UUID(made.json()["id"])})

        assert (before, await status_by(shared, secret_of(made))) == (200, 401)
        lasts = datetime.fromisoformat(made.json()["expires_at"]) - datetime.now(UTC)
        assert timedelta(minutes=59) < lasts <= timedelta(hours=1)
        async with shared.client("nobody") as client:
            page = await client.get("/shared", params={"link": secret_of(made)})
        assert page.status_code == 403
        assert "This link has ended" in page.text

    async def test_it_goes_with_the_right_of_who_made_it(self, shared: Shared) -> None:
        app = shared.team.app
        person = await new_person(app, "leaving", {OURS: "admin"})
        shared.team.headers["leaving"] = as_browser(await log_in(app, person))
        secret = secret_of(await shared.link(who="leaving"))
        before = await status_by(shared, secret)
        async with app.state.sessions.begin() as session:
            change = PersonChange(is_disabled=True)
            await offboarding.change(session, LOCAL, person, change, now=datetime.now(UTC))

        assert (before, await status_by(shared, secret)) == (200, 401)

    async def test_it_goes_with_its_run_and_with_a_database_that_went_back(self, shared: Shared) -> None:
        run_id = uuid4()
        async with shared.client("administrator") as client:
            await client.post("/api/v1/runs", json=make_run(project=OURS, id=str(run_id)))
            secret = secret_of(await shared.link(run_id=run_id))
            assert await status_by(shared, secret, run_id) == 200
            await client.delete(f"/api/v1/runs/{run_id}")
        assert await status_by(shared, secret, run_id) == 401

        other = secret_of(await shared.link())
        async with shared.team.app.state.sessions() as session:
            await going_back.begin_again(session, LOCAL, keeps_keys=True, now=datetime.now(UTC))
            assert not await sharing.visitors_of(session, [sharing.Secret(other)], now=datetime.now(UTC))
            await session.rollback()

    async def test_its_secret_is_not_kept_and_the_audit_names_it(self, shared: Shared) -> None:
        made = await shared.link()
        async with shared.team.app.state.sessions() as session:
            kept = (await session.execute(text("SELECT * FROM run_link"))).mappings().all()
            entries = (await session.execute(text("SELECT * FROM audit"))).mappings().all()
        async with shared.client("admin") as client:
            listed = await client.get(f"/api/v1/runs/{shared.run_id}/links")

        assert secret_of(made) not in str(kept) + str(entries) + listed.text
        [entry] = [one for one in entries if one["details"].get("link") == made.json()["id"]]
        assert entry["action"] == "run link made"

    @pytest.mark.parametrize("hours", [0, -1, 8_761, 1.5, "24"])
    async def test_hours_that_are_none_are_refused_and_named(self, shared: Shared, hours: Any) -> None:
        answer = await shared.link(hours=hours)

        assert_problem(answer, 422, "invalid-input")
        assert answer.json()["errors"][0]["field"] == "hours"

    @pytest.mark.parametrize(
        ("who", "status"),
        [("viewer", 403), ("member", 403), ("write key", 403), ("read key", 403), ("their admin", 404)],
    )
    async def test_only_admins_of_the_project_make_one(self, shared: Shared, who: str, status: int) -> None:
        assert (await shared.link(who=who)).status_code == status

    @pytest.mark.slow
    async def test_who_guesses_is_slowed_down(self, shared: Shared) -> None:
        wrong = shared.team.app.state.credentials._wrong
        usual, wrong.most = wrong.most, 3
        try:
            async with shared.client("nobody") as client:
                answers = [await client.get("/shared", params={"link": "x" * 43}) for _ in range(1_000)][-1:]
        finally:
            wrong.most = usual

        assert answers[0].status_code == 429

    async def test_reads_by_it_are_counted_by_address(self, shared: Shared) -> None:
        reads = shared.team.app.state.read_rate._buckets
        reads._known.clear()
        async with shared.client("link") as client:
            await client.get(f"/api/v1/runs/{shared.run_id}")

        assert [sender for sender in reads._known if sender.startswith("address ")]
        assert not [sender for sender in reads._known if sender.startswith("link ")]


async def status_by(shared: Shared, secret: str, run_id: UUID | None = None) -> int:
    headers = {"Cookie": f"{LINK_COOKIE}={secret}"}
    async with shared.client("nobody") as client:
        return (await client.get(f"/api/v1/runs/{run_id or shared.run_id}", headers=headers)).status_code


class TestPublicProject:
    async def test_nothing_is_open_until_an_admin_says_so(self, shared: Shared) -> None:
        async with shared.client("nobody") as client:
            before = await client.get("/api/v1/runs")
            await say_public(shared, is_public=True)
            listed = await client.get("/api/v1/runs")
            projects = await client.get("/api/v1/projects")
            other = await client.get(f"/api/v1/runs/{shared.their_run_id}")
            await say_public(shared, is_public=False)
            after = await client.get("/api/v1/runs")

        assert (before.status_code, after.status_code) == (401, 401)
        assert {run["name"] for run in listed.json()["runs"]} >= {"shown", "sibling secret"}
        assert [one["name"] for one in projects.json()["projects"]] == [OURS]
        assert other.status_code == 404

    async def test_a_wrong_key_or_login_is_said_and_does_not_become_everybody(self, opened: Shared) -> None:
        statuses = []
        for headers in ({"Authorization": "Bearer ns_r_x"}, {"Cookie": f"__Host-noisescale={'x' * 43}"}):
            async with opened.client("nobody") as client:
                statuses.append((await client.get("/api/v1/runs", headers=headers)).status_code)

        assert statuses == [401, 401]

    async def test_reads_of_everybody_are_limited_by_address(self, opened: Shared) -> None:
        reads = opened.team.app.state.read_rate._buckets
        reads._known.clear()
        usual = reads._capacity, reads._per_second
        reads._capacity, reads._per_second = 5.0, 0.01
        try:
            async with opened.client("nobody") as client:
                statuses = [(await client.get("/api/v1/projects")).status_code for _ in range(8)]
            async with opened.client("viewer") as client:
                known = (await client.get("/api/v1/projects")).status_code
        finally:
            reads._capacity, reads._per_second = usual
            reads._known.clear()

        assert statuses[:5] == [200] * 5
        assert statuses[-1] == 429
        assert known == 200

    async def test_only_admins_of_the_project_open_it(self, shared: Shared) -> None:
        statuses = {
            who: (await say_public(shared, is_public=True, who=who)).status_code
            for who in ("viewer", "member", "write key", "read key", "their admin")
        }

        assert statuses == {"viewer": 403, "member": 403, "write key": 403, "read key": 403, "their admin": 404}

    async def test_a_server_that_does_not_allow_it_says_what_to_set(self, database_url: str) -> None:
        async with running_team(database_url) as team:
            async with team.client("admin") as client:
                refused = await client.put(f"/api/v1/projects/{OURS}/public", json={"is_public": True})
                said = (await client.get(f"/api/v1/projects/{OURS}/public")).json()
            async with team.app.state.sessions.begin() as session:
                await sharing.set_public(session, LOCAL, OURS, is_public=True)
            async with team.client("nobody") as client:
                closed = await client.get("/api/v1/runs")

        assert_problem(refused, 403, "not-allowed")
        assert "NOISESCALE_PUBLIC_PROJECTS=true" in refused.json()["detail"]
        assert said == {"is_public": False, "is_allowed": False}
        assert closed.status_code == 401, "the setting of the server counts, whatever the database says"

    async def test_the_audit_says_who_opened_and_closed_it(self, opened: Shared) -> None:
        await say_public(opened, is_public=False)
        async with opened.client("admin") as client:
            entries = (await client.get("/api/v1/audit")).json()["entries"]

        said = [one["action"] for one in entries if one["action"].startswith("project ")]
        assert said[:2] == ["project closed to everybody", "project opened to everybody"]
