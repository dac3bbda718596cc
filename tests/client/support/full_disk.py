"""A disk that is full, for one module that writes."""

import errno
import os
from typing import Any


class FullDisk:
    """`os` for the files of records: a write beyond some bytes finds no space, until there is."""

    def __init__(self, num_bytes: int = 0) -> None:
        self.num_free = num_bytes

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, descriptor: int, content: bytes) -> int:
        """Write all of it, or nothing.

        Raises:
            OSError: Where it does not fit.
        """
        if len(content) > self.num_free:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.num_free -= len(content)
        return os.write(descriptor, content)
