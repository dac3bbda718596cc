"""Not more batches from one sender than agreed: one job that sends without end must not starve the others.

Each server process counts for itself, so several of them let through that many times as much.
"""

import math
import time

from fastapi import Request
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from noisescale_server.api.access.route import principal_of
from noisescale_server.api.platform.refusals import TooManyBatches

BATCHES_PER_TOO_LARGE = 100
"""An honest sender halves its batch and is not refused again; one that throws bombs is soon not read any more."""


class BatchRate:
    """Who has sent how many batches in the last minute, by the sliding-window counter of `limits`."""

    def __init__(self, per_minute: int) -> None:
        self._limit = RateLimitItemPerMinute(per_minute)
        self._counts = SlidingWindowCounterRateLimiter(MemoryStorage())

    def count(self, sender: str) -> None:
        """Count the sender's batch.

        Raises:
            TooManyBatches: When it is one too many.
        """
        if self._counts.hit(self._limit, sender):
            return
        opens_at = self._counts.get_window_stats(self._limit, sender).reset_time
        raise TooManyBatches(self._limit.amount, max(1, math.ceil(opens_at - time.time())))

    def count_too_large(self, sender: str) -> None:
        """Count a batch that was refused for its size as many, where they fit.

        It is never answered by "wait": whoever waits and sends it again would not learn that it is too large.
        """
        self._counts.hit(self._limit, sender, cost=BATCHES_PER_TOO_LARGE)


async def count_batch(request: Request) -> None:
    """Count a batch of this sender.

    Raises:
        TooManyBatches: When it is one too many.
    """
    rate: BatchRate = request.app.state.batch_rate
    rate.count(sender_of(request))


def count_too_large(request: Request) -> None:
    """Count a body of this sender that was refused for its size as many batches."""
    rate: BatchRate = request.app.state.batch_rate
    rate.count_too_large(sender_of(request))


def sender_of(request: Request) -> str:
    """The key or person that sends."""
    principal = principal_of(request)
    return f"{principal.kind} {principal.id}"
