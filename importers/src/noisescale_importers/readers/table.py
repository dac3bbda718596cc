"""Tables: CSV, TSV and JSON lines with any columns; a file is a run, or has a column of runs, or each row is one."""

import csv
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from noisescale_core.errors import ConfigError
from noisescale_importers.readers.files import Line, SourceFile, files_of, line_of, lines_of
from noisescale_importers.roles import guessed, is_count, normalised, number_of, parsed_json
from noisescale_importers.source import Damage, Row, SourceRun, shown

SUFFIXES = {".csv": ",", ".tsv": "\t", ".jsonl": "", ".ndjson": ""}
HEAD = 50
RUN_COLUMNS = ("run", "run_id", "run_name", "run_uuid", "experiment", "experiment_name", "trial", "trial_id")
NOT_FACTS = ("step", "time", "elapsed", "loss", "metric", "tokens", "examples", "batch", "batch-tokens",
             "learning-rate", "gradient-norm", "steps-to-target", "seed", "price")  # fmt: skip
"""Roles whose columns do not say what was trained."""

Cells = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Record:
    """One row of a table: its cells by column."""

    line: Line
    cells: Cells


class Table:
    """A file with what its first rows say of its columns.

    Attributes:
        head: Its first rows.
        columns: Their columns.
        texts: Columns that hold texts.
        open: Columns that are empty in all of the first rows, as an evaluation's is: numbers in them are taken, and
            texts left.
    """

    def __init__(self, file: SourceFile) -> None:
        self.file = file
        suffix = file.path.suffix.lower()
        self._delimiter = SUFFIXES.get(suffix, ",")
        self._header: list[str] = []
        if suffix not in SUFFIXES and _begins_with_brace(file.path):
            self._delimiter = ""
        self.head = [one for one in islice(self.records(), HEAD) if isinstance(one, Record)]
        self.columns = list(dict.fromkeys(name for record in self.head for name in record.cells))
        filled = {
            name: [cell for one in self.head if not _is_empty(cell := one.cells.get(name))] for name in self.columns
        }
        self.texts = {name for name, cells in filled.items() if cells and _is_text(cells)}
        self.open = {name for name, cells in filled.items() if not cells}

    def records(self) -> Iterator[Record | Damage]:
        """The rows from the first to the last."""
        lines = lines_of(self.file.path)
        if self._delimiter:
            fault = self._read_header(next(lines, None))
            if fault is not None:
                yield fault
                return
        for line in lines:
            yield line if isinstance(line, Damage) else self._record(line)

    def record_at(self, raw: bytes, number: int, start: int) -> Record | Damage:
        """The row of a line that was read before."""
        line = line_of(raw, number, start)
        if line is None or isinstance(line, Damage):
            return line or Damage(f"line {number}", "is blank now")
        return self._record(line)

    def _read_header(self, line: Line | Damage | None) -> Damage | None:
        """What is wrong with the header."""
        if line is None:
            return Damage("", "is empty")
        if isinstance(line, Damage):
            return Damage(line.place, f"{line.reason}; it is the header, without which nothing can be read")
        if self._delimiter == "," and "," not in line.text:
            # a CSV of a spreadsheet whose numbers have a comma of their own
            self._delimiter = next((one for one in (";", "\t") if one in line.text), ",")
        self._header = _cells(line.text, self._delimiter)
        fault = _fault_of_header(self._header)
        return None if fault is None else Damage(line.place, fault)

    def _record(self, line: Line) -> Record | Damage:
        return _of_cells(line, self._header, self._delimiter) if self._delimiter else _of_json(line)

    def row(self, record: Record) -> Row | Damage:
        """The numbers of a row; a text in a column of numbers is damage."""
        values = {}
        for name, cell in record.cells.items():
            if name in self.texts or _is_empty(cell):
                continue
            number = _number(cell)
            if number is None and name in self.open:
                continue
            if number is None:
                return Damage(record.line.place, f"{shown(name)} is no number, got {shown(repr(cell), 60)}", True)
            values[name] = number
        return Row(values, None, None, record.line.place)

    def numbers(self, name: str) -> list[float]:
        """What the first rows have in a column."""
        return [number for one in self.head if (number := _number(one.cells.get(name))) is not None]


class Importer:
    """The plug-in."""

    def find(self, sources: Sequence[str], options: Mapping[str, str]) -> Iterator[SourceRun | Damage]:
        """The runs of tables.

        Raises:
            ConfigError: For a source that is not there, or a column of runs that no table has.
        """
        for file in files_of(sources, lambda path: path.suffix.lower() in SUFFIXES):
            if isinstance(file, Damage):
                yield file
            else:
                yield from _runs_of(Table(file), options)


importer = Importer()


def _runs_of(table: Table, options: Mapping[str, str]) -> Iterator[SourceRun | Damage]:
    if _is_one_a_row(table, options):
        yield from _one_a_row(table)
        return
    column = _run_column(table, options)
    if column is not None:
        yield from _by_column(table, column)
        return
    file = table.file
    yield SourceRun(
        identity=file.name,
        root=file.root,
        place=str(file.path),
        rows=lambda: _rows(table),
        name=file.path.stem,
        changed_at=file.changed_at,
    )


def _rows(table: Table) -> Iterator[Row | Damage]:
    for record in table.records():
        yield record if isinstance(record, Damage) else table.row(record)


