"""The smoke form of a benchmark: `--smoke` runs it in seconds, at sizes that say nothing, to see that it still runs.

Every benchmark takes the flag, which is gone before its own arguments are read; the processes it starts inherit it by
the environment. In this form nothing is written to the results.
"""

import os
import sys
from typing import TypeVar

T = TypeVar("T")

_NAME = "NOISESCALE_BENCHMARK_SMOKE"

if "--smoke" in sys.argv:
    sys.argv.remove("--smoke")
    os.environ[_NAME] = "1"

IS_SMOKE = _NAME in os.environ


def size(normal: T, smoke: T) -> T:
    """How much to measure.

    Args:
        normal: For figures.
        smoke: To see that it runs.
    """
    return smoke if IS_SMOKE else normal
