"""The command line: `noisescale <command>`.

Each installed distribution adds commands by an entry point in the group `noisescale.commands`: a function that takes
the subparsers, adds its own and sets `run=function(args) -> int`.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint, entry_points

from noisescale.version import __version__

GROUP = "noisescale.commands"


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status of a command; 2 without one.

    Args:
        argv: Arguments; None: those of the process.
    """
    parser = argparse.ArgumentParser(prog="noisescale", description="Gradient noise scale inside your training job")
    parser.add_argument("--version", action="version", version=f"noisescale {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")
    for entry_point in sorted(entry_points(group=GROUP), key=lambda one: one.name):
        _register(entry_point, subparsers)
    arguments = parser.parse_args(argv)
    run: Callable[[argparse.Namespace], int] | None = getattr(arguments, "run", None)
    if run is None:
        parser.print_help()
        return 2
    return run(arguments)


def _register(entry_point: EntryPoint, subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    try:
        register = entry_point.load()
    except (ImportError, AttributeError, SyntaxError) as error:
        print(f"noisescale: command {entry_point.name!r} ({entry_point.value}) is broken: {error}", file=sys.stderr)
        return
    register(subparsers)
