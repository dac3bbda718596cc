"""Every route × everybody who may ask, compared with a table that was written by hand from the roles.

A route, an operation of OpenAPI or a callback of the dashboard without a row fails: whoever adds one says who may.

In a row, `+` lets in, `-` is refused as known and not allowed (403), `0` is answered as if nothing were there (404).
Those who are not known (no key, a wrong, an expired or a revoked one, somebody who is disabled, a key whose owner may
enter nothing that it opens) get 401 everywhere but from `PUBLIC`. Who was taken out of a project knows nothing of it,
and a former admin of all projects is what their roles say.
"""

import re
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI

from factories import make_batch, make_run
from noisescale_server.api.platform.errors import LOOK_LIKE_AN_ID
from noisescale_server.app import ROUTERS
from noisescale_server.services.access import sharing
from noisescale_server.services.access.access import LOCAL
from noisescale_server.services.alerts import managing
from noisescale_server.storage import views as view_rows
from noisescale_server.storage.alerts import rows as alert_rows
from principals import OURS, THEIRS, Team, new_key, new_person, running_team
from reproduction_bodies import claim_body
from stored_runs import resolved, store_run

GONE = ("disabled admin", "key of a disabled admin", "key of a removed admin", "key of a former administrator")
UNKNOWN = ("nobody", "wrong key", "expired key", "revoked key", *GONE)
KNOWN = ("write key", "read key", "admin key", "their key", "viewer", "member", "admin", "their admin", "administrator")

