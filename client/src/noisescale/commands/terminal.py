"""Text for a terminal: colours where there is one that wants them, plain text everywhere else."""

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Style = Literal["bold", "dim", "good", "careful", "bad"]
CODES: dict[Style, str] = {"bold": "1", "dim": "2", "good": "32", "careful": "33", "bad": "31"}

GAP = "  "
SHORTEST = 12
"""Characters that the column which is cut keeps at least."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """What the output is shown on.

    Attributes:
        has_colour: It takes colours, and nobody has asked for none.
        width: Characters of a line; None: no line is cut, as the output is a file or another program.
    """

    has_colour: bool = False
    width: int | None = None

    @classmethod
    def of_process(cls) -> "Terminal":
        """The one that this process writes to: https://no-color.org is kept to."""
        if not sys.stdout.isatty():
            return cls()
        has_colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        return cls(has_colour, shutil.get_terminal_size().columns)

    def styled(self, text: str, style: Style) -> str:
        """The text in a style, where there are any.

        Args:
            text: Whatever it is, it holds no control characters afterwards.
            style: A name.
        """
        plain = printable(text)
        return f"\x1b[{CODES[style]}m{plain}\x1b[0m" if self.has_colour and plain.strip() else plain


def printable(text: str) -> str:
    """The text without control characters: a run's name could else move the cursor of whoever lists it.

    Args:
        text: Of any origin.
    """
    return "".join(one if one.isprintable() else "?" for one in text)


def tell(text: str) -> None:
    """Print lines, with a question mark for what the output cannot encode."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding))


def as_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], terminal: Terminal, *, numbers: Sequence[int] = ()
) -> list[str]:
    """Lines of a table with aligned columns; the first column is cut where the terminal is too narrow.

    Args:
        header: Names of the columns.
        rows: Cells, as many as there are columns.
        terminal: What it is shown on.
        numbers: Columns that are set flush right.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(header), *cells]) for i in range(len(header))]
    if terminal.width is not None:
        too_much = sum(widths) + len(GAP) * (len(widths) - 1) - terminal.width
        widths[0] = max(min(widths[0], SHORTEST), widths[0] - max(0, too_much))
    lines = [
        GAP.join(_fitted(cell, widths[i], is_number=i in numbers) for i, cell in enumerate(row)).rstrip()
        for row in [list(header), *cells]
    ]
    return [terminal.styled(lines[0], "bold"), *lines[1:]]


def _fitted(cell: str, width: int, *, is_number: bool) -> str:
    cut = cell if len(cell) <= width else f"{cell[: width - 1]}…"
    return cut.rjust(width) if is_number else cut.ljust(width)
