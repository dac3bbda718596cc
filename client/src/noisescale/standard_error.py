"""What the log of "noisescale" does in a script that has set up no logging: it is seen.

Python shows warnings alone there, and without a sender. A handler of ours writes from INFO on to standard error, after
"noisescale:"; it is silent where somebody else's handler gets the message, so none is shown twice.
"""

import logging
import sys
from typing import TextIO


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
