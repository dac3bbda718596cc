"""The command line: `noisescale <command>`.

Each installed distribution adds commands by an entry point in the group `noisescale.commands`: a function that takes
the subparsers, adds its own and sets `run=function(args) -> int`.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import EntryPoint, entry_points

from noisescale.lazy import INSTALL_IMPORTERS, INSTALL_LAB, INSTALL_SERVER
from noisescale.version import __version__
from noisescale_core.errors import ConfigError

GROUP = "noisescale.commands"

READER_GONE = 141
"""As a shell says of a process that SIGPIPE has ended."""

DOORS = {
    "import": ("noisescale-importers", INSTALL_IMPORTERS),
    "reproduce": ("noisescale-lab", INSTALL_LAB),
    "up": ("noisescale-server", INSTALL_SERVER),
}
"""Commands that our own sentences name, with the distribution that brings them and how to get it."""


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status of a command; 2 without one, and for wrong settings.

    Args:
        argv: Arguments; None: those of the process.
    """
    given = sys.argv[1:] if argv is None else argv
    parser = parser_of(given[:1])
    arguments = parser.parse_args(given)
    run: Callable[[argparse.Namespace], int] | None = getattr(arguments, "run", None)
    if run is None:
        parser.print_help()
        return 2
    try:
        status = run(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # whoever reads has gone, as `head` does; what is still unwritten goes nowhere, else Python complains at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2


def parser_of(wanted: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The parser of the commands that are installed.

    Args:
        wanted: Names of those alone that are needed, as the server's take two seconds to load; others, or none: all.
    """
    parser = argparse.ArgumentParser(prog="noisescale", description="Gradient noise scale inside your training job")
    parser.add_argument("--version", action="version", version=f"noisescale {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")
    known = sorted(entry_points(group=GROUP), key=lambda one: one.name)
    for entry_point in [one for one in known if one.name in wanted] or known:
        _register(entry_point, subparsers)
    for name in DOORS:
        _add_door(name, subparsers)
    return parser


def _add_door(name: str, subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """A command that is not installed says how to get it; argparse would say "invalid choice"."""
    distribution, install = DOORS[name]
    if name not in subparsers.choices:
        door = subparsers.add_parser(name, help=f"of {distribution}: {install}", add_help=False, prefix_chars="\0")
        door.add_argument("arguments", nargs="*")  # whatever it is: with no prefix nothing is an unknown option
        door.set_defaults(run=partial(_say_how_to_get, name))


def _say_how_to_get(name: str, arguments: argparse.Namespace) -> int:
    distribution, install = DOORS[name]
    print(f"noisescale {name} is part of {distribution}, which is not installed: {install}", file=sys.stderr)
    return 2


def _register(entry_point: EntryPoint, subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    try:
        register = entry_point.load()
    except (ImportError, AttributeError, SyntaxError) as error:
        print(f"noisescale: command {entry_point.name!r} ({entry_point.value}) is broken: {error}", file=sys.stderr)
        return
    register(subparsers)
