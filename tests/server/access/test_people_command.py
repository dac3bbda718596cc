"""`noisescale people` and `noisescale keys`, run here against a real database."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.cli import keys as keys_command
from noisescale_server.cli import people as people_command
from noisescale_server.cli import upkeep
from noisescale_server.embedded import EmbeddedPostgres
from noisescale_server.process.settings import Settings
from noisescale_server.services.access import keys, sessions
from noisescale_server.services.access import people as people_service
from noisescale_server.services.access.access import EVERYTHING, LOCAL, Principal
from noisescale_server.services.access.keys import NewKey
from principals import PUBLIC_URL, SECRET
from quick import quick_or_slow

OURS = "ours"


def run(*arguments: str) -> int:
    """The exit code of a command run here."""
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers()
    for register in (
        keys_command.register_keys,
        people_command.register_people,
        upkeep.register_audit,
        upkeep.register_new_epoch,
        upkeep.register_restore,
    ):
        register(subparsers)
    parsed = parser.parse_args(arguments)
    code: int = parsed.run(parsed)
    return code


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOISESCALE_AUTH", "required")
    monkeypatch.setenv("NOISESCALE_SECRET_KEY", SECRET)
    monkeypatch.setenv("NOISESCALE_PUBLIC_URL", PUBLIC_URL)


@pytest.fixture
def database(database_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("NOISESCALE_DATABASE_URL", database_url)
    return database_url


@pytest.fixture
def ada(database: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The id of the first admin."""
    assert run("keys", "create-admin", "Ada") == 0
    assert run("people", "list") == 0
    return capsys.readouterr().out.splitlines()[-1].split()[0]


async def grace_with_a_key(session: AsyncSession) -> tuple[str, str]:
    """Id and key of a member of our project."""
    person_id = await people_service.add(session, LOCAL, name="Grace", email=None, is_administrator=False)
    maker = Principal("person", str(person_id), "Grace", everywhere=EVERYTHING, person_id=person_id)
    new = NewKey("job", "write", [OURS])
    await keys.create(session, LOCAL, NewKey("other", "write", [OURS]), pepper=SECRET.encode(), now=datetime.now(UTC))
    await people_service.set_role(session, LOCAL, OURS, person_id, "member")
    made = await keys.create(session, maker, new, pepper=SECRET.encode(), now=datetime.now(UTC))
    return str(person_id), made.id