# fmt: off
MATRIX = """
                                              write read admin their │ viewer member admin their-admin administrator
GET    /me                                      +     +    +     +       +      +      +       +            +
GET    /runs                                    -     +    +     +       +      +      +       +            +
GET    /runs/summary?by=task                    -     +    +     +       +      +      +       +            +
GET    /runs/sparklines?ids={run_id}            -     +    +     +       +      +      +       +            +
GET    /runs/recommendations?ids={run_id}       -     +    +     +       +      +      +       +            +
GET    /runs/{run_id}                           -     +    +     0       +      +      +       0            +
GET    /runs/{run_id}/status                    0     +    +     0       +      +      +       0            +
GET    /runs/{run_id}/recommendation            -     +    +     0       +      +      +       0            +
GET    /runs/{run_id}/noise-scale               -     +    +     0       +      +      +       0            +
GET    /runs/{run_id}/groups                    -     +    +     0       +      +      +       0            +
GET    /runs/{run_id}/metrics                   -     +    +     0       +      +      +       0            +
GET    /runs/{run_id}/streams                   -     +    +     0       +      +      +       0            +
GET    /runs/{run_id}/streams/{stream_id}/lost  -     +    +     0       +      +      +       0            +
GET    /runs/{run_id}/forecast                  -     +    +     0       +      +      +       0            +
GET    /runs/{run_id}/learning-rate             -     +    +     0       +      +      +       0            +
GET    /runs/{run_id}/time                      -     +    +     0       +      +      +       0            +
GET    /streams/{stream_id}                     0     +    +     0       +      +      +       0            +
GET    /reference-values                        -     +    +     +       +      +      +       +            +
GET    /published-sweeps                        -     +    +     +       +      +      +       +            +
GET    /recommendation                          -     +    +     +       +      +      +       +            +
GET    /hindsight                               -     +    +     +       +      +      +       +            +
GET    /server                                  -     +    +     +       +      +      +       +            +
GET    /projects                                -     +    +     +       +      +      +       +            +
GET    /projects/{project:path}/calibrations    -     +    +     0       +      +      +       0            +
GET    /projects/{project:path}/defaults        -     +    +     0       +      +      +       0            +
GET    /projects/{project:path}/public          -     +    +     0       +      +      +       0            +
GET    /projects/{project:path}/retention       -     +    +     0       +      +      +       0            +
GET    /projects/{project:path}/baseline        -     +    +     0       +      +      +       0            +
GET    /projects/{project:path}/tasks           -     +    +     0       +      +      +       0            +
GET    /projects/{project:path}/tasks/{task:path}/recommendation
                                                -     +    +     0       +      +      +       0            +
GET    /sweeps                                  -     +    +     +       +      +      +       +            +
GET    /sweeps/critical-batches?ids={sweep_id}  -     +    +     +       +      +      +       +            +
GET    /sweeps/{sweep_id}                       -     +    +     0       +      +      +       0            +
GET    /sweeps/{sweep_id}/critical-batch        -     +    +     0       +      +      +       0            +
GET    /sweeps/{sweep_id}/plan                  -     +    +     0       +      +      +       0            +
GET    /sweeps/{sweep_id}/quality               -     +    +     0       +      +      +       0            +
GET    /sweeps/{sweep_id}/learning-rates        -     +    +     0       +      +      +       0            +
GET    /sweeps/{sweep_id}/forecast              -     +    +     0       +      +      +       0            +
GET    /sweeps/{sweep_id}/search-cost           -     +    +     0       +      +      +       0            +
GET    /cost/leaderboard?target=1               -     +    +     +       +      +      +       +            +
GET    /cost/submissions                        -     +    +     +       +      +      +       +            +
GET    /cost/growth                             -     +    +     +       +      +      +       +            +
GET    /reproductions                           -     +    +     +       +      +      +       +            +
GET    /reproductions/{reproduction_id}         -     +    +     0       +      +      +       0            +
GET    /comparison                              -     +    +     +       +      +      +       +            +
GET    /comparison?run={run_id}                 -     +    +     +       +      +      +       +            +
GET    /comparison/runs?run={run_id}            -     +    +     +       +      +      +       +            +
GET    /comparison/sized-tasks                  -     +    +     +       +      +      +       +            +
GET    /comparison/model-size?project=ours&task=digits
                                                -     +    +     0       +      +      +       0            +
GET    /comparison/temperature?project=ours&task=digits
                                                -     +    +     0       +      +      +       0            +
GET    /tradeoff?run_id={run_id}                -     +    +     0       +      +      +       0            +
POST   /runs                                    +     -    +     -       -      +      +       -            +
POST   /projects/{project:path}/calibrations    -     -    +     0       -      +      +       0            +
POST   /runs/changes                            -     -    +     +       -      +      +       +            +
PATCH  /runs/{run_id}                           -     -    +     0       -      +      +       0            +
PATCH  /sweeps/{sweep_id}                       -     -    +     0       -      +      +       0            +
PUT    /projects/{project:path}/baseline        -     -    +     0       -      +      +       0            +
DELETE /projects/{project:path}/baseline        -     -    +     0       -      +      +       0            +
GET    /runs/{run_id}/comments                  -     +    +     0       +      +      +       0            +
POST   /runs/{run_id}/comments                  -     -    +     0       -      +      +       0            +
PATCH  /runs/{run_id}/comments/{comment_id}     -     -    -     0       -      +      -       0            -
DELETE /runs/{run_id}/comments/{comment_id}     -     -    +     0       -      +      +       0            +
GET    /runs/{run_id}/links                     -     -    +     0       -      -      +       0            +
POST   /runs/{run_id}/links                     -     -    +     0       -      -      +       0            +
DELETE /runs/{run_id}/links/{link_id}           -     -    +     0       -      -      +       0            +
DELETE /runs/{run_id}                           -     -    +     0       -      -      +       0            +
POST   /streams/{stream_id}/batches             +     -    +     0       -      +      +       0            +
POST   /streams/{stream_id}/heartbeat           +     -    +     0       -      +      +       0            +
POST   /sweeps                                  +     -    +     -       -      +      +       -            +
POST   /sweeps/{sweep_id}/runs                  +     -    +     0       -      +      +       0            +
DELETE /sweeps/{sweep_id}                       -     -    +     0       -      -      +       0            +
POST   /reproductions                           +     -    +     -       -      +      +       -            +
DELETE /reproductions/{reproduction_id}         -     -    +     0       -      -      +       0            +
GET    /keys                                    -     -    +     +       -      +      +       +            +
POST   /keys                                    -     -    +     0       -      +      +       0            +
POST   /keys/{key_id}/rotation                  -     -    +     0       -      0      +       0            +
DELETE /keys/{key_id}                           -     -    +     0       -      0      +       0            +
GET    /people                                  -     -    +     +       -      -      +       +            +
POST   /people                                  -     -    -     -       -      -      -       -            +
PATCH  /people/{person_id}                      -     -    -     -       -      -      -       -            +
POST   /people/{person_id}/login-links          -     -    -     -       -      -      -       -            +
DELETE /people/{person_id}/sessions             -     -    -     -       -      -      -       -            +
PUT    /projects/{project:path}/members/{person_id}
                                                -     -    +     0       -      -      +       0            +
DELETE /projects/{project:path}/members/{person_id}
                                                -     -    +     0       -      -      +       0            +
PUT    /projects/{project:path}/defaults        -     -    +     0       -      -      +       0            +
PUT    /projects/{project:path}/public          -     -    +     0       -      -      +       0            +
PUT    /projects/{project:path}/retention       -     -    +     0       -      -      +       0            +
GET    /projects/{project:path}/views           -     +    +     0       +      +      +       0            +
POST   /projects/{project:path}/views           -     -    +     0       -      +      +       0            +
PATCH  /projects/{project:path}/views/{view_id} -     -    +     0       -      +      +       0            +
DELETE /projects/{project:path}/views/{view_id} -     -    +     0       -      +      +       0            +
GET    /projects/{project:path}/alerts/rules
                                                -     +    +     0       +      +      +       0            +
GET    /projects/{project:path}/alerts/receivers
                                                -     +    +     0       +      +      +       0            +
GET    /projects/{project:path}/alerts/events
                                                -     +    +     0       +      +      +       0            +
POST   /projects/{project:path}/alerts/dry-run
                                                -     +    +     0       +      +      +       0            +
POST   /projects/{project:path}/alerts/rules
                                                -     -    +     0       -      -      +       0            +
POST   /projects/{project:path}/alerts/receivers
                                                -     -    +     0       -      -      +       0            +
PUT    /projects/{project:path}/alerts/rules/{rule_id}
                                                -     -    +     0       -      -      +       0            +
DELETE /projects/{project:path}/alerts/rules/{rule_id}
                                                -     -    +     0       -      -      +       0            +
DELETE /projects/{project:path}/alerts/receivers/{receiver_id}
                                                -     -    +     0       -      -      +       0            +
POST   /projects/{project:path}/alerts/receivers/{receiver_id}/test
                                                -     -    +     0       -      -      +       0            +
GET    /audit                                   -     -    +     +       -      -      +       +            +
"""

