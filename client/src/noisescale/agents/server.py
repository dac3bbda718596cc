"""The server of the Model Context Protocol: which tools there are, and how it is told what they are for."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import ValidationError
from starlette.types import ASGIApp, Receive, Scope, Send

from noisescale.agents.advising import Advising
from noisescale.agents.calls import Caller, bearer_key
from noisescale.agents.changing import Changing
from noisescale.agents.explaining import Explaining
from noisescale.agents.reading_runs import ReadingRuns
from noisescale.agents.sweeps import ReadingSweeps
from noisescale.config import Config
from noisescale.version import __version__

MAX_WRONG = 5

INSTRUCTIONS = (
    "noisescale measures the gradient noise scale in training runs and says which batch size to train with. Batch "
    "sizes and noise scales are in examples (the field unit names them); intervals hold 95 %; numbers are rounded to "
    "five digits. Where a value is left out it is not known, and reason or refusal says why: do not make one up. Say "
    "the interval or the probability with each number. Runs are named by name, id, or the beginning of either."
)

HOST = "127.0.0.1"
PATH = "/mcp"
NO_KEY = (
    "this needs a key: send `Authorization: Bearer <key>` with each request; `noisescale keys create`, or the page "
    "Settings, makes one"
)


class AgentServer(MCPServer[Any]):
    """The SDK's server, but what is wrong with arguments is said in a sentence."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """The result of a call.

        Args:
            name: Of the tool.
            arguments: As the assistant gives them.
            context: What the protocol says of the call.

        Raises:
            ToolError: For an unknown tool, for wrong arguments, and for a fault of ours.
        """
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError(_what_is_wrong(name, error.__cause__)) from error.__cause__
            raise


def _what_is_wrong(name: str, error: ValidationError) -> str:
    """Each argument that is wrong, with what it must be and what it was."""
    said = [
        f"{'.'.join(map(str, one['loc']))}: {one['msg']}, got {one['input']!r}" for one in error.errors()[:MAX_WRONG]
    ]
    return f"{name} does not take these arguments: {'; '.join(said)}"


def make_server(caller: Caller, *, allows_changes: bool = False) -> "AgentServer":
    """A server of all tools.

    Args:
        caller: On whose behalf they ask.
        allows_changes: With those that change something.
    """
    reading = [_tool(one, is_read_only=True) for one in reading_tools(caller)]
    changing = [_tool(one, is_read_only=False) for one in Changing(caller).tools] if allows_changes else []
    return AgentServer(
        "noisescale",
        title="noisescale",
        description="Gradient noise scale of training runs, and which batch size to use",
        instructions=INSTRUCTIONS,
        version=__version__,
        tools=[*reading, *changing],
        log_level="WARNING",
    )


def reading_tools(caller: Caller) -> Iterator[Callable[..., Any]]:
    """The tools that change nothing.

    Args:
        caller: On whose behalf they ask.
    """
    yield from ReadingRuns(caller).tools
    yield from Advising(caller).tools
    yield from Explaining(caller).tools
    yield from ReadingSweeps(caller).tools


def _tool(function: Callable[..., Any], *, is_read_only: bool) -> Tool:
    """The tool of a function; an argument that it does not know is refused, as a misspelt limit would be none."""
    hints = ToolAnnotations(
        read_only_hint=is_read_only, destructive_hint=False, idempotent_hint=is_read_only, open_world_hint=False
    )
    tool = Tool.from_function(function, annotations=hints)
    arguments = tool.fn_metadata.arg_model
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    tool.parameters = without_titles(arguments.model_json_schema(by_alias=True))
    tool.fn_metadata.output_schema = without_titles(tool.fn_metadata.output_schema)
    return tool


def without_titles(schema: Any) -> Any:
    """A JSON schema without the titles that only repeat its names: they are a third of what an assistant has to read.

    Args:
        schema: Or a part of it.
    """
    if isinstance(schema, list):
        return [without_titles(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: without_titles(one) for name, one in schema.items() if name != "title" or not isinstance(one, str)}


# How assistants reach the tools: over standard input and output, or over HTTP with a key in each request.


def serve_stdio(read: Callable[[], Config], *, allows_changes: bool) -> None:
    """Serve whoever has started this process, with its key, until standard input ends.

    Args:
        read: Reads address of the noisescale server, and key.
        allows_changes: With the tools that change something.
    """
    make_server(Caller.of_process(read), allows_changes=allows_changes).run("stdio")


def serve_http(read: Callable[[], Config], *, port: int, allows_changes: bool) -> None:
    """Serve HTTP on this machine's own address, each request with the key that it brings.

    Args:
        read: Reads address of the noisescale server; the key is not used.
        port: To listen on.
        allows_changes: With the tools that change something.
    """
    app = http_app(read().url, allows_changes=allows_changes)
    uvicorn.run(app, host=HOST, port=port, log_level="warning")


def http_app(url: str, *, allows_changes: bool) -> ASGIApp:
    """The application: no session is kept, so nothing is known of anybody from one request to the next.

    Args:
        url: Of the noisescale server.
        allows_changes: With the tools that change something.
    """
    server = make_server(Caller.of_requests(url), allows_changes=allows_changes)
    return _with_key(server.streamable_http_app(streamable_http_path=PATH, stateless_http=True, host=HOST))


def _with_key(app: ASGIApp) -> ASGIApp:
    """The application for requests that bring a key; what the key may is for the noisescale server to say."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and bearer_key(_headers(scope)) is None:
            await _refuse(send)
        elif scope["type"] in ("http", "lifespan"):
            await app(scope, receive, send)

    return guarded


def _headers(scope: Scope) -> dict[str, str]:
    listed: list[tuple[bytes, bytes]] = scope["headers"]
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in listed}


async def _refuse(send: Send) -> None:
    problem: dict[str, Any] = {"title": "A key is needed", "status": 401, "detail": NO_KEY}
    headers = [(b"content-type", b"application/problem+json"), (b"www-authenticate", b"Bearer")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(problem).encode()})
