"""A server that would let others in without asking who they are does not start, and says what is missing."""

from typing import Any

import pytest

from noisescale_server import start_policy
from noisescale_server.settings import Settings
from noisescale_server.start_policy import StartRefused

GOOD: dict[str, Any] = {
    "auth": "required",
    "host": "0.0.0.0",
    "secret_key": "Vw3rT9-qLk2_x8ZpQ0sDfGhJ4bNmC6vB",
    "public_url": "https://noisescale.example.com",
    "behind_tls_proxy": True,
}


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
