"""TensorBoard: a folder with event files is a run, as TensorBoard shows it; records are checked by their checksums."""

import json
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any, BinaryIO

from google.protobuf.message import DecodeError
from tensorboard.compat.proto import event_pb2
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.util import tensor_util

from noisescale_importers.readers.files import SourceFile, files_of
from noisescale_importers.source import Damage, Row, SourceRun, shown

HEADER = struct.Struct("<QI")
CHECKSUM = struct.Struct("<I")
HEAD_EVENTS = 200
HPARAMS = "_hparams_/session_start_info"
ARGUMENTS = ("args/text_summary", "args")
"""Where the Hugging Face Trainer writes its arguments."""


class Importer:
    """The plug-in."""

    def find(self, sources: Sequence[str], options: Mapping[str, str]) -> Iterator[SourceRun | Damage]:
        """The runs of event files.

        Raises:
            ConfigError: For a source that is not there.
        """
        files = []
        for file in files_of(sources, lambda path: "tfevents" in path.name):
            if isinstance(file, Damage):
                yield file
            else:
                files.append(file)
        for folder, of_run in groupby(files, key=lambda file: file.path.parent):
            yield _run(folder, sorted(of_run, key=lambda file: file.name))


importer = Importer()


def _run(folder: Path, files: Sequence[SourceFile]) -> SourceRun:
    changes = [file.changed_at for file in files if file.changed_at is not None]
    events = islice(_events(files), HEAD_EVENTS)
    config: dict[str, object] = {}
    for event in events:
        if not isinstance(event, Damage):
            for value in event.summary.value:
                config |= _settings(value)
    return SourceRun(
        identity="events",
        root=files[0].root,
        place=str(folder),
        rows=lambda: _rows(files),
        name=folder.name,
        config=config,
        changed_at=max(changes, default=None),
        has_single_values=True,
    )


def _rows(files: Sequence[SourceFile]) -> Iterator[Row | Damage]:
    for event in _events(files):
        if isinstance(event, Damage):
            yield event
            continue
        for value in event.summary.value:
            number = _number(value)
            if number is not None:
                place = f"step {event.step}, {shown(value.tag)}"
                yield Row({value.tag: number}, event.step, event.wall_time, place)


def _events(files: Sequence[SourceFile]) -> Iterator[Any]:
    for file in files:
        for place, content in _records(file.path):
            where = f"{shown(file.name)}, {place}"
            if isinstance(content, str):
                yield Damage(where, content)
                continue
            event = event_pb2.Event()
            try:
                event.ParseFromString(content)
            except (DecodeError, RecursionError):
                yield Damage(where, "is no event")
                continue
            yield event


def _records(path: Path) -> Iterator[tuple[str, bytes | str]]:
    """The contents of records with their places, or what is wrong with one; behind a broken length nothing is found."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            while head := file.read(HEADER.size):
                place = f"byte {file.tell() - len(head):,}"
                found = _record(file, head, size)
                yield place, found or "has no content"
                if found is _CUT or found is _NO_LENGTH:
                    return
    except OSError as error:
        yield "", f"cannot be read: {error.strerror}"


_CUT = "the record is cut: the rest is missing, or still being written"
_NO_LENGTH = "the length of a record is damaged: what comes after it in this file cannot be found"


def _record(file: BinaryIO, head: bytes, size: int) -> bytes | str:
    if len(head) < HEADER.size:
        return _CUT
    length, checksum = HEADER.unpack(head)
    if masked_crc32c(head[:8]) != checksum:
        return _NO_LENGTH
    if file.tell() + length + CHECKSUM.size > size:
        return _CUT
    content = file.read(length)
    if masked_crc32c(content) != CHECKSUM.unpack(file.read(CHECKSUM.size))[0]:
        return "the record does not fit its checksum: it was left out"
    return content


def _number(value: Any) -> float | None:
    """The scalar of a value; None for pictures, texts and histograms."""
    if value.HasField("simple_value"):
        return float(value.simple_value)
    if value.HasField("tensor") and value.metadata.plugin_data.plugin_name in ("", "scalars"):
        try:
            found = tensor_util.make_ndarray(value.tensor)
        except (TypeError, ValueError):
            return None
        if found.size == 1 and found.dtype.kind in "fiu":
            return float(found.reshape(-1)[0])
    return None


def _settings(value: Any) -> dict[str, object]:
    """What a value says of the run's config: hyperparameters, or arguments as JSON."""
    try:
        if value.tag == HPARAMS:
            content = plugin_data_pb2.HParamsPluginData.FromString(value.metadata.plugin_data.content)
            return {
                name: getattr(item, item.WhichOneof("kind"))
                for name, item in content.session_start_info.hparams.items()
                if item.WhichOneof("kind") in ("number_value", "string_value", "bool_value")
            }
        if value.tag in ARGUMENTS and value.tensor.string_val:
            found = json.loads(value.tensor.string_val[0])
            return found if isinstance(found, dict) else {}
    except (DecodeError, ValueError, RecursionError):
        return {}
    return {}
