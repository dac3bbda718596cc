"""Sums of small vectors over the ranks of a job; nobody waits, neither host nor device.

A vector goes to the host behind an event and from there into an all-reduce of gloo, which a thread of its own carries
out. All ranks send the same number of vectors in the same order, one at the end of each synchronised backward. Should
they come to differ, the step's number in front of each vector tells, and the sum counts as lost.
"""

import contextlib
import hashlib
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from noisescale.capture.sums.device_values import DeviceEvent
from noisescale_core.errors import ConfigError

MEETING_SECONDS = 300.0
"""How long `watch()` waits for the other ranks."""

PATIENT_SECONDS = 20.0
"""How long it waits before it names those that are missing: the user has to be able to see what hangs."""

SUM_HOURS = 1
"""A rank may write a checkpoint for as long before its part of a sum counts as lost; nobody waits for it meanwhile."""

logger = logging.getLogger("noisescale")

_num_meetings: dict[str, int] = {}

DRAIN_SECONDS = 5.0
"""Longest wait for the last sums of a run: the other ranks may be gone."""

KEPT_WORKS = 64
"""Sums that gloo's threads may be behind."""


# A group of our own over the ranks of a job, so that our sums never mix with the training's own collectives.


def open_group(ranks: Sequence[int], description: str, *, seconds: float = MEETING_SECONDS) -> dist.ProcessGroup:
    """A gloo group of these ranks. Every one of them has to call this; the first wait for the last.

    Gloo on the host, also where the training uses NCCL: see `docs/decisions/0012-sums-over-ranks-go-through-gloo.md`.

    Args:
        ranks: Global ranks, this one among them.
        description: What is watched, the same on every rank.
        seconds: Longest wait for the others.

    Raises:
        ConfigError: Where other ranks do not come, watch something else, or cannot be reached.
    """
    if not dist.is_gloo_available():
        raise ConfigError("sums over ranks need the gloo backend, which this PyTorch lacks: use log_norms() instead")
    _meet(ranks, description, seconds)
    try:
        group: dist.ProcessGroup = dist.new_group(
            list(ranks), backend="gloo", timeout=timedelta(hours=SUM_HOURS), use_local_synchronization=True
        )
    except RuntimeError as fault:
        raise ConfigError(
            f"the ranks cannot reach each other over TCP ({fault}): set GLOO_SOCKET_IFNAME to the network between them"
        ) from fault
    return group


def _meet(ranks: Sequence[int], description: str, seconds: float) -> None:
    """Wait until all ranks are here and watch the same."""
    store = dist.distributed_c10d._get_default_store()  # a group's own barrier waits half an hour before it complains
    name = hashlib.sha256(repr(tuple(ranks)).encode()).hexdigest()[:16]
    number = _num_meetings.get(name, 0)
    _num_meetings[name] = number + 1
    keys = {rank: f"noisescale/{name}/{number}/{rank}" for rank in ranks}
    own_rank = dist.get_rank()
    store.set(keys[own_rank], description)
    if not store.check(list(keys.values())):
        logger.debug("watch() waits for the other ranks: it has to be called on all %d", len(keys))
    patience = min(PATIENT_SECONDS, seconds)
    if not _are_all_here(store, keys, patience) and seconds > patience:
        logger.warning(
            "watch() has waited %g s for rank %s and waits up to %g s: call init() and watch() on every rank, "
            "also where nothing is logged",
            patience,
            ", ".join(map(str, _missing(store, keys))),
            seconds,
        )
        _are_all_here(store, keys, seconds - patience)
    missing = _missing(store, keys)
    if missing:
        raise ConfigError(
            f"watch() was called on {len(keys) - len(missing)} of {len(keys)} ranks within {seconds:g} s, not on rank "
            f"{missing[0]}: call init() and watch() on every rank, also where nothing is logged; "
            "a rank with mode='disabled' takes no part"
        )
    others = {rank: store.get(key).decode() for rank, key in keys.items()}
    differing = [rank for rank, theirs in others.items() if theirs != description]
    if differing:
        raise ConfigError(
            f"rank {own_rank} watches {description}, rank {differing[0]} {others[differing[0]]}: "
            "call watch() with the same model and arguments on every rank"
        )


def _are_all_here(store: dist.distributed_c10d.Store, keys: Mapping[int, str], seconds: float) -> bool:
    """Wait at most so long for all ranks."""
    try:
        store.wait(list(keys.values()), timedelta(seconds=seconds))
    except RuntimeError:
        return False
    return True


def _missing(store: dist.distributed_c10d.Store, keys: Mapping[int, str]) -> list[int]:
    """Ranks that have not come."""
    return [rank for rank, key in keys.items() if not store.check([key])]


def host_buffer(vector: torch.Tensor) -> torch.Tensor:
    """Memory on the host that a device can copy into without anybody waiting."""
    return torch.empty(vector.shape, dtype=vector.dtype, pin_memory=vector.is_cuda)


