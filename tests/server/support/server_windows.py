"""Where the server's windows begin and end, after each step: for `simulated_runs.looks`."""

import numpy as np

from noisescale_core.estimators.uncertainty import WINDOWS_BEFORE
from noisescale_server.services.series import latest
from noisescale_server.services.series.resolution import block, level_with_blocks


def blocks_of_the_latest_window(first_step):
    """Edges in updates of the blocks of the latest window and of what is before it, of a run that begins there."""
    last = first_step
    while True:
        num_steps = max(-(-(last - first_step + 1) // latest.LATEST_SHARE), latest.MIN_UPDATES)
        span = latest.span(first=first_step, last=last, num_steps=num_steps)
        size = span.steps_per_block
        window = np.arange(span.low * size, last + 1 + size, size)
        before = np.arange(span.before * size, span.low * size + 1, size)
        yield tuple(np.unique(np.clip(edges, first_step, last + 1)) - first_step for edges in (window, before))
        last += 1


def blocks_in_a_chart(window):
    """The same for a point of a chart with windows of as many steps, in points no longer than a block."""
    size = block(level_with_blocks(window))
    last = 0
    while True:
        oldest = (last - window + 1) // size
        first = oldest - -(-WINDOWS_BEFORE * window // size)
        edges = np.arange(oldest * size, last + 1 + size, size), np.arange(first * size, oldest * size + 1, size)
        yield tuple(np.unique(np.clip(one, 0, last + 1)) for one in edges)
        last += 1
