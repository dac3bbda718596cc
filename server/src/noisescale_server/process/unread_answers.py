"""What clients that do not read may leave lying in this process: little of each address, and not for long."""

from collections import Counter
from typing import Final

MAX_BYTES: Final = 32 << 20
"""Of all connections of one address together; a proxy in front of the server reads what it is given."""
LEAST_PROGRESS_BYTES: Final = 16 << 10
"""A reader that takes less than this in `ImpatientProtocol.unread_seconds` has gone away, or pretends to read."""


class Unread:
    """Bytes that lie unread, by the address of the reader."""

    def __init__(self) -> None:
        self._bytes: Counter[str] = Counter()

    def change(self, address: str, num_bytes: int) -> None:
        """Count so many bytes more, or fewer."""
        self._bytes[address] += num_bytes
        if not self._bytes[address]:
            del self._bytes[address]

    def has_room(self, address: str, num_bytes: int) -> bool:
        """Whether the address may leave so many more lying."""
        return self._bytes[address] + num_bytes <= MAX_BYTES
