"""A group of our own over the ranks of a job, so that our sums never mix with the training's own collectives."""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta

import torch
import torch.distributed as dist

from noisescale_core.errors import ConfigError

MEETING_SECONDS = 300.0
"""How long `watch()` waits for the other ranks."""

PATIENT_SECONDS = 20.0
"""How long it waits before it names those that are missing: the user has to be able to see what hangs."""

SUM_HOURS = 1
"""A rank may write a checkpoint for as long before its part of a sum counts as lost; nobody waits for it meanwhile."""

logger = logging.getLogger("noisescale")

_num_meetings: dict[str, int] = {}


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
