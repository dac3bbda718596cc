"""Request bodies: bounded in size, inflated, and parsed into a model; what is refused says which field and why."""

import reprlib
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.datastructures import Headers

from noisescale_server.api.platform.refusals import BodyTooLarge, MediaTypeNotSupported
from noisescale_server.services.platform.errors import FieldProblem, InvalidInput, refuse

ModelT = TypeVar("ModelT", bound=BaseModel)

MAX_PROBLEMS = 20
"""Problems named in one answer; a column of 2,000 wrong values needs no 2,000 sentences."""

MAX_SHOWN_CHARACTERS = 80

GZIP_WINDOW = 16 + zlib.MAX_WBITS
"""Tells zlib to expect a gzip header and to check its CRC."""

TWO_MEMBERS = "has bytes after the end of its gzip stream: send one gzip member"

PIECE_BYTES = 16 << 10
ALWAYS_INFLATED_BYTES = 512 << 10
MAX_INFLATION = 20
"""Bytes out for a byte in, beyond what one record may hold. JSON of measurements packs 2- to 5-fold, a bomb
1,000-fold: it is refused in half a millisecond, not when it has filled the whole limit while all others wait."""

MESSAGES = {
    "extra_forbidden": "unknown field",
    "missing": "is required",
    "json_type": "must be JSON",
}


def _short_repr() -> reprlib.Repr:
    short = reprlib.Repr()
    short.maxlevel, short.maxdict, short.maxlist, short.maxtuple = 2, 3, 3, 3
    short.maxstring, short.maxlong, short.maxother = MAX_SHOWN_CHARACTERS, 40, 60
    return short


_SHORT = _short_repr()


def shown(value: object) -> str:
    """A printable form of any value, at most 80 characters."""
    return _SHORT.repr(value)[:MAX_SHOWN_CHARACTERS]


async def read_body(request: Request) -> bytes:
    """The body as sent, or inflated when it is gzip; never more than the limits of the settings.

    Raises:
        BodyTooLarge: By the announced length, by the bytes that came, packed or inflated, or by a bomb's inflation.
        MediaTypeNotSupported: For another content type than JSON, or another encoding than one gzip.
        InvalidInput: When the gzip stream is damaged, cut short, or followed by anything.
    """
    settings = request.app.state.settings
    _require_json(request)
    is_gzip = _is_gzip(request)
    check_announced_length(request.headers, settings.max_body_bytes)
    if is_gzip:
        return await _read_gzip(request, settings.max_body_bytes, settings.max_inflated_body_bytes)
    return await _read_plain(request, settings.max_body_bytes)


def parse(model: type[ModelT], raw: bytes) -> ModelT:
    """The model read from JSON bytes.

    Raises:
        InvalidInput: Names every refused field, the first 20 of them.
    """
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise invalid_input(error.errors(include_url=False), skip_location=0) from error


def invalid_input(errors: Sequence[Mapping[str, Any]], *, skip_location: int) -> InvalidInput:
    """Pydantic's errors as ours; `skip_location` drops FastAPI's leading "query", "path" or "body"."""
    problems = [field_problem(error, skip_location) for error in errors[:MAX_PROBLEMS]]
    return InvalidInput(problems, count=len(errors))


def check_announced_length(headers: Headers, limit: int) -> None:
    """Raise where a length is announced that is no number within the limit.

    Raises:
        InvalidInput: For something else than a number.
        BodyTooLarge: For a larger one.
    """
    announced = headers.get("content-length", "0")
    if not (announced.isascii() and announced.isdigit()):
        raise refuse("Content-Length", "must be a number of bytes", announced)
    # Twenty digits are more than any limit, and int() refuses very long ones.
    if len(announced) > 20 or int(announced) > limit:
        raise BodyTooLarge("sent", limit)


def field_path(location: Sequence[int | str]) -> str:
    """`measurements.step[3]` for ("measurements", "step", 3); "body" for the whole."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            name = part if part.isidentifier() else shown(part)
            path += f".{name}" if path else name
    return path[: 3 * MAX_SHOWN_CHARACTERS] or "body"


def field_problem(error: Mapping[str, Any], skip_location: int) -> FieldProblem:
    """One of Pydantic's errors as ours; `skip_location` as of `invalid_input`."""
    kind = error["type"]
    # A missing field has no value, and a body that is not JSON would be repeated as a whole.
    value = None if kind in ("missing", "json_invalid") else shown(error.get("input"))
    message = MESSAGES.get(kind) or error["msg"].removeprefix("Value error, ")
    return FieldProblem(field_path(error["loc"][skip_location:]), message, value)


def _require_json(request: Request) -> None:
    content_type = request.headers.get("content-type", "")
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise MediaTypeNotSupported(f"Content-Type is {shown(content_type)}: send application/json")


def _is_gzip(request: Request) -> bool:
    encoding = ",".join(request.headers.getlist("content-encoding")).strip().lower()
    if encoding in ("", "identity"):
        return False
    if encoding == "gzip":
        return True
    raise MediaTypeNotSupported(f"Content-Encoding is {shown(encoding)}: send gzip once, or none")


async def _read_plain(request: Request, limit: int) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise BodyTooLarge("sent", limit)
    return bytes(body)


async def _read_gzip(request: Request, limit: int, inflated_limit: int) -> bytes:
    inflater = zlib.decompressobj(wbits=GZIP_WINDOW)
    body = bytearray()
    received = 0
    async for chunk in request.stream():
        # in pieces: a chunk may hold the whole of a bomb
        for start in range(0, len(chunk), PIECE_BYTES):
            piece = chunk[start : start + PIECE_BYTES]
            received += len(piece)
            if received > limit:
                raise BodyTooLarge("sent", limit)
            most = min(inflated_limit, max(ALWAYS_INFLATED_BYTES, MAX_INFLATION * received))
            _inflate(inflater, piece, body, most)
    if not inflater.eof:
        raise refuse("body", "is gzip that ends early")
    return bytes(body)


def _inflate(inflater: "zlib._Decompress", piece: bytes, body: bytearray, most: int) -> None:
    if inflater.eof:
        raise refuse("body", TWO_MEMBERS)
    # One byte more than fits tells "exactly full" from "too large"; 0 would mean no bound at all.
    try:
        body += inflater.decompress(piece, most - len(body) + 1)
    except zlib.error as error:
        raise refuse("body", f"is not gzip: {error}") from error
    if inflater.unconsumed_tail or len(body) > most:
        raise BodyTooLarge("inflated", most)
    if inflater.unused_data:
        raise refuse("body", TWO_MEMBERS)
