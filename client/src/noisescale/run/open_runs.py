"""Runs that nobody has finished yet: they are finished when the process ends."""

import atexit
import sys
from typing import TYPE_CHECKING, Literal, Protocol

from noisescale.guard import announce

if TYPE_CHECKING:
    import torch


class OpenRun(Protocol):
    """What this file needs of a run."""

    id: str

    def finish(self, status: Literal["finished", "failed"]) -> None:
        """Deliver what is left."""

    def has_trained(self, model: "torch.nn.Module") -> bool:
        """Whether steps of this model were logged, and it is watched still."""


_open: set[OpenRun] = set()


def add(run: OpenRun) -> None:
    """Finish the run when the process ends."""
    _open.add(run)


def discard(run: OpenRun) -> None:
    """It is finished."""
    _open.discard(run)


def end_those_of(model: "torch.nn.Module", *, but: OpenRun) -> None:
    """Finish the runs that have trained a model which another run watches now: nobody trains it twice at once."""
    for run in [one for one in _open if one is not but and one.has_trained(model)]:
        announce(f"run {run.id} is finished: its model is watched by run {but.id} from here on")
        run.finish("finished")


def _finish_all() -> None:
    """At exit: a training that ended with an error has left it in `sys.last_value`."""
    for run in list(_open):
        run.finish("failed" if getattr(sys, "last_value", None) is not None else "finished")


atexit.register(_finish_all)
