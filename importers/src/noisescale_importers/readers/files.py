"""Files of a source: found below folders, in an order that stays, each with a name that stays."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from noisescale_core.errors import ConfigError
from noisescale_importers.source import Damage, shown

MAX_LINE_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a source.

    Attributes:
        path: Where it is.
        root: Absolute folder that its name is below.
        name: Below that folder, with slashes.
    """

    path: Path
    root: str
    name: str

    @property
    def changed_at(self) -> float | None:
        """Unix seconds of its last change; None where it is gone."""
        try:
            return self.path.stat().st_mtime
        except OSError:
            return None


def files_of(sources: Sequence[str], is_wanted: Callable[[Path], bool]) -> Iterator[SourceFile | Damage]:
    """Files that are named, whatever they are called, and those below folders that are wanted, by name.

    Raises:
        ConfigError: For a source that is not there.
    """
    seen: set[Path] = set()
    for source in sources:
        path = Path(os.path.abspath(source))
        if not path.exists():
            raise ConfigError(f"no file or folder {shown(source)}: give one that is there")
        found = _below(path, is_wanted) if path.is_dir() else iter([path])
        for file in found:
            if isinstance(file, Damage):
                yield file
            elif file.exists() and not file.is_file():
                yield Damage(shown(file), "is no regular file, which alone can be read twice: write it to one")
            elif file not in seen:
                seen.add(file)
                yield SourceFile(file, _text(file.parent), _text(file.name))


def _text(path: Path | str) -> str:
    """The path as text that any encoding takes: bytes that are none become what Python escapes them to."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _below(folder: Path, is_wanted: Callable[[Path], bool]) -> Iterator[Path | Damage]:
    faults: list[OSError] = []
    for root, folders, names in os.walk(folder, onerror=faults.append):
        folders.sort()
        for name in sorted(names):
            if is_wanted(Path(root, name)):
                yield Path(root, name)
    for fault in faults:
        yield Damage(shown(fault.filename), f"cannot be read: {fault.strerror}")


# Lines of a text file with their numbers; what is no text is damage, and a last line without an end waits.


class Line(NamedTuple):
    """A line.

    Attributes:
        number: From 1.
        start: Its first byte in the file.
        text: Without its end.
        has_end: Whether the file goes on behind it: one without an end may be cut.
    """

    number: int
    start: int
    text: str
    has_end: bool

    @property
    def place(self) -> str:
        """Where it stands."""
        return f"line {self.number}"


def lines_of(path: Path, *, keeps_controls: bool = False) -> Iterator[Line | Damage]:
    """The lines of a file. Blank ones are left out, and so are those that are no UTF-8, as damage.

    Args:
        path: The file.
        keeps_controls: Whether control characters may stand in a line, as colours do in logs, where a carriage
            return ends a line that was written over; else they are damage.
    """
    try:
        with path.open("rb") as file:
            number, start = 0, 0
            while raw := file.readline(MAX_LINE_BYTES):
                number, begin, start = number + 1, start, start + len(raw)
                for part in raw.splitlines(keepends=True) if keeps_controls and b"\r" in raw else (raw,):
                    found = line_of(part, number, begin, keeps_controls=keeps_controls)
                    if found is not None:
                        yield found
    except OSError as error:
        yield Damage("", f"cannot be read: {error.strerror}")


def line_of(raw: bytes, number: int, start: int, *, keeps_controls: bool = False) -> Line | Damage | None:
    """The line of these bytes; None where it is blank."""
    has_end = raw.endswith((b"\n", b"\r"))
    if number == 1:
        raw = raw.removeprefix(b"\xef\xbb\xbf")
    raw = raw.rstrip(b"\r\n")
    if not raw.strip():
        return None
    if len(raw) >= MAX_LINE_BYTES - 2:
        return Damage(f"line {number}", f"has more than {MAX_LINE_BYTES} bytes", is_a_row=True)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        return Damage(f"line {number}", f"is no UTF-8 at byte {error.start}", is_a_row=True)
    broken = next((c for c in text if not c.isprintable() and c != "\t"), None)
    if broken is not None and broken < " " and not keeps_controls:
        return Damage(f"line {number}", f"has the control character {shown(repr(broken))}", is_a_row=True)
    return Line(number, start, text, has_end)
