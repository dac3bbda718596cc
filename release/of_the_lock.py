"""Requirements of the named packages alone, with versions and hashes as the lock has them; needs nothing installed."""

import re
import sys
from pathlib import Path

LOCK = Path(__file__).resolve().parents[1] / "locks" / "development.txt"


def entries(names: list[str], lock: str) -> str:
    """The lock's entries of these packages.

    Raises:
        KeyError: For one that it has not.
    """
    found = {one.split("==")[0]: one for one in re.split(r"\n(?=\S)", lock) if "==" in one}
    return "\n".join(found[name].rstrip() for name in names) + "\n"


if __name__ == "__main__":
    print(entries(sys.argv[1:], LOCK.read_text()), end="")
