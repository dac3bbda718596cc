"""Work in processes of its own, results as they come."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

from noisescale_lab.reproduce.kept_memory import keep_freed_memory

Result = TypeVar("Result")


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