def _is_one_a_row(table: Table, options: Mapping[str, str]) -> bool:
    """As asked for; else where nothing says where in its run a row is, and a batch and a result do say a run."""
    asked = options.get("rows-are-runs")
    if asked is not None:
        if asked not in ("yes", "no"):
            raise ConfigError(f"--rows-are-runs must be yes or no, got {asked!r}")
        return asked == "yes"
    if options.get("run-column") is not None:
        return False
    if any(normalised(name) == "epoch" for name in table.columns):
        return False  # it says where in its run a row is
    has = {role for role in NOT_FACTS if guessed(role, table.columns) is not None}
    batch = guessed("batch", table.columns)
    has_batch = "batch-tokens" in has or (
        batch is not None and not is_count(batch, table.numbers(batch), are_runs=True)
    )
    if "steps-to-target" in has:
        return has_batch
    return has_batch and bool(has & {"loss", "metric"}) and not has & {"step", "time", "elapsed"}


def _one_a_row(table: Table) -> Iterator[SourceRun | Damage]:
    """Runs whose rows say of each how it ended; what is no role of a run says what was trained."""
    file = table.file
    roles = {name for role in NOT_FACTS if (name := guessed(role, table.columns)) is not None}
    for record in table.records():
        if isinstance(record, Damage):
            yield Damage(f"{file.path} {record.place}", record.reason)
            continue
        row = table.row(record)
        if isinstance(row, Damage):
            yield Damage(f"{file.path} {row.place}", row.reason)
            continue
        facts = {name: cell for name, cell in record.cells.items() if name not in roles and cell not in (None, "")}
        yield SourceRun(
            identity=f"{file.name} line {record.line.number}",
            root=file.root,
            place=f"{file.path} {record.line.place}",
            rows=lambda row=row: iter([row]),  # type: ignore[misc]
            name=f"{file.path.stem} {record.line.number}",
            config=dict(facts),
            group=", ".join(f"{shown(name, 60)} {shown(cell, 60)}" for name, cell in facts.items()) or None,
            state="finished",
            is_one_row=True,
        )


def _run_column(table: Table, options: Mapping[str, str]) -> str | None:
    asked = options.get("run-column")
    if asked is not None:
        if asked not in table.columns and asked != "none":
            names = ", ".join(map(shown, table.columns))
            raise ConfigError(f"--run-column must be one of {names}, or none, got {asked!r}")
        return None if asked == "none" else asked
    return next((name for one in RUN_COLUMNS for name in table.columns if normalised(name) == one), None)


def _by_column(table: Table, column: str) -> Iterator[SourceRun | Damage]:
    """One run for each value of a column; where their rows stand is kept, not the rows."""
    table.texts.add(column)
    starts: dict[str, tuple[array[int], array[int]]] = {}
    file = table.file
    for record in table.records():
        if isinstance(record, Damage):
            yield Damage(f"{file.path} {record.place}", record.reason)
            continue
        key = str(record.cells.get(column, ""))
        bytes_, numbers = starts.setdefault(key, (array("q"), array("q")))
        bytes_.append(record.line.start)
        numbers.append(record.line.number)
    for key, (bytes_, numbers) in starts.items():
        yield SourceRun(
            identity=f"{file.name} {column} {key}",
            root=file.root,
            place=f"{file.path} {shown(key, 60)}",
            rows=lambda bytes_=bytes_, numbers=numbers: _rows_at(table, bytes_, numbers),  # type: ignore[misc]
            name=key,
            changed_at=file.changed_at,
        )


def _rows_at(table: Table, starts: Sequence[int], numbers: Sequence[int]) -> Iterator[Row | Damage]:
    with table.file.path.open("rb") as file:
        for start, number in zip(starts, numbers, strict=True):
            file.seek(start)
            record = table.record_at(file.readline(), number, start)
            yield record if isinstance(record, Damage) else table.row(record)


def _of_cells(line: Line, header: Sequence[str], delimiter: str) -> Record | Damage:
    if not line.has_end:
        return Damage(line.place, "has no end, so that its last number may be cut: end the file with a new line")
    cells = _cells(line.text, delimiter)
    if len(cells) != len(header):
        return Damage(line.place, f"has {len(cells)} cells, the header has {len(header)}", is_a_row=True)
    return Record(line, dict(zip(header, cells, strict=True)))


def _of_json(line: Line) -> Record | Damage:
    try:
        found = parsed_json(line.text)
    except (ValueError, RecursionError):
        return Damage(line.place, "is no JSON" if line.has_end else "is no JSON: cut, or still written", line.has_end)
    if not isinstance(found, dict):
        return Damage(line.place, f"is no JSON object, got {type(found).__name__}", is_a_row=True)
    return Record(line, flat(found))


def flat(value: Mapping[str, object], before: str = "", depth: int = 0) -> dict[str, object]:
    """Nested objects as one, with slashes between their names; deeper than eight levels is left out."""
    found: dict[str, object] = {}
    for key, item in value.items():
        name = f"{before}{key}"
        if isinstance(item, Mapping):
            found |= flat(item, f"{name}/", depth + 1) if depth < 8 else {}
        else:
            found[name] = item
    return found


def _cells(text: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return []


def _fault_of_header(header: Sequence[str]) -> str | None:
    if not header or any(not name.strip() for name in header):
        return "the header has a column without a name"
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        return f"the header has {shown(twice)!r} twice"
    if all(number_of(name) is not None for name in header):
        return "there is no header: the first line has numbers only"
    return None


def _is_empty(cell: object) -> bool:
    return cell is None or cell == ""


def _number(cell: object) -> float | None:
    return number_of(cell.strip() if isinstance(cell, str) else cell)


def _is_text(cells: Sequence[object]) -> bool:
    """Whether most of a column's first cells are no numbers."""
    return sum(_number(cell) is None for cell in cells) * 2 > len(cells)


def _begins_with_brace(path: Path) -> bool:
    first = next((one for one in lines_of(path) if isinstance(one, Line)), None)
    return first is not None and first.text.lstrip().startswith("{")
