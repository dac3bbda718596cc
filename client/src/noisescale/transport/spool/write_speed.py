"""Whether the disk is too slow for the training thread to wait for it."""

import os
from pathlib import Path

SLOW_SECONDS = 0.050
QUICK_SECONDS = 0.005
NUM_QUICK = 100

NETWORK_FILE_SYSTEMS = (
    "nfs", "cifs", "smb", "fuse", "lustre", "ceph", "gpfs", "9p", "afs", "beegfs", "gluster", "pvfs", "panfs",
)  # fmt: skip
"""How the types of file systems begin on which a write may take seconds."""


class WriteSpeed:
    """Remembers how long writes took: one slow one is enough to stop waiting, a hundred quick ones to begin again.

    Attributes:
        is_slow: Somebody else should write.
    """

    def __init__(self) -> None:
        self.is_slow = False
        self._num_quick = 0

    def see(self, seconds: float) -> None:
        """Take the time of one write."""
        if seconds > SLOW_SECONDS:
            self.is_slow = True
            self._num_quick = 0
        elif self.is_slow:
            self._num_quick = self._num_quick + 1 if seconds < QUICK_SECONDS else 0
            self.is_slow = self._num_quick < NUM_QUICK


def is_on_a_network(path: Path) -> bool:
    """Whether a folder lies on a file system where a write may take seconds; False where nobody says."""
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        real = os.path.realpath(path)
    except OSError:
        return False
    longest = found = ""
    for line in lines:
        mounted, _, described = line.partition(" - ")
        fields = mounted.split()
        if len(fields) < 5 or not described:
            continue
        point = fields[4].replace("\\040", " ")
        is_above = real == point or real.startswith(point.rstrip("/") + "/")
        if is_above and len(point) >= len(longest):
            longest, found = point, described.split()[0]
    return found.startswith(NETWORK_FILE_SYSTEMS)
