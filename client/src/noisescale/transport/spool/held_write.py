"""Appending to a file without letting another thread have the interpreter meanwhile.

`os.write` gives the interpreter away for the half microsecond that it takes, and beside a thread that computes in
Python getting it back takes 5 to 10 ms: each hundredth logged step of a job that decodes its data in a thread. The
kernel copies a record into its own memory, which is quicker than any such change of threads. On a disk that is slow the
first slow write holds up the other threads, too; from then on the spool's own thread writes, and lets others run.
"""

import ctypes
from collections.abc import Callable

Write = Callable[[int, bytes, int], int]
"""Of descriptor, content and its length: the bytes that were written, or -1."""


def _of_the_c_library() -> Write | None:
    try:
        # ctypes passes ints and bytes as they are; without types declared, in two thirds of the time
        found: Write = ctypes.PyDLL(None).write
    except (OSError, TypeError, AttributeError):  # a system whose processes have no such library, such as Windows
        return None
    return found


write = _of_the_c_library()
"""That of the C library; None where there is none."""
