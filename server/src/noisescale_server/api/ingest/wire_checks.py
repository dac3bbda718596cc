"""What a batch must hold beyond the types of its fields: equal columns, rising numbers, every record accounted for.

What is wrong with the batch as a whole refuses it; what is wrong with one record names that record, which can be left
out while the others are stored.
"""

import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Literal

from pydantic import BaseModel

from noisescale_server.api.ingest.wire_schemas import (
    MAX_RECORDS,
    MIN_MAGNITUDE,
    BatchBody,
    Groups,
    Measurements,
    Metrics,
)
from noisescale_server.api.platform.body import MAX_PROBLEMS
from noisescale_server.services.platform.errors import FieldProblem, InvalidInput, refuse

ESTIMATE_SUMS = (
    "sum_trace_cov",
    "sum_grad_sq_norm",
    "sum_trace_cov_sq",
    "sum_grad_sq_norm_sq",
    "sum_trace_cov_grad_sq_norm",
)

OF_PATH = ("sum_update_sq_norm", "update_sq_norm_variance", "path_sq_distance", "path_start", "momentum")
OF_PROMISE = ("sum_promised_fall", "promised_fall_variance")

Place = tuple[int, int, str]
"""(first record, last record, the field that holds them)."""

Part = Literal["measurements", "metrics", "groups", "finish"]
"""The fields of a batch that hold records which can be left out."""

Code = Literal["value_type", "out_of_range", "not_finite", "inconsistent", "too_many_names"]


@dataclass(frozen=True, slots=True)
class RecordProblem:
    """What is wrong with one record: the row of its part, in which way, and the sentence for people."""

    part: Part
    position: int
    code: Code
    problem: FieldProblem


def check(body: BatchBody) -> None:
    """Raise unless the batch is consistent.

    Raises:
        InvalidInput: Names the fields that are not.
    """
    check_structure(body)
    found = [found.problem for found in record_problems(body)]
    if found:
        raise InvalidInput(found[:MAX_PROBLEMS], count=len(found))
    check_places(body)


def check_structure(body: BatchBody) -> None:
    """Raise unless the columns are equally long and their record numbers rise.

    Raises:
        InvalidInput: Names the first column that is not.
    """
    if body.measurements is not None:
        check_lengths(body.measurements, "measurements", "seq")
        check_rising(body.measurements.seq, "measurements.seq", may_repeat=False)
    if body.metrics is not None:
        check_lengths(body.metrics, "metrics", "seq")
        check_rising(body.metrics.seq, "metrics.seq", may_repeat=True)


def record_problems(body: BatchBody) -> list[RecordProblem]:
    """What is wrong with single records of a batch whose columns are equally long."""
    found: list[RecordProblem] = []
    if body.measurements is not None:
        found += _of_measurements(body.measurements)
    if body.metrics is not None:
        found += _of_metrics(body.metrics)
    for position, record in enumerate(body.groups):
        found += _of_group_record(record, position)
    return found


def _of_measurements(columns: Measurements) -> Iterator[RecordProblem]:
    for name in (*ESTIMATE_SUMS[:2], "sum_loss"):
        for row, problem in vanishing(getattr(columns, name), f"measurements.{name}"):
            yield RecordProblem("measurements", row, "out_of_range", problem)
    for row, problem in partly_null(columns, "measurements"):
        yield RecordProblem("measurements", row, "inconsistent", problem)
    for row, problem in _counted_problems(columns, "num_path_updates", OF_PATH, "the path"):
        yield RecordProblem("measurements", row, "inconsistent", problem)
    for row, problem in _counted_problems(columns, "num_promised_updates", OF_PROMISE, "the promise"):
        yield RecordProblem("measurements", row, "inconsistent", problem)


def _counted_problems(
    columns: Measurements, counted: str, names: Sequence[str], what: str
) -> Iterator[tuple[int, FieldProblem]]:
    """Rows whose columns of the path, or of the promise, do not belong together."""
    counts = getattr(columns, counted) or [0] * len(columns.seq)
    if not any(counts) and all(getattr(columns, name) is None for name in names):
        return
    for name in names:
        column = getattr(columns, name) or [None] * len(counts)
        for row, (count, value) in enumerate(zip(counts, column, strict=True)):
            if value is not None and not count:
                message = f"must be null where {counted} is 0: it is of these updates"
            elif value is None and count and name != "path_sq_distance":
                message = f"must be a number where {counted} is not 0: send all columns of {what} or none"
            else:
                continue
            yield row, _problem(f"measurements.{name}[{row}]", message, value)


def _of_metrics(columns: Metrics) -> Iterator[RecordProblem]:
    seen: set[tuple[int, str]] = set()
    for row, key in enumerate(zip(columns.seq, columns.name, strict=True)):
        if key in seen:
            message = "is named twice in one record: send one value a name"
            yield RecordProblem("metrics", row, "inconsistent", _problem(f"metrics.name[{row}]", message, key[1]))
        seen.add(key)


