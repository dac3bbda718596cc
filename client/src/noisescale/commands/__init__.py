"""The command line: `noisescale <command>`.

Each installed distribution adds commands by an entry point in the group `noisescale.commands`: a function that takes
the subparsers, adds its own and sets `run=function(args) -> int`.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import EntryPoint, entry_points

from noisescale.lazy import INSTALL_LAB, INSTALL_SERVER
from noisescale.version import __version__
from noisescale_core.errors import ConfigError

GROUP = "noisescale.commands"

DOORS = {"reproduce": ("noisescale-lab", INSTALL_LAB), "up": ("noisescale-server", INSTALL_SERVER)}
"""Commands that our own sentences name, with the distribution that brings them and how to get it."""


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status of a command; 2 without one, and for wrong settings.

    Args:
        argv: Arguments; None: those of the process.
    """
    parser = argparse.ArgumentParser(prog="noisescale", description="Gradient noise scale inside your training job")
    parser.add_argument("--version", action="version", version=f"noisescale {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")
    given = sys.argv[1:] if argv is None else argv
    known = sorted(entry_points(group=GROUP), key=lambda one: one.name)
    # the server's commands take two seconds to load
    named = [one for one in known if one.name in given[:1]]
    for entry_point in named or known:
        _register(entry_point, subparsers)
    for name in DOORS:
        _add_door(name, subparsers)
    arguments = parser.parse_args(given)
    run: Callable[[argparse.Namespace], int] | None = getattr(arguments, "run", None)
    if run is None:
        parser.print_help()
        return 2
    try:
        return run(arguments)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2


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
