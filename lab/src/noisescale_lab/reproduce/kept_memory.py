"""Memory that tensors give back stays with the process: to map it anew at every operation takes much of the time."""

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Names of options in glibc's malloc.h."""

LARGEST = 2**31 - 1


def keep_freed_memory() -> None:
    """Have malloc hand out again what was freed, instead of returning it to the system; only glibc knows how."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGEST)
        mallopt(M_TRIM_THRESHOLD, LARGEST)