OUTSIDE = """
                                              write read admin their │ viewer member admin their-admin administrator
GET    /                                        -     +    +     +       +      +      +       +            +
GET    /runs                                    -     +    +     +       +      +      +       +            +
GET    /runs/{run_id}/report                    -     +    +     0       +      +      +       0            +
GET    /exports/runs.csv                        -     +    +     +       +      +      +       +            +
GET    /metrics                                 -     -    +     +       -      +      +       +            +
GET    /docs                                    -     +    +     +       +      +      +       +            +
GET    /openapi                                 -     +    +     +       +      +      +       +            +
GET    /openapi.json                            -     +    +     +       +      +      +       +            +
GET    /_dash-layout                            -     +    +     +       +      +      +       +            +
GET    /_dash-dependencies                      -     +    +     +       +      +      +       +            +
GET    /_reload-hash                            -     +    +     +       +      +      +       +            +
"""
# fmt: on

PUBLIC = ("/livez", "/readyz", "/login", "/assets/mark.svg", "/_favicon.ico")
PUBLIC_ROUTES = {
    "/livez",
    "/readyz",
    "/login",
    "/login/start",
    "/login/back",
    "/shared",
    "/logout",
    "/assets",
    "/_favicon.ico",
}
PUBLIC_ROUTES |= {"/_dash-component-suites/{package_name}/{fingerprinted_path:path}"}
ANSWERED_AS_UNKNOWN = {"/api", "/api/{rest:path}", *LOOK_LIKE_AN_ID}
DOCUMENTATION = {"/docs/{path:path}"}  # of a checkout without pages: each leads to /openapi, as /docs does
CALLBACK_ROUTES = {"/_dash-update-component", "/_dash-ws-callback"}


def rows(table: str) -> list[tuple[str, str, str]]:
    """(method, address, marks) of the lines of a table; a long address has its marks on the next line."""
    joined = re.sub(r"\n +(?=[+0-])", " ", table.replace("│", " "))
    found = [line.split() for line in joined.splitlines() if re.match(r"[A-Z]+ +/", line)]
    return [(line[0], line[1], "".join(line[2:])) for line in found]


