"""One thread at a time: a lock that a forked child finds free."""

import os
import threading
import weakref
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from _thread import RLock


class Locked(Protocol):
    """What has such a lock.

    Attributes:
        lock: Of its state; a thread that holds it may take it again, as a signal handler does.
    """

    lock: "RLock"


_live: weakref.WeakSet[Locked] = weakref.WeakSet()


def one_at_a_time(owner: Locked) -> "RLock":
    """A lock for an object, to be kept as its `lock`.

    Args:
        owner: Gets a new one in a forked child: the thread that holds the old one may not be there.
    """
    _live.add(owner)
    return threading.RLock()


def _renew_after_fork() -> None:
    for owner in list(_live):
        owner.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_after_fork)
