"""A tool's call: on whose behalf it asks, and how it answers."""

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, TextContent

from noisescale.agents.schemas import NoiseScale, Part, Quantity
from noisescale.config import Config
from noisescale.stored.api import Api, Refused
from noisescale.stored.finding import NotFound
from noisescale.transport.upload.http import HttpServer
from noisescale.version import __version__
from noisescale_core.errors import ConfigError, DomainError, TransportError

Asked = Context[Any, Any]
"""What the protocol says of a call; a tool takes it as its first argument."""

BEARER = "bearer "
KEY = re.compile(r"[!-~]+")
USER_AGENT = f"noisescale-mcp/{__version__}"
ANSWER_SECONDS = 20.0

DIGITS = 5
"""Significant digits of an answer: more would only be longer."""

P = ParamSpec("P")
S = TypeVar("S")

TO_DO = "start a server with `noisescale up`, or set NOISESCALE_URL to one that runs"


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


# How a tool answers: a short text, the same as structure, and errors in the server's own words.


def answer(text: str, part: Part) -> CallToolResult:
    """The result of a call.

    Args:
        text: Short, for people and for clients that read no structure.
        part: All of it.
    """
    structure = part.model_dump(mode="json", exclude_none=True)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=structure)


def in_words(
    tool: Callable[Concatenate[S, P], CallToolResult],
) -> Callable[Concatenate[S, P], CallToolResult]:
    """The tool, but what the server refuses, and what nobody answers, is a result that says so.

    Args:
        tool: A method that makes an answer.
    """

    @functools.wraps(tool)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> CallToolResult:
        try:
            return tool(self, *args, **kwargs)
        except TransportError as error:
            sentence = f"{error}; {TO_DO}"
        except (Refused, NotFound, ConfigError, DomainError) as error:
            sentence = str(error)
        return CallToolResult(content=[TextContent(type="text", text=sentence)], is_error=True)

    return call


def rounded(value: float | None) -> float | None:
    """A number with five significant digits.

    Args:
        value: None stays None.
    """
    return None if value is None else float(f"{value:.{DIGITS}g}")


def quantity(found: Mapping[str, Any] | None, unit: str) -> Quantity | None:
    """A number with its interval; None where the server has none.

    Args:
        found: As the server gives it.
        unit: Of all three numbers.
    """
    if not found:
        return None
    value, low, high = (rounded(found.get(name)) for name in ("value", "low", "high"))
    return Quantity(value=value, low=low, high=high, unit=unit)


def estimate(found: Mapping[str, Any], unit: str) -> NoiseScale:
    """A noise scale.

    Args:
        found: As the server gives it.
        unit: That it is counted in.
    """
    value, low, high, z = (rounded(found.get(name)) for name in ("value", "low", "high", "z"))
    return NoiseScale(
        value=value,
        low=low,
        high=high,
        unit=unit,
        state=found.get("state") or "unresolved",
        z=z,
        reason=found.get("reason_text"),
        num_updates=found.get("num_updates"),
        last_step=found.get("step"),
    )