def test_every_row_says_something_of_everybody() -> None:
    for method, address, marks in rows(MATRIX) + rows(OUTSIDE):
        assert len(marks) == len(KNOWN), (method, address)
        assert set(marks) <= {"+", "-", "0"}


def routes_without_a_row(routers: Any = ROUTERS) -> set[tuple[str, str]]:
    """Operations of the API that no row of the table speaks of."""
    there = {(method, route.path) for router in routers for route in router.routes for method in route.methods}
    return there - {(method, address.partition("?")[0]) for method, address, _ in rows(MATRIX)}


def test_every_operation_of_the_api_has_a_row() -> None:
    assert routes_without_a_row() == set()


def test_a_new_route_without_a_row_is_noticed() -> None:
    from fastapi import APIRouter

    router = APIRouter(prefix="/secrets")
    router.add_api_route("", lambda: "everything", methods=["GET"])

    assert routes_without_a_row([*ROUTERS, router]) == {("GET", "/secrets")}


@pytest.fixture(scope="module")
async def team(new_database: Callable[[], str]) -> AsyncIterator[Team]:
    async with running_team(new_database()) as opened:
        yield opened


def test_every_route_of_the_process_is_public_or_in_a_table(team: Team) -> None:
    listed = {address for _, address, _ in rows(OUTSIDE)} | PUBLIC_ROUTES | ANSWERED_AS_UNKNOWN
    listed |= CALLBACK_ROUTES | DOCUMENTATION
    included = [route for route in team.app.router.routes if getattr(route, "path", None) is not None]

    # the browser's modules lie below the assets, under the fingerprint of what is in them
    named = {re.sub(r"^/assets/modules/[0-9a-f]{16}$", "/assets", route.path) for route in included}
    assert named - listed == set()
    assert set(team.app.openapi()["paths"]) == {
        *("/api/v1" + re.sub(r":path", "", address.partition("?")[0]) for _, address, _ in rows(MATRIX)),
        "/livez",
        "/readyz",
    }