def lines_about(what: str, word: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    assert run(what, "list") == 0
    return [line for line in capsys.readouterr().out.splitlines() if word in line]


def test_somebody_is_taken_out_by_command_and_their_key_with_them(
    database: str, ada: str, capsys: pytest.CaptureFixture[str]
) -> None:
    grace, key = asyncio.run(upkeep.in_transaction(database, grace_with_a_key))
    before = lines_about("people", "Grace", capsys), lines_about("keys", key, capsys)
    codes = [run("people", "disable", grace)]
    said = capsys.readouterr().out
    after = lines_about("people", "Grace", capsys), lines_about("keys", key, capsys)
    codes.append(run("people", "enable", grace))
    again = lines_about("people", "Grace", capsys), lines_about("keys", key, capsys)

    assert codes == [0, 0]
    assert "refuse their keys within 5 s" in said
    assert ["enabled" in before[0][0], "disabled" in after[0][0], "enabled" in again[0][0]] == [True] * 3
    assert ["in force" in before[1][0], "revoked" in after[1][0], "revoked" in again[1][0]] == [True] * 3


def test_roles_and_administration_are_given_and_taken_away(
    database: str, ada: str, capsys: pytest.CaptureFixture[str]
) -> None:
    grace, key = asyncio.run(upkeep.in_transaction(database, grace_with_a_key))
    seen = []
    for action in (
        ("set-role", grace, OURS, "viewer"),
        ("remove", grace, OURS),
        ("make-admin", grace),
        ("unmake-admin", grace),
    ):
        assert run("people", *action) == 0
        seen.append(lines_about("people", "Grace", capsys)[0])

    assert ["viewer in ours" in seen[0], "no role" in seen[1], "admin of all" in seen[2], "no role" in seen[3]] == [
        True
    ] * 4
    assert "revoked" in lines_about("keys", key, capsys)[0]


@pytest.mark.parametrize("action", ["disable", "unmake-admin"])
def test_the_last_admin_stays(database: str, ada: str, capsys: pytest.CaptureFixture[str], action: str) -> None:
    assert run("people", action, ada) == 1
    assert "'Ada' is the last admin of all projects" in capsys.readouterr().err


def test_somebody_who_lost_their_login_gets_a_link(database: str, ada: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("people", "login-link", ada) == 0
    assert capsys.readouterr().out.startswith(f"{PUBLIC_URL}/login?link=")


def test_nobody_is_404_in_words(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("people", "disable", str(uuid4())) == 1
    assert "nobody has the id" in capsys.readouterr().err


COMMANDS = (
    ("keys", "create-admin", "Ada"),
    ("audit",),
    ("keys", "list"),
    ("keys", "create", "job", "--project", "p"),
    ("people", "list"),
    ("people", "disable", "00000000-0000-4000-8000-000000000000"),
    ("new-epoch",),
)


@pytest.mark.parametrize("command", quick_or_slow(COMMANDS, COMMANDS[:2]), ids=" ".join)
def test_a_fresh_database_is_said_to_need_a_migration(
    postgres: EmbeddedPostgres,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: tuple[str, ...],
) -> None:
    postgres.create_database(name := f"empty_{uuid4().hex[:8]}")
    monkeypatch.setenv("NOISESCALE_DATABASE_URL", postgres.url(name))

    assert run(*command) == 1
    assert capsys.readouterr().err == (
        "noisescale: the database lacks tables of this release: run `noisescale migrate` first\n"
    )


def test_a_database_that_is_away_is_said_to_be(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NOISESCALE_DATABASE_URL", f"postgresql://x@/none?host={tmp_path}")

    assert run("keys", "list") == 1
    assert "the database does not answer" in capsys.readouterr().err


class TestGoingBack:
    """A backup knows nothing of what was ended after it."""

    @pytest.fixture
    def backup(self, database: str, ada: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
        """A backup with a login, a login link and two keys."""
        asyncio.run(upkeep.in_transaction(database, grace_with_a_key))
        asyncio.run(upkeep.in_transaction(database, self.logged_in(UUID(ada))))
        file = tmp_path / "monday.backup"
        assert upkeep.back_up(Settings(), file=file) == 0
        capsys.readouterr()
        return file

    @staticmethod
    def logged_in(person_id: UUID) -> Callable[[AsyncSession], Awaitable[None]]:
        async def log_in(session: AsyncSession) -> None:
            await sessions.log_in(session, person_id, now=datetime.now(UTC), how="test")

        return log_in

    @pytest.fixture
    def other_database(self, postgres: EmbeddedPostgres, backup: Path, monkeypatch: pytest.MonkeyPatch) -> str:
        postgres.create_database(name := f"restored_{uuid4().hex[:8]}")
        monkeypatch.setenv("NOISESCALE_DATABASE_URL", postgres.url(name))
        return postgres.url(name)

    @staticmethod
    async def alive(session: AsyncSession) -> tuple[int, int, int]:
        """Sessions, links and keys in force."""
        counts = [
            await session.scalar(text(f"SELECT count(*) FROM {what}"))
            for what in ("web_session", "login_attempt", "api_key WHERE revoked_at IS NULL")
        ]
        return counts[0], counts[1], counts[2]

    def test_restore_ends_logins_and_keys_and_says_which(
        self, other_database: str, backup: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run("restore", str(backup)) == 0
        said = capsys.readouterr().out

        assert asyncio.run(upkeep.in_transaction(other_database, self.alive)) == (0, 0, 0)
        assert "everybody has to log in again (1 logins have ended)" in said
        assert said.count("has ended: it may have been revoked since") == 2

    def test_keys_that_nobody_has_revoked_since_may_stay_and_logins_end_all_the_same(
        self, other_database: str, backup: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run("restore", str(backup), "--keep-keys") == 0
        said = capsys.readouterr().out

        assert asyncio.run(upkeep.in_transaction(other_database, self.alive)) == (0, 0, 2)
        assert "also those that were revoked since" in said

    def test_restoring_in_another_way_ends_them_with_the_epoch(
        self, database: str, backup: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run("new-epoch") == 0

        assert asyncio.run(upkeep.in_transaction(database, self.alive)) == (0, 0, 0)
