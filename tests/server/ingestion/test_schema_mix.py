"""Clients and servers of different releases: what a released client sent is stored, once, by today's server."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from noisescale_server.services.ingest import ledger

PAYLOADS = sorted((Path(__file__).parents[2] / "contract" / "payloads").glob("*.json"))


def recorded(path: Path) -> dict[str, Any]:
    """A batch of a released client, for a run of its own."""
    body: dict[str, Any] = json.loads(path.read_text()) | {"run_id": str(uuid4())}
    return body


@pytest.mark.parametrize("path", PAYLOADS, ids=lambda path: path.stem)
async def test_a_released_clients_batch_is_stored_once_by_todays_server(
    app: FastAPI, client: httpx.AsyncClient, path: Path
) -> None:
    body, address = recorded(path), f"/api/v1/streams/{uuid4()}"

    answers = [await client.post(f"{address}/batches", json=body) for _ in range(2)]

    stream = (await client.get(address)).json()
    assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
    assert {answer.json()["acked_seq"] for answer in answers} == {body["last_seq"]}
    assert stream["acked_seq"] == stream["num_stored"] + stream["num_lost"] + stream["num_rejected"]
    async with app.state.sessions() as session:
        assert (await ledger.audit(session)).wrong == []


@pytest.mark.parametrize("path", PAYLOADS, ids=lambda path: path.stem)
async def test_a_batch_with_a_field_of_a_later_release_names_it(client: httpx.AsyncClient, path: Path) -> None:
    """A later client sends an older version of the format, or waits: 422 says which field it has to leave out."""
    body = recorded(path) | {"later": 1}

    answer = await client.post(f"/api/v1/streams/{uuid4()}/batches", json=body)

    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == ["later"]
