"""What the reproduce commands are told, checked; and what they say."""

import sys
from collections.abc import Collection

from noisescale_core.errors import ConfigError


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
