"""A batch without its bad records: one that cannot be stored must not keep back those behind it.

The usual batch is parsed once and passes. Only where something is wrong, what is wrong with single records is told from
what is wrong with the batch, and the batch is parsed again without these records.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from noisescale_server.api.ingest.wire_checks import (
    Code,
    Part,
    RecordProblem,
    check,
    check_places,
    check_structure,
    record_problems,
)
from noisescale_server.api.ingest.wire_schemas import VERSION, BatchBody, Lost
from noisescale_server.api.platform.body import field_problem, parse, shown
from noisescale_server.api.platform.refusals import VersionNotSupported
from noisescale_server.services.platform.errors import InvalidInput
from noisescale_server.storage.ingest.ledger import REJECTED

Json = dict[str, Any]

COLUMN_PARTS: Final[tuple[Part, ...]] = ("measurements", "metrics")

# an unknown or missing field is what a client does wrong in every record, not in one
OF_THE_WHOLE_BATCH = {"missing", "extra_forbidden"}

OUT_OF_RANGE = ("greater_than", "less_than", "too_long", "too_short", "string_too_long", "string_too_short")


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that was not stored, and why."""

    seq: int
    code: Code
    field: str
    message: str


@dataclass(frozen=True, slots=True)
class ReadBatch:
    """A batch that can be stored; its bad records are among the lost, and named."""

    body: BatchBody
    rejected: tuple[Rejected, ...] = ()


def read_batch(raw: bytes) -> ReadBatch:
    """The batch, without the records that cannot be stored.

    Raises:
        InvalidInput: When something is wrong with the batch itself; names every refused field, the first 20 of them.
        VersionNotSupported: When it is in another version of the wire format.
    """
    try:
        body = parse(BatchBody, raw)
        check(body)
    except InvalidInput as refused:
        return _without_bad_records(raw, refused)
    return ReadBatch(body)


def _without_bad_records(raw: bytes, refused: InvalidInput) -> ReadBatch:
    try:
        data: Json = from_json(raw)
    except ValueError:
        raise refused from None
    version = data.get("proto") if isinstance(data, dict) else VERSION
    if isinstance(version, int) and version != VERSION:
        raise VersionNotSupported(shown(version), VERSION)
    rejected: dict[int, Rejected] = {}
    _take_out(data, _problems_of_types(raw, refused), rejected, refused)
    body = parse(BatchBody, to_json(data, inf_nan_mode="constants"))
    check_structure(body)
    _take_out(data, record_problems(body), rejected, refused)
    body = parse(BatchBody, to_json(data, inf_nan_mode="constants"))
    left_out = [Lost.model_construct(from_=seq, to=seq, reason=REJECTED) for seq in sorted(rejected)]
    body = body.model_copy(update={"lost": [*body.lost, *left_out]})
    check_places(body)
    return ReadBatch(body, tuple(rejected[seq] for seq in sorted(rejected)))


def _problems_of_types(raw: bytes, refused: InvalidInput) -> list[RecordProblem]:
    """What is wrong with single records by the types and bounds of their fields.

    Raises:
        InvalidInput: `refused`, when anything else is wrong.
    """
    try:
        BatchBody.model_validate_json(raw)
    except ValidationError as error:
        return [_of_one_record(found, refused) for found in error.errors(include_url=False)]
    return []


def _of_one_record(error: Mapping[str, Any], refused: InvalidInput) -> RecordProblem:
    problem = field_problem(error, skip_location=0)
    if error["type"] not in OF_THE_WHOLE_BATCH:
        match error["loc"]:
            case ("measurements" | "metrics") as part, str(column), int(row), *_ if column != "seq":
                return RecordProblem(part, row, _code(error["type"]), problem)
            case "groups", int(row), str(column), *_ if column != "seq":
                return RecordProblem("groups", row, _code(error["type"]), problem)
            case "finish", str(column), *_ if column != "seq":
                return RecordProblem("finish", 0, _code(error["type"]), problem)
    raise refused


def _code(kind: str) -> Code:
    if kind == "finite_number":
        return "not_finite"
    return "out_of_range" if kind.startswith(OUT_OF_RANGE) else "value_type"


def _take_out(
    data: Json, problems: Iterable[RecordProblem], rejected: dict[int, Rejected], refused: InvalidInput
) -> None:
    """Take the records with problems out of `data`, and put them into `rejected` with the first problem of each.

    Raises:
        InvalidInput: `refused`, when a column is not as long as the record numbers.
    """
    rows: dict[Part, set[int]] = {}
    for found in problems:
        seq = _seq_of(data, found, refused)
        rejected.setdefault(seq, Rejected(seq, found.code, found.problem.field, found.problem.message))
        rows.setdefault(found.part, set()).add(seq)
    for part, numbers in rows.items():
        if part in COLUMN_PARTS:
            data[part] = _without_rows(data[part], numbers)
        elif part == "groups":
            data[part] = [record for record in data[part] if record["seq"] not in numbers]
        else:
            data[part] = None


def _seq_of(data: Json, found: RecordProblem, refused: InvalidInput) -> int:
    part = data[found.part]
    if found.part == "finish":
        seq = part.get("seq")
    elif found.part == "groups":
        seq = part[found.position].get("seq")
    else:
        lengths = {len(column) if isinstance(column, list) else -1 for column in part.values()}
        seq = part["seq"][found.position] if len(lengths) == 1 and lengths != {-1} and "seq" in part else None
    if not isinstance(seq, int):
        raise refused
    return seq


def _without_rows(columns: dict[str, list[Any]], numbers: set[int]) -> dict[str, list[Any]] | None:
    kept = [row for row, seq in enumerate(columns["seq"]) if seq not in numbers]
    return {name: [column[row] for row in kept] for name, column in columns.items()} if kept else None
