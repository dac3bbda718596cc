"""Weights & Biases: run folders with a `.wandb` file, as offline runs leave them, checked by their checksums.

A source ENTITY/PROJECT or ENTITY/PROJECT/RUN is asked of the server.
"""

import importlib
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from wandb.proto import wandb_internal_pb2

from noisescale_core.errors import ConfigError
from noisescale_importers.readers.files import SourceFile, files_of
from noisescale_importers.readers.table import flat
from noisescale_importers.roles import number_of
from noisescale_importers.source import Damage, Row, SourceRun, State, shown

PATH = re.compile(r"[\w.-]+/[\w.-]+(/[\w.-]+)?")
"""ENTITY/PROJECT, or ENTITY/PROJECT/RUN."""

STATES: Mapping[str, State] = {
    "finished": "finished", "failed": "failed", "crashed": "failed", "killed": "failed", "running": "running",
}  # fmt: skip

START = b":W&B"
HEADER_BYTES = 7
BLOCK_BYTES = 32 * 1024
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4


# Runs on a W&B server, by its public API with the user's own key; part of the importer `wandb`.


def runs_of(path: str) -> Iterator[SourceRun | Damage]:
    """The runs of a project, or one run.

    Raises:
        ConfigError: Where the server gives no answer, or has no such project.
    """
    wandb = importlib.import_module("wandb")  # takes a second to import, and files do without
    try:
        api = wandb.Api()
        found = [api.run(path)] if path.count("/") == 2 else list(api.runs(path))
    except (wandb.errors.Error, ValueError, OSError) as error:
        raise ConfigError(
            f"W&B gives no runs of {shown(path)}: {shown(error, 300)}; log in with `wandb login`"
        ) from error
    for run in found:
        yield _run_of_api(run, path, (wandb.errors.Error, ValueError, OSError))


def identity(project: str | None, run_id: str) -> str:
    """What tells a run from others, on disk and on a server: an id that somebody chose is of one project alone."""
    return f"{project or 'uncategorized'}/{run_id}"


def _run_of_api(run: Any, path: str, faults: tuple[type[Exception], ...]) -> SourceRun:
    return SourceRun(
        identity=identity(path.split("/")[1], str(run.id)),
        place=f"{path} {run.id}",
        rows=lambda: _rows_of_api(run, faults),
        name=run.name or str(run.id),
        config=flat(dict(run.config)),
        group=path.split("/")[1],
        state=STATES.get(str(run.state), "unknown"),
        started_at=_seconds(run.created_at),
        roles={"step": "_step"},
    )


def _rows_of_api(run: Any, faults: tuple[type[Exception], ...]) -> Iterator[Row | Damage]:
    try:
        for number, entry in enumerate(run.scan_history(), start=1):
            yield row_of(flat(dict(entry)), f"history {number}")
    except faults as error:
        yield Damage("history", f"the rest was not given: {shown(error, 300)}")


def row_of(entry: Mapping[str, object], place: str) -> Row | Damage:
    """A row of a history; what W&B adds to each has its own names.

    Numbers that are not finite stand in it as texts.
    """
    values = {}
    for name, value in entry.items():
        is_text = isinstance(value, str) and value not in ("NaN", "Infinity", "-Infinity")
        number = None if is_text else number_of(value)
        if number is not None:
            values[name] = number
    time, step = values.pop("_timestamp", None), values.pop("_step", None)
    values.pop("_runtime", None)
    if step is None or step != step or not abs(step) < 2**53:
        return Damage(place, f"has no step, got {step}", is_a_row=True)
    return Row(values, int(step), time, place)


def _seconds(text: object) -> float | None:
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


class Importer:
    """The plug-in."""

    def find(self, sources: Sequence[str], options: Mapping[str, str]) -> Iterator[SourceRun | Damage]:
        """The runs of `.wandb` files.

        Raises:
            ConfigError: For a source that is not there.
        """
        of_runs: dict[tuple[str | None, str], list[tuple[SourceFile, _Facts]]] = {}
        online = [one for one in sources if PATH.fullmatch(one) and not Path(one).exists()]
        for path in online:
            yield from runs_of(path)
        on_disk = [one for one in sources if one not in online]
        for file in files_of(on_disk, lambda path: path.suffix == ".wandb"):
            if isinstance(file, Damage):
                yield file
            else:
                facts = _facts(file)
                run_id = facts.run_id or file.path.stem.removeprefix("run-")
                of_runs.setdefault((facts.group, run_id), []).append((file, facts))
        for (_, run_id), files in of_runs.items():
            yield _run(run_id, sorted(files, key=lambda one: one[1].started_at or 0.0))


importer = Importer()


