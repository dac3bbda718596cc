"""`noisescale share` and `noisescale public`, run here against a real database."""

import argparse
from uuid import UUID, uuid4

import httpx
import pytest

from factories import make_batch, make_measurements, make_run
from noisescale_server.cli import sharing
from served_app import TOKEN, served_app


def run(*arguments: str) -> int:
    """The exit code of a command run here."""
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers()
    sharing.register_share(subparsers)
    sharing.register_public(subparsers)
    parsed = parser.parse_args(arguments)
    code: int = parsed.run(parsed)
    return code


@pytest.fixture
def database(database_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("NOISESCALE_DATABASE_URL", database_url)
    return database_url


def test_a_link_is_made_listed_and_ended_and_shows_its_run_alone(
    database: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = uuid4()
    with served_app(database) as address:
        body = make_batch(run_id=str(run_id), run=make_run(), measurements=make_measurements(first_seq=2))
        headers = {"Authorization": f"Bearer {TOKEN}"}
        sent = httpx.post(f"{address}/api/v1/streams/{uuid4()}/batches", json=body, headers=headers)
        assert sent.status_code == 200, sent.text
        monkeypatch.setenv("NOISESCALE_PUBLIC_URL", address)

        assert run("share", str(run_id), "--hours", "24") == 0
        link, words = capsys.readouterr().out.splitlines()[:2]
        assert run("share", str(run_id)) == 0
        listed = capsys.readouterr().out
        first = httpx.get(link)

        assert f"shows run {run_id} and nothing else until" in words
        assert listed.endswith(f"1 link of run {run_id}\n")
        assert (first.status_code, first.headers["location"]) == (303, f"/runs/{run_id}")

        assert run("share", str(run_id), "--end", listed.split()[0]) == 0
        assert httpx.get(link).status_code == 403


def test_a_run_that_is_not_there_is_named(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("share", str(UUID(int=1))) == 1
    assert "00000000-0000-0000-0000-000000000001" in capsys.readouterr().err


def test_a_project_is_not_opened_on_a_server_that_opens_none(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("public", "demo", "on") == 1
    assert "NOISESCALE_PUBLIC_PROJECTS=true" in capsys.readouterr().err
