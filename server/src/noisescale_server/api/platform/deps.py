"""What endpoints ask for: a session per request, the settings, the clock, and the common parameter types."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Path, Request
from pydantic import AfterValidator, BaseModel, Field
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.process.settings import Settings
from noisescale_server.services.access.access import Projects
from noisescale_server.services.platform.errors import refuse
from noisescale_server.services.series.whole_run import WholeRuns
from noisescale_server.storage.access.visibility import KEY, ONLY_RUN

MAX_INT64 = 2**63 - 1
MAX_IDS = 200

# C0 and C1 controls, lone surrogates, and overrides and isolates of text direction: they make a name read as another.
# One search in C: a batch may hold millions of characters of names.
CONTROL_CHARACTERS = r"\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Inside the brackets of a regular expression; surrogates apart, which only Python's strings can hold alone."""
CONTROL_CHARACTER = re.compile(rf"[{CONTROL_CHARACTERS}\ud800-\udfff]")


def refuse_control_characters(text: str) -> str:
    """The text itself.

    Raises:
        ValueError: When a control character, a lone surrogate or a bidirectional control is in it.
    """
    found = CONTROL_CHARACTER.search(text)
    if found is not None:
        raise ValueError(f"has the control character U+{ord(found[0]):04X} at position {found.start()}: leave it out")
    return text


def check_range(low_name: str, low: float | None, high_name: str, high: float | None) -> None:
    """Raise unless the range is open or the right way round.

    Raises:
        InvalidInput: When low exceeds high.
    """
    if low is not None and high is not None and low > high:
        raise refuse(low_name, f"must not exceed {high_name}, got {low} and {high}: exchange them", low)


def read_ids(listed: str, most: int = MAX_IDS) -> list[UUID]:
    """The UUIDs of a comma-separated list.

    Raises:
        InvalidInput: For one that is no UUID, or more than that many.
    """
    parts = listed.split(",")
    if len(parts) > most:
        raise refuse("ids", f"has {len(parts)} ids, at most {most} are read: ask in pieces")
    found = []
    for position, part in enumerate(parts):
        try:
            found.append(UUID(part))
        except ValueError as error:
            raise refuse(f"ids[{position}]", "must be a UUID", part) from error
    return found


# without a wait in them, and coroutines all the same: FastAPI sends a plain function through a thread and back
async def get_settings(request: Request) -> Settings:
    """The settings that `create_app` was given."""
    settings: Settings = request.app.state.settings
    return settings


async def get_whole_runs(request: Request) -> WholeRuns:
    """The figures of whole runs that this process has computed."""
    whole_runs: WholeRuns = request.app.state.whole_runs
    return whole_runs


async def get_now() -> datetime:
    """The server's clock; tests override it."""
    return datetime.now(UTC)


def projects_of(request: Request) -> Projects:
    """The projects that this request may see; none before `authorize` has spoken."""
    projects: Projects = getattr(request.state, "projects", frozenset())
    return projects


def seen_by(request: Request) -> dict[str, Any]:
    """What a session of this request is to be kept to."""
    return {KEY: projects_of(request), ONLY_RUN: getattr(request.state, "only_run", None)}


async def get_session(request: Request) -> AsyncIterator[AsyncSession]:
    """A session in one transaction, committed before the answer is sent and rolled back on any error.

    It sees the projects in which its sender may do what the route does, and none outside the API.
    """
    async with request.app.state.sessions(info=seen_by(request)) as session, session.begin():
        yield session


async def get_read_session(request: Request) -> AsyncIterator[AsyncSession]:
    """The same for reading, on the replica where there is one."""
    async with request.app.state.read_sessions(info=seen_by(request)) as session, session.begin():
        yield session


async def get_plain_read_session(request: Request) -> AsyncIterator[AsyncSession]:
    """The same without BEGIN and COMMIT, for what is asked most: in a transaction, too, each statement reads anew.

    Statements that hold for a transaction, as SET LOCAL, say nothing in it.
    """
    async with request.app.state.plain_read_sessions(info=seen_by(request)) as session:
        yield session


# scope="function": otherwise FastAPI commits after the 201 has been sent.
Session = Annotated[AsyncSession, Depends(get_session, scope="function")]
ReadSession = Annotated[AsyncSession, Depends(get_read_session, scope="function")]
PlainReadSession = Annotated[AsyncSession, Depends(get_plain_read_session, scope="function")]
AppSettings = Annotated[Settings, Depends(get_settings)]
KnownWholeRuns = Annotated[WholeRuns, Depends(get_whole_runs)]
Now = Annotated[datetime, Depends(get_now)]

RunId = Annotated[UUID, Path(description="UUID of the run")]
StreamId = Annotated[UUID, Path(description="UUID of the stream")]

NO_CONTROL_CHARACTER = {"pattern": f"^[^{CONTROL_CHARACTERS}]*$"}
"""What OpenAPI says of texts that `refuse_control_characters` reads; the sentence of a refusal is that one's."""

Text = Annotated[
    str, Field(max_length=256, json_schema_extra=NO_CONTROL_CHARACTER), AfterValidator(refuse_control_characters)
]
"""Free text to search or filter by."""

_UUID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
UUIDS = {"pattern": f"^{_UUID}(,{_UUID})*$"}
"""What OpenAPI says of lists that `read_ids` reads."""

TwentyIds = Annotated[
    str,
    Field(
        min_length=1,
        max_length=1_000,
        description="UUIDs, separated by commas; at most 20",
        json_schema_extra=UUIDS,
    ),
]
"""For `read_ids`, where each of them takes its time."""

Step = Annotated[int, Field(ge=0, le=MAX_INT64)]
Number = Annotated[float, Field(allow_inf_nan=False)]

PROBLEM_SCHEMA = {"$ref": "#/components/schemas/Problem"}


def problem_said(description: str) -> dict[str, Any]:
    """What OpenAPI says about an error's answer."""
    return {"description": description, "content": {"application/problem+json": {"schema": PROBLEM_SCHEMA}}}


PROBLEM_RESPONSES: dict[int | str, dict[str, Any]] = {
    401: problem_said("a key or a login is needed"),
    403: problem_said("known, and not allowed this"),
    404: problem_said("not found"),
    405: problem_said("another method is needed; see Allow"),
    409: problem_said("contradicts what is stored"),
    422: problem_said("input cannot be accepted; `errors` names the fields"),
    429: problem_said("too many wrong keys, or too many reads or batches from one sender; see Retry-After"),
    503: problem_said("database does not answer; see Retry-After"),
}

BODY_RESPONSES: dict[str, dict[str, Any]] = {
    "400": problem_said("the connection ended before the body was complete"),
    "413": problem_said("the body is over a limit, sent or inflated"),
    "415": problem_said("the body is neither JSON nor JSON in one gzip"),
}

RUN_DELETED: dict[int | str, dict[str, Any]] = {410: problem_said("the run was deleted: nothing more of it is kept")}


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """What OpenAPI says about a body that the endpoint reads itself."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    return {"requestBody": body, "responses": BODY_RESPONSES}


def refuse_number(value: object) -> object:
    """The value itself.

    Raises:
        ValueError: For a number, which could be seconds or milliseconds.
    """
    if isinstance(value, str) and value.strip().replace(".", "", 1).lstrip("+-").isdigit():
        raise ValueError("is a number: give date, time and zone, as 2026-11-22T14:00:00Z")
    return value
