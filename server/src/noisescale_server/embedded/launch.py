"""Becomes another program: as another user if asked, stopped by the kernel when the owner dies.

Run as a script, so that nothing of ours happens between fork and exec in an owner that may have threads. It needs the
standard library alone and is started with `python -I -S`, which takes about 15 ms.
"""

import ctypes
import json
import os
import sys
from pathlib import Path
from typing import NotRequired, TypedDict

_PR_SET_PDEATHSIG = 1
_NUM_LINES_BEFORE_STATUS = 7  # pid, folder, start, port, socket folder, address, shared memory key


class Launch(TypedDict):
    """What to do before becoming the program."""

    owner: int
    death_signal: int
    uid: NotRequired[int]
    gid: NotRequired[int]
    stale_pid_file: NotRequired[str]


def die_with_parent(death_signal: int, parent: int) -> None:
    """Ask the kernel for a signal when the thread that started this process ends (Linux; elsewhere nothing happens).

    Raises SystemExit when the parent has died before the kernel was asked.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, death_signal, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        raise SystemExit(f"process {parent}, which wanted this one, is gone")


def _give_up_root(uid: int, gid: int) -> None:
    try:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    except PermissionError:
        raise SystemExit(
            f"root may not become user {uid} here, and Postgres refuses to run as root: "
            "allow the capabilities SETUID and SETGID, or set NOISESCALE_DATABASE_URL to a Postgres of your own"
        ) from None


def _take_over_pid_file(path: Path) -> None:
    """Put our own pid in place of a reused one.

    Postgres refuses to start while the pid in the file is alive, whosever it is. Removing the file would also remove
    the shared memory key, by which Postgres notices backends that outlived their postmaster. The status goes: "ready"
    was said by the one before.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([str(os.getpid()), *lines[1:_NUM_LINES_BEFORE_STATUS]]) + "\n", encoding="utf-8")


def main() -> None:
    """Read the launch from the first argument and become the program in the others."""
    launch: Launch = json.loads(sys.argv[1])
    program = sys.argv[2:]
    os.umask(0o077)
    os.chdir("/")
    if "uid" in launch and "gid" in launch:
        _give_up_root(launch["uid"], launch["gid"])
    # after the change of user: the kernel forgets the death signal whenever credentials change
    die_with_parent(launch["death_signal"], launch["owner"])
    if "stale_pid_file" in launch:
        _take_over_pid_file(Path(launch["stale_pid_file"]))
    os.execv(program[0], program)  # noqa: S606


if __name__ == "__main__":
    main()
