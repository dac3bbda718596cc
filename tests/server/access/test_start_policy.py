"""A server that would let others in without asking who they are does not start, and says what is missing."""

import argparse
import os
from pathlib import Path
from typing import Any

import pytest

from noisescale_server.cli import commands
from noisescale_server.process import start_policy
from noisescale_server.process.settings import Settings
from noisescale_server.process.start_policy import StartRefused

GOOD: dict[str, Any] = {
    "auth": "required",
    "host": "0.0.0.0",
    "secret_key": "Vw3rT9-qLk2_x8ZpQ0sDfGhJ4bNmC6vB",
    "public_url": "https://noisescale.example.com",
    "behind_tls_proxy": True,
}


TEAM = {
    "NOISESCALE_AUTH": "required",
    "NOISESCALE_HOST": "127.0.0.1",
    "NOISESCALE_SECRET_KEY": GOOD["secret_key"],
    "NOISESCALE_PUBLIC_URL": GOOD["public_url"],
    "NOISESCALE_BEHIND_TLS_PROXY": "true",
}
NO_DATABASE = "postgresql+asyncpg://nobody@127.0.0.1:1/none"


def test_a_team_server_with_everything_starts() -> None:
    start_policy.check(Settings(**GOOD))


def test_a_local_server_on_loopback_starts_without_any_setting() -> None:
    start_policy.check(Settings())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "noisescale.example.com", ""])
def test_a_local_server_does_not_listen_beyond_this_machine(host: str) -> None:
    with pytest.raises(StartRefused, match="NOISESCALE_AUTH=required"):
        start_policy.check(Settings(host=host))


@pytest.mark.parametrize(
    "changed",
    [{"behind_tls_proxy": True}, {"public_url": "https://x.example"}, {"proxy_user_header": "X-User"}],
    ids=str,
)
def test_a_local_server_with_a_teams_setting_asks_which_it_is_to_be(changed: dict[str, Any]) -> None:
    with pytest.raises(StartRefused, match="set NOISESCALE_AUTH=required, or leave it out"):
        start_policy.check(Settings(**changed))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"secret_key": None}, "NOISESCALE_SECRET_KEY has 0 bytes, a team's server needs at least 32"),
        ({"secret_key": "x" * 31}, "has 31 bytes"),
        ({"secret_key": "changeme" * 8}, "can be guessed"),
        ({"secret_key": "0" * 64}, "can be guessed"),
        ({"public_url": None}, "needs the https address"),
        ({"public_url": "http://noisescale.example.com"}, "needs the https address"),
        ({"public_url": "https://noisescale.example.com/path"}, "without a path"),
        ({"behind_tls_proxy": False}, "nothing encrypts what comes in"),
        ({"behind_tls_proxy": False, "tls_certificate": "/none.pem"}, "nothing encrypts what comes in"),
        ({"tls_certificate": "/none.pem", "tls_key": "/none.pem"}, "cannot be read"),
        ({"proxy_user_header": "X-User"}, "would let anybody be anybody"),
        ({"oidc_issuer": "https://login.example.com"}, "needs NOISESCALE_OIDC_CLIENT_ID and NOISESCALE_OIDC_CLIENT_SE"),
    ],
    ids=str,
)
@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
def test_a_team_server_without_one_of_these_does_not_start(host: str, changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(StartRefused, match=sentence):
        start_policy.check(Settings(**{**GOOD, "host": host, **changed}))


BAD: list[tuple[dict[str, str], str]] = [
    ({"NOISESCALE_HOST": "0.0.0.0"}, "set NOISESCALE_AUTH=required"),
    ({"NOISESCALE_PUBLIC_URL": "https://x.example"}, "set NOISESCALE_AUTH=required, or leave it out"),
    ({"NOISESCALE_AUTH": "none"}, "NOISESCALE_AUTH"),
    ({"NOISESCALE_AUTH": "off", "NOISESCALE_HOST": "0.0.0.0"}, "NOISESCALE_AUTH"),
    ({"NOISESCALE_LOCAL_TOKEN": "secret@short"}, "NOISESCALE_LOCAL_TOKEN) is not acceptable: "),
    ({"NOISESCALE_PORT": "70000"}, "NOISESCALE_PORT"),
    ({"NOISESCALE_MAX_BODY_BYTES": "0"}, "NOISESCALE_MAX_BODY_BYTES"),
    ({"NOISESCALE_DATABASE_URL": ""}, "NOISESCALE_DATABASE_URL is no address of a Postgres: write postgresql://"),
    ({"NOISESCALE_DATABASE_URL": "mysql://a:secret@b/c"}, "NOISESCALE_DATABASE_URL is no address of a Postgres"),
    ({"NOISESCALE_DATABASE_READ_URL": "db.example:5432"}, "NOISESCALE_DATABASE_READ_URL is no address of a Postgres"),
    ({**TEAM, "NOISESCALE_SECRET_KEY": ""}, "make one with python -c"),
    ({**TEAM, "NOISESCALE_SECRET_KEY": "changeme" * 8}, "can be guessed"),
    ({**TEAM, "NOISESCALE_PUBLIC_URL": "http://x.example"}, "needs the https address"),
    ({**TEAM, "NOISESCALE_BEHIND_TLS_PROXY": "false"}, "set NOISESCALE_TLS_CERTIFICATE"),
    ({**TEAM, "NOISESCALE_BEHIND_TLS_PROXY": "maybe"}, "NOISESCALE_BEHIND_TLS_PROXY"),
    ({**TEAM, "NOISESCALE_TRUSTED_PROXIES": '["everybody"]'}, "NOISESCALE_TRUSTED_PROXIES"),
    ({**TEAM, "NOISESCALE_PROXY_USER_HEADER": "X-User"}, "name the networks of the proxies"),
    ({**TEAM, "NOISESCALE_OIDC_ISSUER": "https://login.example"}, "needs NOISESCALE_OIDC_CLIENT_ID"),
    (TEAM, "noisescale migrate"),
]
"""Environments in which `noisescale serve` does not start, and what it says; the last one lacks its database alone."""


@pytest.mark.parametrize(("environment", "sentence"), BAD, ids=lambda one: str(one)[:60])
def test_the_command_ends_with_1_and_says_what_to_do(
    environment: dict[str, str],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in [name for name in os.environ if name.startswith("NOISESCALE_")]:
        monkeypatch.delenv(name)
    everywhere = {"NOISESCALE_DIR": str(tmp_path), "NOISESCALE_DATABASE_URL": NO_DATABASE, "NOISESCALE_PORT": "0"}
    for name, value in (everywhere | environment).items():
        monkeypatch.setenv(name, value)
    parser = argparse.ArgumentParser()
    commands.register_serve(parser.add_subparsers())
    parsed = parser.parse_args(["serve"])

    exit_code = parsed.run(parsed)

    said = capsys.readouterr().err
    assert exit_code == 1
    assert sentence in said
    assert said.count("\n") == 1
    assert "Traceback" not in said
    assert "secret@" not in said