def _of_group_record(record: Groups, position: int) -> Iterator[RecordProblem]:
    path = f"groups[{position}]"
    try:
        check_lengths(record, path, "names")
    except InvalidInput as error:
        yield RecordProblem("groups", position, "inconsistent", error.problems[0])
        return
    seen: set[str] = set()
    for layer, name in enumerate(record.names):
        if name in seen:
            message = "is in this record twice: name each layer once"
            yield RecordProblem("groups", position, "inconsistent", _problem(f"{path}.names[{layer}]", message, name))
        seen.add(name)
    for name in ESTIMATE_SUMS[:2]:
        for _, problem in vanishing(getattr(record, name), f"{path}.{name}"):
            yield RecordProblem("groups", position, "out_of_range", problem)
    for _, problem in partly_null(record, path):
        yield RecordProblem("groups", position, "inconsistent", problem)


def check_lengths(columns: BaseModel, path: str, leading: str) -> None:
    """Raise unless every list is as long as the leading one."""
    expected = len(getattr(columns, leading))
    for name in type(columns).model_fields:
        column = getattr(columns, name)
        if isinstance(column, list) and len(column) != expected:
            message = f"has {len(column)} elements where {leading} has {expected}: columns must be equally long"
            raise refuse(f"{path}.{name}", message)


def check_rising(numbers: Sequence[int], path: str, *, may_repeat: bool) -> None:
    """Raise unless the numbers rise; equal neighbours pass where they may repeat."""
    in_order = operator.le if may_repeat else operator.lt
    if all(map(in_order, numbers, islice(numbers, 1, None))):
        return
    position = next(i for i in range(1, len(numbers)) if not in_order(numbers[i - 1], numbers[i]))
    message = (
        f"must be {'at least' if may_repeat else 'above'} the number before it, {numbers[position - 1]}: send in order"
    )
    raise refuse(f"{path}[{position}]", message, numbers[position])


def vanishing(column: Sequence[float | None], path: str) -> Iterator[tuple[int, FieldProblem]]:
    """Positions of values whose squares are no doubles."""
    for position, value in enumerate(column):
        if value and abs(value) < MIN_MAGNITUDE:
            message = f"must be 0 or at least {MIN_MAGNITUDE}: its square is no double"
            yield position, _problem(f"{path}[{position}]", message, value)


def partly_null(columns: BaseModel, path: str) -> Iterator[tuple[int, FieldProblem]]:
    """Positions of rows where some of the five sums are null and others are numbers."""
    sums = [getattr(columns, name) for name in ESTIMATE_SUMS]
    # `in` runs in C: the usual batch has no null at all
    if not any(None in column for column in sums):
        return
    for position, row in enumerate(zip(*sums, strict=True)):
        missing = [name for name, value in zip(ESTIMATE_SUMS, row, strict=True) if value is None]
        if missing and len(missing) < len(ESTIMATE_SUMS):
            message = "is null where another of the five estimate sums is a number: send all or none"
            yield position, _problem(f"{path}.{missing[0]}[{position}]", message)


def _problem(field: str, message: str, value: object = None) -> FieldProblem:
    return refuse(field, message, value).problems[0]


def check_places(body: BatchBody) -> None:
    """Raise unless every record from first_seq to last_seq is in exactly one place, and at most 2,000 came."""
    if body.last_seq < body.first_seq:
        raise refuse("last_seq", f"must not be below first_seq, {body.first_seq}", body.last_seq)
    expected, num_records = body.first_seq, 0
    for first, last, path in sorted(_places(body)):
        if last < first:
            raise refuse(f"{path}.to", f"must not be below from, {first}", last)
        if first < expected:
            why = "is below first_seq" if first < body.first_seq else "is accounted for twice"
            raise refuse(path, f"record {first} {why}: each record belongs in one place", first)
        if first > expected:
            raise refuse("last_seq", f"record {expected} is neither sent nor declared lost: do one of both", expected)
        expected = last + 1
        num_records += 0 if path.startswith("lost") else last - first + 1
    if expected != body.last_seq + 1:
        message = f"is {body.last_seq}, but the records end at {expected - 1}: send or declare lost what is between"
        raise refuse("last_seq", message, body.last_seq)
    if num_records > MAX_RECORDS:
        raise refuse("last_seq", f"{num_records} records came, at most {MAX_RECORDS} fit: send smaller batches")


def _places(body: BatchBody) -> Iterable[Place]:
    return chain(
        _one("run", body.run.seq) if body.run else (),
        _runs("measurements.seq", body.measurements.seq) if body.measurements else (),
        ((seq, seq, "metrics.seq") for seq in set(body.metrics.seq)) if body.metrics else (),
        ((record.seq, record.seq, f"groups[{i}].seq") for i, record in enumerate(body.groups)),
        _one("finish", body.finish.seq) if body.finish else (),
        ((lost.from_, lost.to, f"lost[{i}]") for i, lost in enumerate(body.lost)),
    )


def _one(path: str, seq: int) -> Iterator[Place]:
    yield seq, seq, f"{path}.seq"


def _runs(path: str, numbers: Sequence[int]) -> Iterator[Place]:
    """Rising numbers as one place where nothing is between them, which is the usual batch."""
    if numbers and numbers[-1] - numbers[0] == len(numbers) - 1:
        return iter([(numbers[0], numbers[-1], path)])
    return ((seq, seq, f"{path}[{i}]") for i, seq in enumerate(numbers))
