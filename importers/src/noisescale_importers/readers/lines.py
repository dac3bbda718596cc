"""Lines of a text file with their numbers; what is no text is damage, and a last line without an end waits."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from noisescale_importers.source import Damage
from noisescale_importers.text import shown

MAX_LINE_BYTES = 4 << 20


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
