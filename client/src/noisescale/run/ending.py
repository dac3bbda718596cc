"""The end of a run: it is finished when its process ends, and says in one line what it has found."""

import atexit
import sys
from typing import TYPE_CHECKING, Literal, Protocol

from noisescale.guard import announce
from noisescale.window.recent_updates import NoiseScale
from noisescale_core.advice.parts.numbers import chance, more

if TYPE_CHECKING:
    import torch

    from noisescale.ask.recommendation import Recommendation


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


# What a job says last, in one line: the noise scale, what to do about it, and where the run is to be seen.


def result_line(task: str, noise_scale: NoiseScale, advice: "Recommendation", where: str) -> str:
    """The line.

    Args:
        task: What was trained.
        noise_scale: At the end.
        advice: What it says about the batch.
        where: The run is to be seen; empty where nobody knows, or that was said already.
    """
    parts = (f"noise scale of {task}: {noise_scale.said(has_ended=True)}", _to_do(advice), where)
    return ". ".join(part.removesuffix(".") for part in parts if part)


def _to_do(advice: "Recommendation") -> str:
    """A decision with its odds; what is next where nothing is decided."""
    odds = advice.odds
    if odds is None or advice.decision == "insufficient_evidence":
        return f"{advice.headline}: {advice.next_step}" if advice.next_step else advice.headline
    if advice.decision in ("keep", "keep_for_now"):
        return f"{advice.headline} (expected to cost {more(odds.present_regret)} than the best batch)"
    return f"{advice.headline} (cheaper with a probability of {chance(odds.probability)})"
