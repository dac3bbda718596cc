"""What a stand-in for the API says of keys, people and the audit log: to an admin of a team's server."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI

MOMENT = "2026-11-20T13:02:40Z"
NEW_KEY = {"id": "0123456789", "key": "ns_w_0123456789_" + "s" * 43 + "_000000", "expires_at": MOMENT}
ADA = "00000000-0000-4000-8000-0000000000ad"
ME = {
    "mode": "team",
    "kind": "person",
    "id": ADA,
    "name": "Ada",
    "url": "https://noisescale.example.com",
    "person_id": ADA,
    "everywhere": ["identity", "read", "cursor", "append", "change", "own_keys", "delete", "manage"],
    "projects": [],
    "makes_keys": True,
    "manages": True,
}
LOGIN_LINK = "https://noisescale.example.com/login?link=once"
KEYS = [
    {
        "id": "0123456789",
        "name": "nightly job",
        "scope": "write",
        "projects": ["vision"],
        "owner": "Ada",
        "created_at": MOMENT,
        "expires_at": "2027-05-19T13:02:40Z",
        "revoked_at": None,
        "last_used_at": MOMENT,
        "last_used_from": "10.0.0.7",
        "is_active": True,
    },
    {
        "id": "9876543210",
        "name": "old script",
        "scope": "read",
        "projects": None,
        "owner": None,
        "created_at": MOMENT,
        "expires_at": "2027-05-19T13:02:40Z",
        "revoked_at": MOMENT,
        "last_used_at": None,
        "last_used_from": None,
        "is_active": False,
    },
]
PEOPLE = [
    {
        "id": ADA,
        "name": "Ada",
        "email": "ada@example.com",
        "is_administrator": True,
        "disabled_at": None,
        "created_at": MOMENT,
        "roles": [{"project": "vision", "role": "member"}],
    }
]
ENTRIES = [
    {
        "id": 1,
        "at": MOMENT,
        "actor_kind": "person",
        "actor_id": ADA,
        "actor_name": "Ada",
        "action": "key created",
        "details": {"key": "0123456789", "name": "nightly job"},
    }
]


def giving(answer: dict[str, Any]) -> Callable[[], Awaitable[Any]]:
    """An endpoint that always answers this."""

    async def give() -> Any:
        return answer

    return give


def add_access_routes(app: FastAPI) -> None:
    """Nothing; the app answers what the page of settings asks, and takes every change."""

    async def nothing() -> None:
        return None

    async def made() -> Any:
        return NEW_KEY

    for path, answer in (
        ("me", ME),
        ("keys", {"keys": KEYS}),
        ("people", {"people": PEOPLE}),
        ("audit", {"entries": ENTRIES, "next_before": None}),
    ):
        app.get(f"/api/v1/{path}")(giving(answer))
    app.post("/api/v1/keys", status_code=201)(made)
    app.post("/api/v1/people", status_code=201)(giving({"id": ADA}))
    app.patch("/api/v1/people/{person_id}")(giving(PEOPLE[0]))
    app.post("/api/v1/people/{person_id}/login-links", status_code=201)(giving({"url": LOGIN_LINK}))
    app.delete("/api/v1/people/{person_id}/sessions", status_code=204)(nothing)
    app.post("/api/v1/keys/{key_id}/rotation", status_code=201)(made)
    app.delete("/api/v1/keys/{key_id}", status_code=204)(nothing)
    app.put("/api/v1/projects/{project:path}/members/{person_id}", status_code=204)(nothing)
    app.delete("/api/v1/projects/{project:path}/members/{person_id}", status_code=204)(nothing)
