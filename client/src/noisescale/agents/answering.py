"""How a tool answers: a short text, the same as structure, and errors in the server's own words."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

from mcp.types import CallToolResult, TextContent

from noisescale.agents.schemas import NoiseScale, Part, Quantity
from noisescale.stored.api import Refused
from noisescale.stored.finding import NotFound
from noisescale_core.errors import ConfigError, DomainError, TransportError

DIGITS = 5
"""Significant digits of an answer: more would only be longer."""

P = ParamSpec("P")
S = TypeVar("S")

TO_DO = "start a server with `noisescale up`, or set NOISESCALE_URL to one that runs"


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