async def test_a_route_that_no_rule_names_is_refused_to_everybody(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    from noisescale_server.api.access import route as auth_route

    rules = {rule: right for rule, right in auth_route.RIGHTS.items() if rule != ("GET", "/projects")}
    monkeypatch.setattr(auth_route, "RIGHTS", rules)
    async with team.client("administrator") as client:
        answer = await client.get("/api/v1/projects")

    assert answer.status_code == 403


class Things:
    """What the requests are about."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app
        self.run_id, self.stream_id, self.sweep_id, self.reproduction_id = uuid4(), uuid4(), uuid4(), uuid4()
        self.key_id, self.person_id = "", uuid4()
        self.rule_id, self.receiver_id, self.view_id, self.link_id = uuid4(), uuid4(), uuid4(), uuid4()
        self.comment_id = uuid4()

    @classmethod
    async def made(cls, team: Team) -> "Things":
        things = cls(team.app)
        await store_run(team.app, id=things.run_id, project=OURS, name="their secret name", **resolved())
        async with team.client("administrator") as client:
            batch = make_batch(run_id=things.run_id, run=make_run(project=OURS))
            stored = await client.post(f"/api/v1/streams/{things.stream_id}/batches", json=batch)
            assert stored.status_code == 200, stored.text
            sweep = {"id": str(things.sweep_id), "project": OURS, "task": "digits"}
            assert (await client.post("/api/v1/sweeps", json=sweep)).status_code == 201
            # one of another seed is another reproduction
            found = await client.post("/api/v1/reproductions", json=claim_body(project=OURS, seed=next(SEEDS)))
            things.reproduction_id = UUID(found.json()["id"])
        async with team.client("member") as client:
            said = await client.post(f"/api/v1/runs/{things.run_id}/comments", json={"text": "what a member says"})
            things.comment_id = UUID(said.json()["id"])
        key = await new_key(team.app, "read", OURS)
        things.key_id = key.split("_")[2]
        things.person_id = await new_person(team.app, "somebody", {OURS: "viewer"})
        async with team.app.state.sessions.begin() as session:
            project_id = await managing.project_id_of(session, OURS)
            receiver = {"name": "hook", "shape": "webhook", "url": "https://hooks.example.com/x"}
            things.receiver_id = (await alert_rows.add_receiver(session, project_id, **receiver)).id
            link = await sharing.make_link(session, LOCAL, things.run_id, timedelta(hours=1), datetime.now(UTC))
            things.link_id = link.link.id
            shared = {"name": str(things.view_id), "author": "somebody", "page": "runs", "query": "q=a"}
            added = await view_rows.add(session, project_id, **shared)
            assert added is not None
            things.view_id = added.id
            things.rule_id = (await alert_rows.add_rule(session, project_id, **RULE)).id
        return things

    def forgotten(self, text: str) -> str:
        """A text without the ids of these things."""
        for one in (self.run_id, self.stream_id, self.sweep_id, self.reproduction_id):
            text = text.replace(str(one), "…")
        return text

    def address(self, template: str) -> str:
        names = {"project:path": OURS, "task:path": "digits"}
        return re.sub(r"{([a-z_:]+)}", lambda found: str(names.get(found[1]) or getattr(self, found[1])), template)

    def body(self, method: str, template: str) -> Any:
        """A body that is accepted from who may."""
        if (method, template) == ("POST", "/reproductions"):
            return claim_body(project=OURS)
        bodies = {
            ("POST", "/runs"): {"project": OURS, "task": "digits"},
            ("POST", "/runs/changes"): {"ids": [str(self.run_id)], "archived": True},
            ("PATCH", "/runs/{run_id}"): {"name": "their secret name, renamed"},
            ("PATCH", "/sweeps/{sweep_id}"): {"name": "renamed"},
            ("POST", "/streams/{stream_id}/batches"): make_batch(run_id=self.run_id, run=make_run(project=OURS)),
            ("POST", "/sweeps"): {"project": OURS, "task": "digits"},
            ("POST", "/sweeps/{sweep_id}/runs"): {"runs": [CURVE]},
            ("POST", "/projects/{project:path}/calibrations"): {"calibrations": []},
            ("POST", "/keys"): {"name": "k", "scope": "read", "projects": [OURS]},
            ("POST", "/people"): {"name": "new"},
            ("PATCH", "/people/{person_id}"): {"is_administrator": True},
            ("PUT", "/projects/{project:path}/members/{person_id}"): {"role": "viewer"},
            ("PUT", "/projects/{project:path}/defaults"): {"device_hour_price": 2.5},
            ("PUT", "/projects/{project:path}/retention"): {"fold_after_days": 90},
            ("PUT", "/projects/{project:path}/public"): {"is_public": False},
            ("POST", "/runs/{run_id}/links"): {"hours": 1},
            ("POST", "/runs/{run_id}/comments"): {"text": "said"},
            ("PATCH", "/runs/{run_id}/comments/{comment_id}"): {"text": "said otherwise"},
            ("PUT", "/projects/{project:path}/baseline"): {"run_id": str(self.run_id)},
            ("POST", "/projects/{project:path}/views"): {"name": str(uuid4()), "page": "runs", "query": "q=a"},
            ("PATCH", "/projects/{project:path}/views/{view_id}"): {"name": str(uuid4())},
            ("POST", "/projects/{project:path}/alerts/rules"): RULE,
            ("PUT", "/projects/{project:path}/alerts/rules/{rule_id}"): RULE,
            ("POST", "/projects/{project:path}/alerts/dry-run"): {"rule": RULE},
            ("POST", "/projects/{project:path}/alerts/receivers"): {
                "name": "hook",
                "shape": "webhook",
                "url": "https://hooks.example.com/x",
            },
        }
        return bodies.get((method, template))


RULE = {"name": "watch", "kind": "diverged"}
SEEDS = count(1)
CURVE = {"batch_size": 32, "lr": 0.1, "steps": [1, 2], "values": [2.0, 1.0]}


@pytest.fixture(scope="module")
async def lasting(team: Team) -> Things:
    """Things that requests only look at."""
    return await Things.made(team)


@pytest.fixture(scope="module")
async def to_change(team: Team) -> dict[str, Things]:
    """Things of each principal's own, which it may change, and delete at the end."""
    return {principal: await Things.made(team) for principal in KNOWN}


def mark_of(answer: httpx.Response) -> str:
    return {403: "-", 404: "0", 401: "?"}.get(answer.status_code, "+")


async def ask(team: Team, principal: str, method: str, target: str, body: Any) -> httpx.Response:
    async with team.client(principal) as client:
        answer = await client.request(method, target, json=body) if body else await client.request(method, target)
    assert answer.status_code < 500, answer.text
    return answer


@pytest.mark.parametrize(
    ("method", "template", "marks"),
    # what is deleted is not there for another row
    sorted(rows(MATRIX), key=lambda row: row[0] == "DELETE"),
    ids=lambda value: str(value)[:60],
)
async def test_the_api_lets_in_whom_the_table_says(
    team: Team, lasting: Things, to_change: dict[str, Things], method: str, template: str, marks: str
) -> None:
    found = {}
    for principal in KNOWN:
        things = lasting if method == "GET" else to_change[principal]
        target = "/api/v1" + things.address(template)
        answer = await ask(team, principal, method, target, things.body(method, template))
        found[principal] = mark_of(answer)
        if principal.startswith("their"):
            assert "their secret name" not in answer.text
            if method == "GET" and "{project" not in template:
                nothing = Things(team.app)
                absent = await ask(team, principal, "GET", "/api/v1" + nothing.address(template), None)
                assert things.forgotten(answer.text) == nothing.forgotten(absent.text)

    assert found == dict(zip(KNOWN, marks, strict=True))


@pytest.mark.parametrize(("method", "template", "marks"), rows(MATRIX), ids=lambda value: str(value)[:60])
async def test_the_api_knows_nobody_without_a_key_in_force(team: Team, method: str, template: str, marks: str) -> None:
    things = Things(team.app)
    target = "/api/v1" + things.address(template)

    answers = [await ask(team, one, method, target, things.body(method, template)) for one in UNKNOWN]

    assert [answer.status_code for answer in answers] == [401] * len(UNKNOWN)
    assert len({answer.text for answer in answers}) == 1


@pytest.mark.parametrize(("method", "path", "marks"), rows(OUTSIDE), ids=lambda value: str(value)[:60])
async def test_the_pages_let_in_whom_the_table_says(
    team: Team, lasting: Things, method: str, path: str, marks: str
) -> None:
    target = lasting.address(path)
    found = {principal: mark_of(await ask(team, principal, method, target, None)) for principal in KNOWN}
    unknown = [(await ask(team, principal, method, target, None)).status_code for principal in UNKNOWN]

    assert found == dict(zip(KNOWN, marks, strict=True))
    assert unknown == [401] * len(UNKNOWN)


@pytest.mark.parametrize(
    ("method", "template", "marks"), [*rows(MATRIX), *rows(OUTSIDE)], ids=lambda value: str(value)[:60]
)
async def test_who_was_taken_out_may_no_more_than_is_left_to_them(
    team: Team, lasting: Things, method: str, template: str, marks: str
) -> None:
    prefix = "" if (method, template, marks) in rows(OUTSIDE) else "/api/v1"
    target, body = prefix + lasting.address(template), lasting.body(method, template)
    removed, former = [
        mark_of(await ask(team, principal, method, target, body))
        for principal in ("removed admin", "former administrator")
    ]

    assert removed == ("+" if template == "/me" else "-")
    assert former == marks[KNOWN.index("viewer")]


@pytest.mark.parametrize("path", PUBLIC)
async def test_what_is_public_is_open_to_everybody(team: Team, path: str) -> None:
    answers = [await ask(team, principal, "GET", path, None) for principal in (*UNKNOWN, *KNOWN)]

    assert {answer.status_code for answer in answers} <= {200, 204}


async def test_a_write_key_reads_back_what_it_wrote_and_nothing_else(team: Team) -> None:
    things = await Things.made(team)
    own_run, own_stream = uuid4(), uuid4()
    batch = make_batch(run_id=own_run, run=make_run(project=OURS))
    async with team.client("write key") as client:
        stored = await client.post(f"/api/v1/streams/{own_stream}/batches", json=batch)
        own = await client.get(f"/api/v1/streams/{own_stream}")
        status = await client.get(f"/api/v1/runs/{own_run}/status")
        whole = await client.get(f"/api/v1/runs/{own_run}")
        again = await client.post("/api/v1/runs", json={"project": OURS, "id": str(own_run)})
        foreign = await client.post("/api/v1/runs", json={"project": OURS, "id": str(things.run_id)})

    assert stored.json()["acked_seq"] == own.json()["acked_seq"]
    assert status.json() == {"id": str(own_run), "project": OURS, "status": "running"}
    assert again.json() == status.json()
    assert (whole.status_code, foreign.status_code) == (403, 409)


@pytest.mark.parametrize("what", ["run", "sweep"])
async def test_an_id_that_others_have_is_answered_as_if_nothing_were_there(team: Team, what: str) -> None:
    things = await Things.made(team)
    body = {"project": THEIRS, "id": str(getattr(things, f"{what}_id"))}
    async with team.client("their admin") as client, team.client("administrator") as all_seeing:
        hidden = await client.post(f"/api/v1/{what}s", json=body)
        absent = await client.get(f"/api/v1/{what}s/{body['id']}")
        seen = await all_seeing.post(f"/api/v1/{what}s", json=body)

    assert (hidden.status_code, hidden.json()) == (404, absent.json())
    assert seen.status_code == 409


async def test_nothing_but_what_lies_in_a_public_folder_is_public(team: Team) -> None:
    names = (
        "/_favicon.icon",
        "/_favicon.ico/x",
        "/assets",
        "/assets/",
        "/assets/../runs",
        "/assets//runs",
        "/assetsx/a",
    )
    names += ("/_dash-component-suites", "/_dash-component-suites/../", "/login/", "/livez/x", "*", "")
    answers = {}
    async with team.client("nobody") as client:
        for name in names:
            asked: list[dict[str, Any]] = []
            scope = {"type": "http", "method": "GET", "path": name, "raw_path": name.encode(), "headers": []}
            scope |= {"query_string": b"", "client": ("192.0.2.7", 1), "http_version": "1.1", "scheme": "https"}
            await team.app(scope, no_body, collecting(asked))
            answers[name] = asked[0]["status"]
        missing = await client.get("/assets/no-such-file.js")

    assert answers == dict.fromkeys(names, 401)
    assert missing.status_code == 404


async def no_body() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


def collecting(messages: list[dict[str, Any]]) -> Callable[[Any], Any]:
    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    return send


async def test_a_batch_for_another_project_is_refused_and_stores_nothing(team: Team) -> None:
    things = await Things.made(team)
    async with team.client("their key") as client:
        into_ours = await client.post(f"/api/v1/streams/{uuid4()}/batches", json=make_batch(run=make_run(project=OURS)))
        into_a_run = await client.post(
            f"/api/v1/streams/{uuid4()}/batches", json=make_batch(run_id=things.run_id, run=make_run(project=THEIRS))
        )
        new_project = await client.post("/api/v1/runs", json={"project": "nobody's yet"})

    assert (into_ours.status_code, into_a_run.status_code, new_project.status_code) == (403, 404, 403)


async def test_lists_hold_what_one_may_read(team: Team) -> None:
    await Things.made(team)
    own = await store_run(team.app, project=THEIRS, name="own", **resolved())
    async with team.client("their admin") as client:
        listed = (await client.get("/api/v1/runs")).json()
        projects = (await client.get("/api/v1/projects")).json()["projects"]
        sweeps_seen = (await client.get("/api/v1/sweeps")).json()
        reproductions_seen = (await client.get("/api/v1/reproductions")).json()
        changed = await client.post("/api/v1/runs/changes", json={"ids": [str(own), str(uuid4())], "archived": True})

    assert [run["id"] for run in listed["runs"]] == [str(own)]
    assert listed["total"] == 1
    assert [project["name"] for project in projects] == [THEIRS]
    assert sweeps_seen["total"] == 0
    assert (reproductions_seen["total"], reproductions_seen["reproductions"]) == (0, [])
    assert changed.json()["changed"] == [str(own)]


async def test_somebody_elses_run_cannot_be_told_from_one_that_is_not_there(team: Team) -> None:
    things = await Things.made(team)
    nothing = uuid4()
    async with team.client("their admin") as client:
        foreign = await client.get(f"/api/v1/runs/{things.run_id}")
        absent = await client.get(f"/api/v1/runs/{nothing}")

    assert foreign.status_code == absent.status_code == 404
    assert foreign.text.replace(str(things.run_id), "") == absent.text.replace(str(nothing), "")
