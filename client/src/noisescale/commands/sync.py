"""`noisescale sync DIR`: send what jobs have left on disk."""

import argparse
import sys
import time
from pathlib import Path

from noisescale.config import Config
from noisescale.errors import ConfigError, TransportError
from noisescale.transport.http import HttpServer
from noisescale.transport.late_delivery import deliver, has_arrived
from noisescale.transport.left_behind import stream_folders
from noisescale.transport.stream_folder import StreamFolder
from noisescale.version import __version__

TIMEOUT_SECONDS = 24 * 3600.0
REPORT_SECONDS = 2.0


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = subparsers.add_parser("sync", help="send the records that jobs have left on disk")
    parser.add_argument("folder", nargs="?", type=Path, help="of a stream, a run, or all; default: NOISESCALE_DIR")
    parser.add_argument("--url", help="send to this server instead of the configured one")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_SECONDS, help="seconds to try for, default a day")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """0 when the server has an account of everything; 1 when not; 2 for wrong arguments."""
    try:
        config = Config.from_env(url=arguments.url)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    if arguments.folder is not None and not arguments.folder.is_dir():
        print(f"no folder {arguments.folder}: give one that a job has named, or none for all", file=sys.stderr)
        return 2
    roots = [arguments.folder] if arguments.folder is not None else list(config.folders)
    folders = [folder for root in roots for folder in stream_folders(root) if not folder.has_moved]
    if not folders:
        print(f"nothing to send in {', '.join(map(str, roots))}")
        return 0
    server = HttpServer(config.url, config.api_key, f"noisescale/{__version__}")
    deadline = time.monotonic() + arguments.timeout
    statuses = [_sync(folder, server, max(1.0, deadline - time.monotonic())) for folder in folders]
    server.close()
    return max(statuses)


def _sync(folder: StreamFolder, server: HttpServer, timeout_seconds: float) -> int:
    name = f"run {folder.path.parent.name} stream {folder.path.name[:8]}"
    is_known = has_arrived(folder)
    reporter = _Reporter(name)
    try:
        folder.try_lock()  # where its writer is dead; else what it has written so far is sent
        outcome = deliver(folder, server, reporter.report, timeout_seconds)
    except (OSError, TransportError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    finally:
        folder.release()
    if outcome.num_left:
        print(f"{name}: {outcome.num_left} of {outcome.num_records} records left: {outcome.reason}", file=sys.stderr)
        return 1
    lost = f", {outcome.num_lost} declared lost" if outcome.num_lost else ""
    if outcome.num_delivered or not is_known:
        print(f"{name}: {outcome.num_delivered} records sent, {outcome.num_records} in all{lost}")
    return 0


class _Reporter:
    """A line about the progress every two seconds."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._said_at = time.monotonic()

    def report(self, num_acked: int, num_logged: int) -> None:
        now = time.monotonic()
        if now - self._said_at >= REPORT_SECONDS:
            self._said_at = now
            share = 100 * num_acked // max(1, num_logged)
            print(f"{self._name}: {num_acked} of {num_logged} records, {share} %", flush=True)
