"""Keeps our exceptions out of a training loop: counted, logged once, raised again only when strict.

One of the client's three `except Exception` is here, and once more in `log_norms`, the cheapest call; the others are
the hook body and the uploader's loop. The kernels' self-test, which is no part of a training loop, has one of its own.
"""

import contextlib
import functools
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Concatenate, ParamSpec, Protocol, TextIO, TypeVar

logger = logging.getLogger("noisescale")


# What the log of "noisescale" does in a script that has set up no logging: it is seen.
#
# Python shows warnings alone there, and without a sender. A handler of ours writes from INFO on to standard error,
# after "noisescale:"; it is silent where somebody else's handler gets the message, so none is shown twice.


class StandardError(logging.StreamHandler[TextIO]):
    """Writes to what standard error is at that moment, unless another handler has the message."""

    def __init__(self, logger: logging.Logger) -> None:
        logging.Handler.__init__(self)
        self._logger = logger
        self.setFormatter(logging.Formatter("noisescale: %(message)s"))

    @property
    def stream(self) -> TextIO:  # type: ignore[override]  # notebooks and tests exchange it
        """Standard error as it is now."""
        return sys.stderr

    def emit(self, record: logging.LogRecord) -> None:
        """Write a message that nobody else shows."""
        if not _has_other_handler(self._logger, self):
            super().emit(record)


def show(logger: logging.Logger) -> None:
    """Show what a logger says from INFO on; a level or a handler that it has already stays as it is."""
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)  # the root's WARNING is nobody's choice
    logger.addFilter(_is_wanted)
    logger.addHandler(StandardError(logger))


def _is_wanted(record: logging.LogRecord) -> bool:
    """False for what a root above WARNING leaves out: that was somebody's choice."""
    least = logging.getLogger().level
    return least <= logging.WARNING or record.levelno >= least


def _has_other_handler(logger: logging.Logger, own: logging.Handler) -> bool:
    at: logging.Logger | None = logger
    while at is not None:
        if any(handler is not own for handler in at.handlers):
            return True
        at = at.parent if at.propagate else None
    return False


show(logger)


def announce(message: str) -> None:
    """Say what everybody should see once."""
    logger.info("%s", message)


@contextlib.contextmanager
def warnings_alone() -> Iterator[None]:
    """For as long as many runs are made for somebody: what each of them would say is said of none."""
    level = logger.level
    logger.setLevel(max(level, logging.WARNING))
    try:
        yield
    finally:
        logger.setLevel(level)


P = ParamSpec("P")
R = TypeVar("R")


class Faults:
    """Our own errors inside a watched run.

    Attributes:
        count: How many there were.
    """

    def __init__(self, *, is_strict: bool) -> None:
        self.count = 0
        self._is_strict = is_strict
        self._known: set[tuple[type, str]] = set()

    def report(self, fault: Exception) -> None:
        """Count an error and log its first occurrence; raise it when strict."""
        self.count += 1
        if self._is_strict:
            raise fault
        kind = (type(fault), str(fault)[:80])
        if kind not in self._known and len(self._known) < 100:
            self._known.add(kind)
            logger.warning("an error inside noisescale left something out, training goes on: %s", fault, exc_info=fault)


class Notices:
    """Sentences of a run for people.

    Attributes:
        is_muted: Another rank of the job says them.
    """

    def __init__(self) -> None:
        self.is_muted = False
        self._said: set[str] = set()

    def say(self, message: str, level: int = logging.INFO) -> None:
        """Say a sentence."""
        if not self.is_muted:
            logger.log(level, "%s", message)

    def once(self, key: str, message: str, level: int = logging.WARNING) -> None:
        """Say a sentence unless one with this key was said."""
        if key not in self._said:
            self._said.add(key)
            self.say(message, level)


class Guarded(Protocol):
    """What `never_raises` needs of its object."""

    faults: Faults

    @property
    def is_recording(self) -> bool:
        """False when disabled or finished: then nothing is done."""

    def leave_out(self, call: str) -> None:
        """Told about a call while nothing is recorded."""


S = TypeVar("S", bound=Guarded)


def never_raises(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R | None]:
    """The method, but an error is reported to `self.faults` and None comes back.

    Nothing happens while `self.is_recording` is false. KeyboardInterrupt and SystemExit pass.
    """

    @functools.wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            if self.is_recording:
                return method(self, *args, **kwargs)
            self.leave_out(method.__name__)
        except Exception as fault:  # noqa: BLE001  # the public calls: one of the client's three
            self.faults.report(fault)
        return None

    return call
