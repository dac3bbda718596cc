"""Tables and texts in a terminal: aligned, cut where it is narrow, harmless and encodable whatever a run is called."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from noisescale.commands import READER_GONE
from noisescale.commands.terminal import Terminal, as_table, printable, tell

HEADER = ("name", "batch")
ROWS = [("a-rather-long-name-of-a-run", "64"), ("b", "4,096")]


def test_columns_are_aligned_and_numbers_flush_right():
    assert as_table(HEADER, ROWS, Terminal(), numbers=(1,)) == [
        "name                         batch",
        "a-rather-long-name-of-a-run     64",
        "b                            4,096",
    ]


def test_a_narrow_terminal_cuts_the_first_column():
    assert as_table(HEADER, ROWS, Terminal(width=22), numbers=(1,)) == [
        "name             batch",
        "a-rather-long-…     64",
        "b                4,096",
    ]


def test_a_terminal_that_is_narrower_still_keeps_twelve_characters_of_it():
    assert as_table(HEADER, ROWS, Terminal(width=5))[1].startswith("a-rather-lo…")


def test_the_header_alone_is_bold():
    lines = as_table(HEADER, ROWS, Terminal(has_colour=True))

    assert [line.startswith("\x1b[1m") for line in lines] == [True, False, False]


def test_a_name_cannot_move_the_cursor_of_who_lists_it():
    assert printable("a\x1b[2Jb\r\nc") == "a?[2Jb??c"
    assert as_table(("name",), [("\x1b]0;title\x07",)], Terminal()) == ["name", "?]0;title?"]


@pytest.mark.parametrize(("encoding", "shown"), [("utf-8", "▁ × 7"), ("ascii", "? ? 7"), ("latin-1", "? × 7")])
def test_what_the_output_cannot_encode_is_no_error(monkeypatch, encoding, shown):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding, newline="\n"))

    tell("▁ × 7")
    sys.stdout.flush()

    assert written.getvalue().decode(encoding) == f"{shown}\n"


def test_a_reader_that_stops_reading_sees_no_traceback():
    """As `noisescale recommend … | head -1` does."""
    command = [str(Path(sys.executable).with_name("noisescale")), "recommend", "--tokens", "20e9"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()

    assert (process.returncode, said) == (READER_GONE, "")
