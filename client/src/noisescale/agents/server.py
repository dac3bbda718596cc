"""The server of the Model Context Protocol: which tools there are, and how it is told what they are for."""

from collections.abc import Callable, Iterator
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import ValidationError

from noisescale.agents.advising import Advising
from noisescale.agents.caller import Caller
from noisescale.agents.changing import Changing
from noisescale.agents.explaining import Explaining
from noisescale.agents.reading_runs import ReadingRuns
from noisescale.agents.sweeps import ReadingSweeps
from noisescale.version import __version__

MAX_WRONG = 5

INSTRUCTIONS = (
    "noisescale measures the gradient noise scale in training runs and says which batch size to train with. Batch "
    "sizes and noise scales are in examples (the field unit names them); intervals hold 95 %; numbers are rounded to "
    "five digits. Where a value is left out it is not known, and reason or refusal says why: do not make one up. Say "
    "the interval or the probability with each number. Runs are named by name, id, or the beginning of either."
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