class RankSum:
    """One vector on its way through the sum.

    Attributes:
        is_lost: It will never arrive, or does not belong together.
    """

    def __init__(self, step: int, buffer: Tensor, event: DeviceEvent | None) -> None:
        self._step = step
        self._buffer = buffer
        self._event = event
        self._work: dist.Work | None = None
        self._values: list[float] | None = None
        self.is_lost = False

    @property
    def is_on_host(self) -> bool:
        """Whether this rank's part can be sent."""
        return self._event is None or self._event.query()

    @property
    def is_there(self) -> bool:
        """Whether there is something to read, or nothing to wait for."""
        return self.is_lost or self._values is not None

    def values(self) -> list[float] | None:
        """The sum; None while it is on its way and where it is lost."""
        return self._values

    def start(self, group: dist.ProcessGroup | None) -> dist.Work | None:
        """Send this rank's part."""
        if group is not None:
            self._work = dist.all_reduce(self._buffer, group=group, async_op=True)
        return self._work

    def look(self, num_ranks: int) -> None:
        """Take the values over where they have arrived."""
        if self.is_there or (self._work is not None and not self._work.is_completed()):
            return
        if self._work is not None and not _has_succeeded(self._work):
            self.is_lost = True
            return
        step, *values = self._buffer.tolist()
        self.is_lost = step != num_ranks * self._step
        self._values = None if self.is_lost else values

    def wait(self, seconds: float) -> None:
        """Wait for the device, then for the other ranks, at most so long for these."""
        if self._event is not None:
            self._event.synchronize()
        if self._work is not None:
            with contextlib.suppress(RuntimeError):  # timed out, or another rank is gone: lost, then
                self._work.wait(timedelta(seconds=max(seconds, 0.001)))


def _has_succeeded(work: dist.Work) -> bool:
    """Whether completed work did what it should; torch's own `is_success()` warns that it is deprecated."""
    try:
        work.wait()
    except RuntimeError:
        return False
    return True


class RankSums:
    """Sends vectors and takes in their sums.

    Attributes:
        num_lost: Sums that never came or did not belong together.

    Args:
        group: Of all ranks that add; None where there is one alone.
        num_ranks: Ranks in it.
        make_event: For vectors on a device; None: CUDA's.
    """

    def __init__(
        self, group: dist.ProcessGroup | None, num_ranks: int, make_event: Callable[[], DeviceEvent] | None = None
    ) -> None:
        self._group = group
        self._num_ranks = num_ranks
        self._make_event = make_event
        self._to_send: deque[RankSum] = deque()
        self._under_way: deque[RankSum] = deque()
        # Whoever lets go of a sum last frees its vector, and needs Python's lock for that. A thread of gloo that waits
        # for the lock while the interpreter ends is ended in the middle of C++, which aborts the whole process.
        self._works: deque[dist.Work | None] = deque(maxlen=KEPT_WORKS)
        self.num_lost = 0

    def send(self, step: int, vector_V: Tensor) -> RankSum:
        """Start the journey of a vector, fp64 [V]; returns at once.

        To be called on every rank at the same point of the training, always with the same length.

        Args:
            step: Number of the optimizer step, the same on every rank.
            vector_V: This rank's part.
        """
        numbered = torch.cat([vector_V.new_full((1,), step), vector_V])
        make_event = self._make_event or (torch.cuda.Event if numbered.is_cuda else None)
        event = None
        if make_event is not None:
            buffer = host_buffer(numbered)
            buffer.copy_(numbered, non_blocking=True)
            event = make_event()
            event.record()
            numbered = buffer
        summed = RankSum(step, numbered, event)
        self._to_send.append(summed)
        self.advance()
        return summed

    def advance(self) -> None:
        """Send what has reached the host and take in what has been summed; never waits."""
        while self._to_send and self._to_send[0].is_on_host:
            summed = self._to_send.popleft()
            self._works.append(summed.start(self._group))
            self._under_way.append(summed)
        for summed in self._under_way:
            summed.look(self._num_ranks)
        while self._under_way and self._under_way[0].is_there:
            self.num_lost += self._under_way.popleft().is_lost

    def agree(self, step: int, value: float) -> float | None:
        """The mean of a number over all ranks, waited for at most as long as `drain()` does; None where it was lost.

        To be called on every rank at the same point of the training.
        """
        summed = self.send(step, torch.tensor([value], dtype=torch.float64))
        self.drain()
        values = summed.values()
        return None if values is None else values[0] / self._num_ranks

    def drain(self, seconds: float = DRAIN_SECONDS) -> None:
        """Wait for all that is under way, at most so long for the other ranks; the rest is lost."""
        deadline = time.monotonic() + seconds
        for summed in self._to_send:
            summed.wait(0)
        self.advance()
        for summed in list(self._under_way):
            summed.wait(deadline - time.monotonic())
        self.advance()
        for summed in self._under_way:
            summed.is_lost = True
        self.num_lost += len(self._under_way)
        self._under_way.clear()
