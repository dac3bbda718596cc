"""Runs that nobody has finished yet: they are finished when the process ends."""

import atexit
import sys
from typing import Literal, Protocol


class OpenRun(Protocol):
    """What this file needs of a run."""

    def finish(self, status: Literal["finished", "failed"]) -> None:
        """Deliver what is left."""


_open: set[OpenRun] = set()


def add(run: OpenRun) -> None:
    """Finish the run when the process ends."""
    _open.add(run)


def discard(run: OpenRun) -> None:
    """It is finished."""
    _open.discard(run)


def _finish_all() -> None:
    """At exit: a training that ended with an error has left it in `sys.last_value`."""
    for run in list(_open):
        run.finish("failed" if getattr(sys, "last_value", None) is not None else "finished")


atexit.register(_finish_all)
