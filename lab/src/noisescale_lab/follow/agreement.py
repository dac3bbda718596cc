"""All ranks of a job do the same at the same step: the first one decides, and the others hear of it.

One broadcast at each look, over gloo and so without waiting for any device; looks are due at the same steps on every
rank, as they depend on nothing but the number of steps. A raise that is to be on probation asks all ranks once more,
whether each has a copy of its weights.
"""

import contextlib
import weakref
from datetime import timedelta
from typing import Protocol, TypeVar

import torch.distributed as dist

WAIT_HOURS = 1
"""The first rank may write a checkpoint for as long before the others give up."""

Value = TypeVar("Value")


class RankAgreement(Protocol):
    """Who decides."""

    is_first: bool

    def from_first(self, value: Value) -> Value:
        """What the first rank has."""
        ...

    def from_all(self, value: Value) -> list[Value]:
        """What each rank has, in their order."""
        ...


class OneProcess:
    """There is nobody else."""

    is_first = True

    def from_first(self, value: Value) -> Value:
        """The value itself."""
        return value

    def from_all(self, value: Value) -> list[Value]:
        """The value alone."""
        return [value]


class Ranks:
    """All ranks of the default process group. Every one has to make this, and to call it equally often."""

    def __init__(self) -> None:
        self.is_first = dist.get_rank() == 0
        self._group = [dist.new_group(backend="gloo", timeout=timedelta(hours=WAIT_HOURS))]
        weakref.finalize(self, _leave, self._group)

    def from_first(self, value: Value) -> Value:
        """What rank 0 has; the others wait for it."""
        box = [value]
        dist.broadcast_object_list(box, src=0, group=self._group[0])
        return box[0]

    def from_all(self, value: Value) -> list[Value]:
        """What each rank has; each waits for all others."""
        found = [value] * dist.get_world_size(self._group[0])
        dist.all_gather_object(found, value, group=self._group[0])
        return found


def _leave(held: list[dist.ProcessGroup]) -> None:
    """End the group's threads, before the interpreter ends at the latest: nobody says when following is over.

    One that waits for Python's lock then, to let go of a tensor, would abort the whole process.
    """
    with contextlib.suppress(ValueError):  # the program has destroyed all of its groups
        dist.destroy_process_group(held[0])
    held.clear()


def agreement() -> RankAgreement:
    """Among the ranks of this job, as far as it has any."""
    is_job = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
    return Ranks() if is_job else OneProcess()


def num_ranks() -> int:
    """Processes of the job; 1 outside of one."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1
