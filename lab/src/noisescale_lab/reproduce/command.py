"""`noisescale reproduce`: does the noise scale predict the critical batch size, on this machine?"""

import argparse
import importlib
import importlib.util
import os
import sys
from collections.abc import Collection
from pathlib import Path

from noisescale_core.errors import ConfigError

PACKAGES = {"torch": "torch", "sklearn": "scikit-learn", "PIL": "pillow"}
"""What it needs, by module and by package."""


# What the reproduce commands are told, checked; and what they say.


def named_tasks(tasks: str, known: Collection[str]) -> tuple[str, ...]:
    """Names with commas between them.

    Raises:
        ConfigError: If one is not known.
    """
    names = tuple(name.strip() for name in tasks.split(","))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ConfigError(f"tasks has no {unknown[0]!r}: known are {', '.join(sorted(known))}")
    return names


def at_least_one(processes: int) -> int:
    """The number of processes.

    Raises:
        ConfigError: If there is none.
    """
    if processes < 1:
        raise ConfigError(f"processes must be at least 1, got {processes}: leave it out for one a core")
    return processes


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "reproduce", help="small real trainings that test whether the noise scale predicts the critical batch size"
    )
    parser.add_argument("--quick", action="store_true", help="fewer seeds and batch sizes")
    parser.add_argument(
        "--advice", action="store_true", help="how good the advice is instead: policies and recommendations replayed"
    )
    parser.add_argument("--folder", type=Path, help="results; what is there is not run again (noisescale-reproduce-…)")
    parser.add_argument("--tasks", help="names with commas between them; all by default")
    parser.add_argument("--seed", type=int, default=0, help="the first of the seeds (0)")
    parser.add_argument("--processes", type=int, help="tasks at a time (as many as cores)")
    parser.add_argument("--url", help="server for runs, sweeps and findings instead of the configured one")
    parser.add_argument("--no-server", action="store_true", help="send nothing, also where a server answers")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """0 with results; 2 for wrong arguments or a missing package."""
    missing = [package for module, package in PACKAGES.items() if importlib.util.find_spec(module) is None]
    if missing:
        print(f"noisescale reproduce needs {', '.join(missing)}: pip install {' '.join(missing)}", file=sys.stderr)
        return 2
    # torch takes seconds to import, and every other command would wait for it
    if arguments.advice:
        return _advice(arguments)
    command = importlib.import_module("noisescale_lab.reproduce.claim.command")
    status: int = command.run(
        effort="quick" if arguments.quick else "full",
        folder=arguments.folder,
        tasks=arguments.tasks,
        seed=arguments.seed,
        processes=_processes(arguments),
        url=arguments.url,
        is_offline=arguments.no_server,
    )
    return status


def _advice(arguments: argparse.Namespace) -> int:
    command = importlib.import_module("noisescale_lab.reproduce.advice.command")
    status: int = command.run(
        is_quick=arguments.quick,
        folder=arguments.folder,
        tasks=arguments.tasks,
        seed=arguments.seed,
        processes=_processes(arguments),
        url=arguments.url,
        is_offline=arguments.no_server,
    )
    return status


def _processes(arguments: argparse.Namespace) -> int:
    return arguments.processes if arguments.processes is not None else len(os.sched_getaffinity(0))
