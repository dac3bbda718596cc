"""`noisescale doctor`: whether records are safe on this machine, and whether they would arrive."""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from noisescale.commands.status import waiting
from noisescale.config import Config
from noisescale.outbox import SPOOL
from noisescale.transport.limits import Limits
from noisescale.transport.spool.write_speed import SLOW_SECONDS, is_on_a_network
from noisescale.transport.upload.http import HttpServer
from noisescale.version import __version__
from noisescale_core.errors import TransportError

NUM_WRITES = 200
FRAME_BYTES = 152
"""Of a measurement."""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = subparsers.add_parser("doctor", help="check the folder of the records, the disk and the server")
    parser.add_argument("--url", help="ask this server instead of the configured one")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """0 when records are safe and would arrive; 1 when not; 2 for wrong settings."""
    config = Config.from_env(url=arguments.url)
    is_safe = bool(config.folders) and _is_folder_good(config.folders[0] / SPOOL)
    if not is_safe:
        print("to do    set NOISESCALE_DIR to a folder on a local disk that can be written to")
    is_stuck = _is_anything_stuck(config)
    return 0 if _is_server_good(config) and is_safe and not is_stuck else 1


def _is_anything_stuck(config: Config) -> bool:
    found = waiting(config)
    for line in (line for one in found for line in one.lines()):
        print(line)
    return any(one.is_bad for one in found)


def _is_folder_good(folder: Path) -> bool:
    print(f"folder   {folder}")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_seconds, sync_seconds = _times(folder)
        disk = os.statvfs(folder)
    except OSError as error:
        print(f"         cannot be written to: {error}; records would wait in memory only")
        return False
    free_share = disk.f_bavail / max(1, disk.f_blocks)
    print(f"         a write takes {1e6 * write_seconds:.0f} µs (median), to the disk {1e3 * sync_seconds:.1f} ms")
    if is_on_a_network(folder):
        print("         a network file system: a thread writes, a killed process can lose the last 0.1 s")
    elif write_seconds > SLOW_SECONDS:
        print("         slow: a thread writes, a killed process can lose the last 0.1 s")
    print(f"         {100 * free_share:.0f} % of the disk are free")
    if free_share < Limits().free_share:
        print(f"         less than {100 * Limits().free_share:.0f} %: undelivered records are given up sooner")
        return False
    return True


def _times(folder: Path) -> tuple[float, float]:
    """Median seconds of a write of a measurement, and seconds to bring all of them to the disk."""
    seconds = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(NUM_WRITES):
            start = time.perf_counter()
            file.write(b"\0" * FRAME_BYTES)
            seconds.append(time.perf_counter() - start)
        start = time.perf_counter()
        os.fdatasync(file.fileno())
        return statistics.median(seconds), time.perf_counter() - start


def _is_server_good(config: Config) -> bool:
    print(f"server   {config.url}")
    server = HttpServer(config.url, config.api_key, f"noisescale/{__version__}")
    try:
        is_ready = server.is_ready()
        is_refused = is_ready and server.refuses_key()
    except TransportError as error:
        print(f"         not reachable: {error}; records wait on disk until it is")
        return False
    finally:
        server.close()
    if is_refused:
        print("         ready, but refuses this key: make one on its page Settings, and set NOISESCALE_API_KEY")
        return False
    print("         ready" if is_ready else "         answers, but is not ready: look at its log")
    return is_ready
