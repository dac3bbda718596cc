"""Work in processes of its own, results as they come."""

import ctypes
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Names of options in glibc's malloc.h."""

LARGEST = 2**31 - 1

Result = TypeVar("Result")


# Memory that tensors give back stays with the process: to map it anew at every operation takes much of the time.


def keep_freed_memory() -> None:
    """Have malloc hand out again what was freed, instead of returning it to the system; only glibc knows how."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGEST)
        mallopt(M_TRIM_THRESHOLD, LARGEST)


def in_processes(work: Callable[[str], Result], names: Sequence[str], num_processes: int) -> Iterator[Result]:
    """What `work` returns for each name; in this process where one at a time is asked for.

    Args:
        work: Can be pickled.
        names: Of what to do; those named first begin first.
        num_processes: At a time.
    """
    if num_processes == 1:
        keep_freed_memory()
        yield from map(work, names)
        return
    # fork would copy the parent's threads of torch half-way
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(num_processes, mp_context=context, initializer=keep_freed_memory) as pool:
        for future in as_completed([pool.submit(work, name) for name in names]):
            yield future.result()
