"""What a stand-in for the API says of keys, people and the audit log: to an admin of a team's server."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request

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
SERVER = {
    "version": "0.1.0",
    "database": "16.4",
    "projects": [
        {"project": "vision", "num_runs": 1200, "num_records": 3_400_000, "num_bytes": 1_536_000_000},
        {"project": "demo", "num_runs": 4, "num_records": 1900, "num_bytes": 860_000},
    ],
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
RUN_LINK = {
    "id": "00000000-0000-4000-8000-000000000111",
    "run_id": "00000000-0000-4000-8000-000000000001",
    "made_by": "Ada",
    "created_at": "2026-11-20T12:00:00Z",
    "expires_at": "2026-11-27T12:00:00Z",
}
LINK_ADDRESS = "https://noisescale.test/shared?link=once"
DEFAULTS = {
    "device_hour_price": 2.0,
    "currency": "EUR",
    "usd_per_unit": 1.1,
    "usd_per_device_hour": 2.2,
    "preference": 0.3,
    "examples_per_step": None,
    "fixed_hardware": False,
}
RULE_ID = "00000000-0000-4000-8000-0000000000a1"
RULE = {
    "id": RULE_ID, "name": "slow", "kind": "stalled", "factor": None, "odds": None, "usd": None, "minutes": 15.0,
    "again_after_hours": 24.0, "muted_until": MOMENT, "created_at": MOMENT,
}  # fmt: skip
RECEIVER = {
    "id": RULE_ID, "name": "hook", "shape": "webhook", "host": "hooks.example.com", "email_to": None,
    "created_at": MOMENT,
}  # fmt: skip
SENT = {
    "receiver": "hook", "state": "undelivered", "num_attempts": 9, "answer": "given up: answered 500",
    "due_at": MOMENT, "done_at": MOMENT,
}  # fmt: skip
EVENT = {
    "id": RULE_ID, "rule": "slow", "kind": "stalled", "run_id": RULE_ID, "run": "big", "happened_at": MOMENT,
    "sentence": "Nothing has come for 15 minutes, and the run has not ended.", "is_muted": False, "deliveries": [SENT],
}  # fmt: skip
DRY_RUN = {
    "text": "This rule would have fired 3 times in the last week, over 12 runs.", "times": 3, "told": [],
    "num_runs": 12, "has_more": False,
}  # fmt: skip
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


def told(answer: Any) -> Any:
    """Answers so, and remembers in `said` what the body was."""

    async def remembered(request: Request) -> Any:
        request.app.state.stand_in.said[request.url.path] = await request.json()
        return answer

    return remembered


def giving(answer: dict[str, Any]) -> Callable[[], Awaitable[Any]]:
    """An endpoint that always answers this."""

    async def give() -> Any:
        return answer

    return give


def add_access_routes(app: FastAPI) -> None:
    """Add routes that answer what the page of settings asks, and takes every change."""

    async def nothing() -> None:
        return None

    async def made() -> Any:
        return NEW_KEY

    for path, answer in (
        ("me", ME),
        ("server", SERVER),
        ("keys", {"keys": KEYS}),
        ("people", {"people": PEOPLE}),
        ("audit", {"entries": ENTRIES, "next_before": None}),
    ):
        app.get(f"/api/v1/{path}")(giving(answer))
    app.get("/api/v1/projects/{project}/defaults")(giving(DEFAULTS))
    app.put("/api/v1/projects/{project}/defaults")(giving(DEFAULTS))
    for name, one in (("retention", {"fold_after_days": 90}), ("public", {"is_public": False, "is_allowed": True})):
        app.get(f"/api/v1/projects/{{project}}/{name}")(giving(one))
        app.put(f"/api/v1/projects/{{project}}/{name}")(told(one))
    app.get("/api/v1/runs/{run_id}/links")(giving({"links": [RUN_LINK]}))
    app.post("/api/v1/runs/{run_id}/links", status_code=201)(told(RUN_LINK | {"address": LINK_ADDRESS}))
    app.delete("/api/v1/runs/{run_id}/links/{link_id}", status_code=204)(nothing)
    alerts = "/api/v1/projects/{project}/alerts"
    for name, one in (("rules", RULE), ("receivers", RECEIVER), ("events", EVENT)):
        app.get(f"{alerts}/{name}")(giving({name: [one]}))
    app.post(f"{alerts}/rules", status_code=201)(giving(RULE))
    app.post(f"{alerts}/receivers", status_code=201)(giving(RECEIVER | {"secret": "whsec_once"}))
    app.post(f"{alerts}/dry-run")(giving(DRY_RUN))
    app.delete(f"{alerts}/rules/{{rule_id}}", status_code=204)(nothing)
    app.put(f"{alerts}/rules/{{rule_id}}")(giving(RULE))
    app.delete(f"{alerts}/receivers/{{receiver_id}}", status_code=204)(nothing)
    app.post(f"{alerts}/receivers/{{receiver_id}}/test", status_code=201)(giving({"event_id": RULE_ID}))
    app.post("/api/v1/keys", status_code=201)(made)
    app.post("/api/v1/people", status_code=201)(giving({"id": ADA}))
    app.patch("/api/v1/people/{person_id}")(giving(PEOPLE[0]))
    app.post("/api/v1/people/{person_id}/login-links", status_code=201)(giving({"url": LOGIN_LINK}))
    app.delete("/api/v1/people/{person_id}/sessions", status_code=204)(nothing)
    app.post("/api/v1/keys/{key_id}/rotation", status_code=201)(made)
    app.delete("/api/v1/keys/{key_id}", status_code=204)(nothing)
    app.put("/api/v1/projects/{project:path}/members/{person_id}", status_code=204)(nothing)
    app.delete("/api/v1/projects/{project:path}/members/{person_id}", status_code=204)(nothing)
