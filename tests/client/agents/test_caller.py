"""On whose behalf a tool asks: the settings are read anew for each call, and a request brings its own key."""

from types import SimpleNamespace

import pytest

from noisescale.agents.calls import Caller, bearer_key
from noisescale.config import Config
from noisescale_core.errors import ConfigError


def asked(**headers):
    return SimpleNamespace(headers=headers or None)


def key_of(api):
    return api._server._headers.get("Authorization")


def test_a_server_that_was_started_again_meanwhile_is_asked_with_its_new_key():
    settings = [Config(url="http://127.0.0.1:1", api_key="old"), Config(url="http://127.0.0.1:2", api_key="new")]
    caller = Caller.of_process(lambda: settings.pop(0))

    with caller.api(asked()) as first, caller.api(asked()) as second:
        assert (first.url, key_of(first)) == ("http://127.0.0.1:1", "Bearer old")
        assert (second.url, key_of(second)) == ("http://127.0.0.1:2", "Bearer new")


def test_a_request_asks_with_its_own_key_or_with_none():
    caller = Caller.of_requests("http://127.0.0.1:1")

    with caller.api(asked(authorization="Bearer mine")) as own, caller.api(asked()) as none:
        assert key_of(own) == "Bearer mine"
        assert key_of(none) is None


@pytest.mark.parametrize("said", ["", "Bearer", "Bearer ", "Basic YTpi", "mine", "Bearermine"])
def test_what_is_no_bearer_key_is_none(said):
    assert bearer_key({"authorization": said}) is None


@pytest.mark.parametrize("key", ["with space", "line\n", "kéy", "\x00"])
def test_a_key_that_no_header_can_hold_is_refused_without_being_said(key):
    caller = Caller.of_process(lambda: Config(api_key=key))

    with pytest.raises(ConfigError, match="the key holds characters") as refused, caller.api(asked()):
        pass

    assert key not in str(refused.value)
