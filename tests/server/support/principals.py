"""A team's server with two projects, and everybody who may ask it something."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
from fastapi import FastAPI
from sqlalchemy import update

from app_in_process import running_app
from keys_of_tests import bearer
from noisescale_server.services.access import keys, offboarding, people, sessions
from noisescale_server.services.access.access import EVERYTHING, LOCAL, PersonRole, Principal
from noisescale_server.services.access.keys import NewKey
from noisescale_server.services.access.offboarding import PersonChange
from noisescale_server.storage.access import api_keys
from noisescale_server.storage.access.tables import ApiKey

PUBLIC_URL = "https://noisescale.test"
SECRET = "the secret of a test's server: 0123456789 abcdefghij"
COOKIE = "__Host-noisescale"
OURS, THEIRS = "ours", "theirs"


@dataclass(frozen=True, slots=True)
class Team:
    """A running team's server and the headers that each principal sends.

    Attributes:
        app: The server, with the dashboard.
        headers: By the principal's name.
    """

    app: FastAPI
    headers: dict[str, dict[str, str]]

    def client(self, principal: str) -> httpx.AsyncClient:
        """HTTP as this principal."""
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url=PUBLIC_URL, headers=self.headers[principal])


@asynccontextmanager
async def running_team(database_url: str, **settings: Any) -> AsyncIterator[Team]:
    """The server from its start to its end, with two projects and everybody in them."""
    from noisescale_dashboard.app import mount  # half a second for all tests that take a name from this file

    team_settings = {"auth": "required", "secret_key": SECRET, "public_url": PUBLIC_URL, "local_token": None}
    async with running_app(database_url, **{**team_settings, **settings}) as app:
        mount(app)
        # the matrix asks with wrong keys without end, which is tested by itself
        app.state.credentials._wrong.most = 1_000_000
        yield Team(app, await everybody(app))


async def everybody(app: FastAPI) -> dict[str, dict[str, str]]:
    """Headers of everybody who may ask, by name."""
    async with app.state.sessions.begin() as session:
        await api_keys.project_ids(session, [OURS, THEIRS], creates=True)
    headers = {"nobody": {}, "wrong key": bearer("ns_r_" + "0" * 10 + "_" + "0" * 43 + "_000000")}
    headers["expired key"] = bearer(await new_key(app, "admin", OURS, ends="expires_at"))
    headers["revoked key"] = bearer(await new_key(app, "admin", OURS, ends="revoked_at"))
    for scope in ("write", "read", "admin"):
        headers[f"{scope} key"] = bearer(await new_key(app, scope, OURS))
    headers["their key"] = bearer(await new_key(app, "admin", THEIRS))
    roles: tuple[PersonRole, ...] = ("viewer", "member", "admin")
    for role in roles:
        headers[role] = as_browser(await new_session(app, role, {OURS: role}))
    headers["their admin"] = as_browser(await new_session(app, "their admin", {THEIRS: "admin"}))
    headers["administrator"] = as_browser(await new_session(app, "administrator", {}, is_administrator=True))
    return headers | await offboarded(app)


async def offboarded(app: FastAPI) -> dict[str, dict[str, str]]:
    """Headers of those who have been taken out again, as they were handed out before."""
    disabled = await new_person(app, "disabled", {OURS: "admin"})
    removed = await new_person(app, "removed", {OURS: "admin"})
    former = await new_person(app, "former", {OURS: "viewer"}, is_administrator=True)
    headers = {
        "disabled admin": as_browser(await log_in(app, disabled)),
        "key of a disabled admin": bearer(await new_key(app, "admin", OURS, owner=disabled)),
        "removed admin": as_browser(await log_in(app, removed)),
        "key of a removed admin": bearer(await new_key(app, "admin", OURS, owner=removed)),
        "former administrator": as_browser(await log_in(app, former)),
        "key of a former administrator": bearer(await new_key(app, "admin", THEIRS, owner=former)),
    }
    now = datetime.now(UTC)
    async with app.state.sessions.begin() as session:
        await offboarding.change(session, LOCAL, disabled, PersonChange(is_disabled=True), now=now)
        await offboarding.remove_member(session, LOCAL, OURS, removed, now=now)
        await offboarding.change(session, LOCAL, former, PersonChange(is_administrator=False), now=now)
    return headers


async def new_key(app: FastAPI, scope: Any, project: str, *, ends: str | None = None, owner: UUID | None = None) -> str:
    """The text of a key; `ends` names the column that ends it, an hour ago."""
    now = datetime.now(UTC)
    by = LOCAL if owner is None else Principal("person", str(owner), "owner", everywhere=EVERYTHING, person_id=owner)
    async with app.state.sessions.begin() as session:
        made = await keys.create(session, by, NewKey(scope, scope, [project]), pepper=SECRET.encode(), now=now)
        if ends is not None:
            past = {ends: now - timedelta(hours=1)}
            await session.execute(update(ApiKey).where(ApiKey.id == made.id).values(past))
    return made.text


async def new_person(app: FastAPI, name: str, roles: dict[str, PersonRole], *, is_administrator: bool = False) -> UUID:
    """The id of a new person with these roles."""
    async with app.state.sessions.begin() as session:
        person_id = await people.add(session, LOCAL, name=name, email=None, is_administrator=is_administrator)
        for project, role in roles.items():
            await people.set_role(session, LOCAL, project, person_id, role)
    return person_id


async def new_session(app: FastAPI, name: str, roles: dict[str, PersonRole], *, is_administrator: bool = False) -> str:
    """What the cookie of a new person's browser holds."""
    return await log_in(app, await new_person(app, name, roles, is_administrator=is_administrator))


async def log_in(app: FastAPI, person_id: UUID) -> str:
    """What the cookie of another browser of the person holds."""
    async with app.state.sessions.begin() as session:
        cookie = await sessions.log_in(session, person_id, now=datetime.now(UTC), how="test")
    assert cookie is not None, "who is disabled has no session"
    return cookie.text


def as_browser(cookie: str) -> dict[str, str]:
    """The headers with which a page of this server asks."""
    return {"Cookie": f"{COOKIE}={cookie}", "Origin": PUBLIC_URL, "Sec-Fetch-Site": "same-origin"}
