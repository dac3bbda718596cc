"""On whose behalf a tool asks: the key of the process, or that of the request."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mcp.server.mcpserver import Context

from noisescale.config import Config
from noisescale.stored.api import Api
from noisescale.transport.upload.http import HttpServer
from noisescale.version import __version__
from noisescale_core.errors import ConfigError

Asked = Context[Any, Any]
"""What the protocol says of a call; a tool takes it as its first argument."""

BEARER = "bearer "
KEY = re.compile(r"[!-~]+")
USER_AGENT = f"noisescale-mcp/{__version__}"
ANSWER_SECONDS = 20.0


class Caller:
    """Who asks, and where.

    Args:
        settings: Address of the noisescale server, and the key with which a call asks there.
    """

    def __init__(self, settings: Callable[[Asked], Config]) -> None:
        self._settings = settings

    @classmethod
    def of_process(cls, read: Callable[[], Config]) -> "Caller":
        """Every call asks with the key of the settings: whoever writes to standard input is who started the process.

        Args:
            read: Reads them, anew for each call: an assistant stays for days, and a server of the same user has a new
                key at every start.
        """
        return cls(lambda asked: read())

    @classmethod
    def of_requests(cls, url: str) -> "Caller":
        """Each call asks with the key that its own request has brought, never with one of the process.

        Args:
            url: Of the noisescale server.
        """
        return cls(lambda asked: Config(url=url, api_key=bearer_key(asked.headers or {})))

    @contextmanager
    def api(self, asked: Asked) -> Iterator[Api]:
        """The REST API as who has made this call.

        Args:
            asked: The call.

        Raises:
            ConfigError: For wrong settings, and for a key that is none.
        """
        settings = self._settings(asked)
        key = _checked(settings.api_key)
        api = Api(HttpServer(settings.url, key, USER_AGENT, answer_seconds=ANSWER_SECONDS))
        try:
            yield api
        finally:
            api.close()


def bearer_key(headers: Mapping[str, str]) -> str | None:
    """The key in `Authorization: Bearer <key>`; None without one.

    Args:
        headers: Of a request, by names of small letters.
    """
    said = headers.get("authorization", "")
    key = said[len(BEARER) :].strip() if said[: len(BEARER)].lower() == BEARER else ""
    return key or None


def _checked(key: str | None) -> str | None:
    """The key, which a header can hold: what refuses it there would say it, and an assistant keeps what is said.

    Raises:
        ConfigError: That does not say it.
    """
    if key is not None and not KEY.fullmatch(key):
        raise ConfigError("the key holds characters that no key has, such as a space or the end of a line: set it anew")
    return key
