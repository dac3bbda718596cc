"""API keys for tests, made over REST by whoever the client is."""

import httpx


async def new_key(client: httpx.AsyncClient, scope: str, *projects: str, days: int = 1) -> str:
    """The text of a key; without projects one for all of them."""
    body = {"name": f"a {scope} key", "scope": scope, "projects": list(projects) or None, "days": days}
    answer = await client.post("/api/v1/keys", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["key"])


def bearer(key: str) -> dict[str, str]:
    """The header that shows a key."""
    return {"Authorization": f"Bearer {key}"}