def _run(run_id: str, files: Sequence[tuple[SourceFile, "_Facts"]]) -> SourceRun:
    """A run, by its own id in its project: one that was moved is the same, one that was resumed has several files."""
    newest = files[-1][1]
    config = {name: value for _, facts in files for name, value in facts.config.items()}
    return SourceRun(
        identity=identity(newest.group, run_id),
        place=str(files[-1][0].path),
        rows=lambda: (row for file, _ in files for row in _rows(file.path, is_one=len(files) == 1)),
        name=newest.name or run_id,
        config=config,
        group=newest.group,
        state=newest.state,
        changed_at=files[-1][0].changed_at,
        started_at=files[0][1].started_at,
        roles={"step": "_step"},
    )


class _Facts:
    """What a file says of its run as a whole."""

    def __init__(self) -> None:
        self.run_id: str | None = None
        self.name: str | None = None
        self.group: str | None = None
        self.started_at: float | None = None
        self.config: dict[str, object] = {}
        self.state: State = "unknown"

    def see(self, record: Any) -> None:
        """Take what a record says."""
        kind = record.WhichOneof("record_type")
        if kind == "run":
            run = record.run
            self.run_id, self.name, self.group = run.run_id or None, run.display_name or None, run.project or None
            self.started_at = run.start_time.ToMicroseconds() / 1e6 if run.HasField("start_time") else None
            self._update(run.config.update)
        elif kind == "config":
            self._update(record.config.update)
        elif kind == "exit":
            self.state = "finished" if record.exit.exit_code == 0 else "failed"

    def _update(self, items: Any) -> None:
        for item in items:
            name = item.key or "/".join(item.nested_key)
            value = _json(item.value_json)
            if name and name != "_wandb":
                self.config |= flat({name: value})


def _facts(file: SourceFile) -> _Facts:
    found = _Facts()
    for record in _records(file.path):
        if not isinstance(record, Damage):
            found.see(record)
    return found


def _rows(path: Path, *, is_one: bool) -> Iterator[Row | Damage]:
    number = 0
    for record in _records(path):
        if isinstance(record, Damage):
            yield record if is_one else replace(record, place=f"{path}, {record.place}")
        elif record.WhichOneof("record_type") == "history":
            number += 1
            yield _row(record.history, f"history {number}")


def _row(history: Any, place: str) -> Row | Damage:
    entry: dict[str, object] = {}
    for item in history.item:
        entry |= flat({item.key or "/".join(item.nested_key): _json(item.value_json)})
    if "_step" not in entry and history.HasField("step"):
        entry["_step"] = history.step.num
    return row_of(entry, place)


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _records(path: Path) -> Iterator[Any]:
    """The records of a file, or what is wrong with one."""
    for place, content in _contents(path):
        if isinstance(content, str):
            yield Damage(f"byte {place:,}", content)
            continue
        record = wandb_internal_pb2.Record()
        try:
            record.ParseFromString(content)
        except (DecodeError, RecursionError):
            yield Damage(f"byte {place:,}", "is no record")
            continue
        yield record


def _contents(path: Path) -> Iterator[tuple[int, bytes | str]]:
    """The contents of records by their first byte: LevelDB's log format, in blocks of 32 KiB, with a plain CRC-32."""
    try:
        size = os.path.getsize(path)
        with path.open("rb") as file:
            if file.read(HEADER_BYTES)[:4] != START:
                yield 0, "is no file of W&B: it does not begin as one"
                return
            parts: list[bytes] = []
            begun = place = HEADER_BYTES
            while place < size:
                left = BLOCK_BYTES - place % BLOCK_BYTES
                if left < HEADER_BYTES:  # no header fits: the rest of the block is empty
                    place += left
                    continue
                file.seek(place)
                head = file.read(HEADER_BYTES)
                length, kind = int.from_bytes(head[4:6], "little"), head[6] if len(head) == HEADER_BYTES else 0
                content = file.read(length)
                fault = _fault(head, content, left)
                if fault is not None:
                    yield place, fault
                    parts, place = [], place + left  # the next block begins anew
                    continue
                begun = place if kind in (FULL, FIRST) else begun
                place += HEADER_BYTES + length
                if kind in (FULL, FIRST):
                    parts = [content]
                elif parts:
                    parts.append(content)
                if kind in (FULL, LAST) and parts:
                    yield begun, b"".join(parts)
                    parts = []
            if parts:
                yield begun, "the record is cut: the rest is missing, or still being written"
    except OSError as error:
        yield 0, f"cannot be read: {error.strerror}"


def _fault(head: bytes, content: bytes, left: int) -> str | None:
    """What is wrong with a part of a record, after which the rest of its block cannot be found."""
    if len(head) < HEADER_BYTES:
        return "the record is cut: the rest is missing, or still being written"
    length, kind = int.from_bytes(head[4:6], "little"), head[6]
    if len(content) < length:
        return "the record is cut: the rest is missing, or still being written"
    if kind not in (FULL, FIRST, MIDDLE, LAST) or length + HEADER_BYTES > left:
        return "the head of a record is damaged: records up to the next 32 KiB cannot be found"
    if zlib.crc32(content, zlib.crc32(bytes([kind]))) != int.from_bytes(head[:4], "little"):
        return "the record does not fit its checksum: records up to the next 32 KiB are left out"
    return None
